# Resuming a preempted thread: every register, the flags and the whole extended state, no system call.
#
# The switch (switch.S) arrives here by its `ret`, preemption still off, rsp at the saved state:
#
#     rsp -> +0 (64-aligned)  general registers (struct Saved); `target` = the thread's rsp - 144
#            +XSAVE           extended state as the kernel saved it (XSAVE, standard format)
#
#     the thread's stack:   rsp        ->  whatever it had
#                           rsp - 128      red zone, untouched
#                           rsp - 136  <-  rip     (written here, taken by `ret 128`)
#                           rsp - 144  <-  rflags  (taken by `popfq`)
#
# From reveille_unpreempt_window to reveille_unpreempt_window_end the thread's preemption flag is clear but
# its registers are not all loaded: the handler never switches when it interrupted that range.

    .text
    .balign 64
    .globl reveille_unpreempt
    .hidden reveille_unpreempt
    .type reveille_unpreempt, @function
reveille_unpreempt:
    .cfi_startproc
    .cfi_undefined rip
    mov rdi, rax
    mov rsi, rdx
    call {finish}
    # rsp is at the saved state still: `finish` never switches.
    mov eax, -1
    mov edx, -1
    xrstor64 [rsp + {XSAVE}]
    mov rcx, [rsp + {TARGET}]
    mov rax, [rsp + {RFLAGS}]
    mov [rcx], rax
    mov rax, [rsp + {RIP}]
    mov [rcx + 8], rax
    mov r8, [rsp + {R8}]
    mov r9, [rsp + {R9}]
    mov r10, [rsp + {R10}]
    mov r11, [rsp + {R11}]
    mov r12, [rsp + {R12}]
    mov r13, [rsp + {R13}]
    mov r14, [rsp + {R14}]
    mov r15, [rsp + {R15}]
    mov rdi, [rsp + {RDI}]
    mov rsi, [rsp + {RSI}]
    mov rbp, [rsp + {RBP}]
    mov rbx, [rsp + {RBX}]
    mov rdx, [rsp + {RDX}]
    mov rcx, [rsp + {RCX}]
    mov rax, qword ptr [rip + reveille_hot@GOTTPOFF]
    mov qword ptr fs:[rax], 0
    .globl reveille_unpreempt_window
    .hidden reveille_unpreempt_window
reveille_unpreempt_window:
    mov rax, [rsp + {RAX}]
    mov rsp, [rsp + {TARGET}]
    popfq
    ret 128
    .globl reveille_unpreempt_window_end
    .hidden reveille_unpreempt_window_end
reveille_unpreempt_window_end:
    .cfi_endproc
    .size reveille_unpreempt, . - reveille_unpreempt
