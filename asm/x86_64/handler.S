# Where the kernel enters the tick's handler.
#
# The kernel clears DF, RF and TF for a handler but leaves AC as the interrupted code had it; with AC set,
# compiled code faults at its first unaligned access. So AC goes first. The frame has the old flags.
#
# reveille_on_signal   in   rdi, rsi, rdx  as any SA_SIGINFO handler

    .text
    .balign 16
    .globl reveille_on_signal
    .hidden reveille_on_signal
    .type reveille_on_signal, @function
reveille_on_signal:
    .cfi_startproc
    pushfq
    .cfi_adjust_cfa_offset 8
    and qword ptr [rsp], {NOT_AC}
    popfq
    .cfi_adjust_cfa_offset -8
    jmp {handler}
    .cfi_endproc
    .size reveille_on_signal, . - reveille_on_signal
