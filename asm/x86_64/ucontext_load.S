# setcontext on the platform's ucontext_t: continuing a plain context, saved by ucontext.S or by
# the platform's getcontext, or made by either makecontext. Reads the context, and nothing else:
#
#    ucontext_t                            the target's stack
#    +-------------+                       |              |
#    | gregs       | --> registers         +--------------+ <- RSP on exit
#    | fpregs      | compared with &fpmem  | not touched  |
#    | fpmem       | --> x87 word, MXCSR   |              |
#    +-------------+
#
# The jump to the target is a `jmp`, not a `ret`: the target's caller is not the function that
# a return would be predicted to go to.
#
# reveille_uctx_set    RDI = context to continue. Returns only to say -1. What is not plain
#                      beyond doubt goes on to Rust, with the caller's RSP.
# reveille_uctx_load   RDI = plain context, already checked. Does not return.
# reveille_uctx_load_mask  the same, and sets its signal mask; RSI = where to store the old one,
#                      or null. The stack changes hands first: a signal that the new mask lets
#                      in finds the target's stack, and a handler that switches away there
#                      saves a context which completes the load. On the old stack, which the
#                      caller has given up, it would save what nobody may continue.
# On exit RBX RBP R12-R15 and the arguments' registers RDI RSI RDX RCX R8 R9 are the context's
# (makecontext puts a new function's arguments there), RAX = 0, R10 and R11 are clobbered.

    .pushsection .text.reveille_uctx_load, "ax", @progbits
    reveille_begin reveille_uctx_set
    lea     rax, [rdi + {FPMEM}]
    cmp     rax, [rdi + {FPREGS}]
    jne     {SET_CHECKED}                       # a signal frame, a copy, or never made
    test    dword ptr [rdi + {MXCSR}], {MXCSR_RESERVED}
    jnz     {SET_CHECKED}
    reveille_end reveille_uctx_set   # falls through

    reveille_begin reveille_uctx_load
    fldcw   [rdi + {FPMEM}]
    ldmxcsr [rdi + {MXCSR}]
    mov     rbx, [rdi + {RBX}]
    mov     rbp, [rdi + {RBP}]
    mov     r12, [rdi + {R12}]
    mov     r13, [rdi + {R13}]
    mov     r14, [rdi + {R14}]
    mov     r15, [rdi + {R15}]
    mov     rsi, [rdi + {RSI}]
    mov     rdx, [rdi + {RDX}]
    mov     rcx, [rdi + {RCX}]
    mov     r8, [rdi + {R8}]
    mov     r9, [rdi + {R9}]
    mov     r11, [rdi + {RIP}]
    mov     rsp, [rdi + {RSP}]
    mov     rdi, [rdi + {RDI}]
    .cfi_undefined rip
    xor     eax, eax
    jmp     r11
    reveille_end reveille_uctx_load

    reveille_begin reveille_uctx_load_mask
    mov     rbx, rdi
    mov     rsp, [rdi + {RSP}]
    .cfi_undefined rip
    mov     rdx, rsi
    lea     rsi, [rdi + {SIGMASK}]
    mov     edi, {SIG_SETMASK}
    mov     r10d, {SIGSET_BYTES}
    mov     eax, {RT_SIGPROCMASK}
    syscall
    mov     rdi, rbx
    jmp     reveille_uctx_load
    reveille_end reveille_uctx_load_mask
    .popsection
    .purgem reveille_begin
    .purgem reveille_end
