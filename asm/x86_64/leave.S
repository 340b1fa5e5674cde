# Leaving a context for good: the second half of the switch (switch.S), with nothing to come back to.
#
# reveille_jump     the running context is at its end
# reveille_leave    the same from a signal handler, whose flags are not ours: the running
#                   context is the handler's, the interrupted one has been saved
#                   in   as reveille_switch, but rdi is not used
#
# The stack that is left is not written below rsp - 8; the one that is gone to is as in switch.S.

    .text
    .balign 16
    .globl reveille_jump
    .hidden reveille_jump
    .type reveille_jump, @function
reveille_jump:
    .cfi_startproc
    .cfi_undefined rip
    stmxcsr dword ptr [rsp - 8]
    fnstcw word ptr [rsp - 4]
    mov eax, dword ptr [rsp - 8]
    movzx r9d, word ptr [rsp - 4]
    jmp reveille_switch_onto
    .cfi_endproc
    .size reveille_jump, . - reveille_jump

    .globl reveille_leave
    .hidden reveille_leave
    .type reveille_leave, @function
reveille_leave:
    .cfi_startproc
    .cfi_undefined rip
    mov rsp, rsi
    wrfsbase rdx
    # The kernel clears DF in a handler but leaves AC. The control words stay the handler's, which are the
    # default ones: the loop, which is gone to, computes nothing, and leaves by comparing with those in force.
    push 0x202
    popfq
    lea r10, [rip + reveille_entry]
    jmp reveille_switch_last
    .cfi_endproc
    .size reveille_leave, . - reveille_leave
