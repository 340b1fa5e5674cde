# The voluntary switch: from the running context to a saved one, TLS and all, without a system call.
#
# A context at rest is one word, its stack pointer, and the stack there looks the same for every
# kind of context, so that the switch need not know which it resumes:
#
#     rsp ->  +0    u32 mxcsr, u16 x87 control word
#             +8    r15 r14 r13 r12 rbx rbp
#             +56   where to go on:   a thread that switched   -> after its call of reveille_switch
#                                     a thread not yet started -> reveille_entry   (entry.S)
#                                     a preempted thread       -> reveille_unpreempt  (resume.S)
#
# reveille_switch   in   rdi  where to put the stack pointer of the running context
#                        rsi  stack pointer of the context to resume
#                        rdx  its FS base
#                        rcx  what to carry over: the record that is being left
#                        r8   what to carry over: the worker
#                   out  rax, rdx  what the other side carried over
#                   All caller-saved registers are lost, as in any call.
#
# reveille_switch_onto and reveille_switch_last are where leave.S joins in: with this context's control words
# in eax and r9w; and on the new stack, with the address of reveille_entry in r10.
#
# Preemption is off in both contexts throughout: a tick here is remembered, never honoured.
#
# A thread not yet started is jumped to, not returned to: the processor's stack of return addresses then
# still has the way back to whoever switches here, and the end of the thread (entry.S), which comes at
# the same depth, returns to it as predicted.

    .text
    .balign 64
    .globl reveille_switch
    .hidden reveille_switch
    .type reveille_switch, @function
reveille_switch:
    .cfi_startproc
    push rbp
    .cfi_adjust_cfa_offset 8
    push rbx
    .cfi_adjust_cfa_offset 8
    push r12
    .cfi_adjust_cfa_offset 8
    push r13
    .cfi_adjust_cfa_offset 8
    push r14
    .cfi_adjust_cfa_offset 8
    push r15
    .cfi_adjust_cfa_offset 8
    sub rsp, 8
    .cfi_adjust_cfa_offset 8
    stmxcsr dword ptr [rsp]
    fnstcw word ptr [rsp + 4]
    mov [rdi], rsp
    # Load the control words only where they differ: loading is what costs.
    mov eax, dword ptr [rsp]
    movzx r9d, word ptr [rsp + 4]
    .globl reveille_switch_onto
    .hidden reveille_switch_onto
reveille_switch_onto:
    mov rsp, rsi
    wrfsbase rdx
    lea r10, [rip + reveille_entry]
    cmp eax, dword ptr [rsp]
    jne 3f
1:  cmp r9w, word ptr [rsp + 4]
    jne 4f
    .globl reveille_switch_last
    .hidden reveille_switch_last
reveille_switch_last:
    mov rax, rcx
    mov rdx, r8
    cmp r10, [rsp + 56]
    je 5f
    add rsp, 8
    .cfi_adjust_cfa_offset -8
    pop r15
    .cfi_adjust_cfa_offset -8
    pop r14
    .cfi_adjust_cfa_offset -8
    pop r13
    .cfi_adjust_cfa_offset -8
    pop r12
    .cfi_adjust_cfa_offset -8
    pop rbx
    .cfi_adjust_cfa_offset -8
    pop rbp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_adjust_cfa_offset 56
3:  ldmxcsr dword ptr [rsp]
    jmp 1b
4:  fldcw word ptr [rsp + 4]
    jmp reveille_switch_last
5:  add rsp, 64
    jmp reveille_entry
    .cfi_endproc
    .size reveille_switch, . - reveille_switch
