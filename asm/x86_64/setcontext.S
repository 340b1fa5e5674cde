# Full resume: continue a context that was interrupted at an arbitrary instruction.
#
# Restores every register, the flags and the extended state without a system call. The last
# three words needed (RDI, RFLAGS, RIP) are put on the *target's* stack, below its red zone,
# because nothing else can be addressed once all registers hold the target's values:
#
#      higher addresses
#    |                     |
#    +---------------------+ <- saved RSP = RSP on exit
#    | red zone, 128 bytes |    not touched
#    +---------------------+ <- saved RSP - RED_ZONE
#    | RIP                 |    popped by `ret RED_ZONE`
#    | RFLAGS              |    popped by `popfq`
#    | RDI                 |    popped by `pop rdi`
#    +---------------------+ <- saved RSP - ROOM
#
# The area may lie on top of the *end* of the extended state of a signal frame (the kernel
# puts that frame directly below the red zone), so the words are written after `xrstor`.
# The stack pointer changes hands last, when nothing is read from the old memory any more:
# a signal that arrives in between cannot overwrite what is still needed.
#
# `reveille_resume`
#   entry  RDI = registers in the order of gregset_t, RSI = extended state (64-byte aligned,
#          standard format, validated), RDX = components to load
#   exit   does not return; all registers are the saved ones
# A handler that finds the interrupted RIP between the begin and end labels must not switch.

    .pushsection .text.reveille_resume, "ax", @progbits
    .balign 16
    .globl reveille_resume_begin
    .hidden reveille_resume_begin
    .globl reveille_resume
    .hidden reveille_resume
    .type reveille_resume, @function
reveille_resume_begin:
reveille_resume:
    .cfi_startproc
    .cfi_signal_frame
    .cfi_undefined rip
    mov     eax, edx
    shr     rdx, 32
    xrstor64 [rsi]

    mov     rax, [rdi + {RSP}]
    sub     rax, {ROOM}
    mov     rcx, [rdi + {RDI}]
    mov     [rax], rcx
    mov     rcx, [rdi + {EFL}]
    mov     [rax + {AT_FLAGS}], rcx
    mov     rcx, [rdi + {RIP}]
    mov     [rax + {AT_RIP}], rcx

    mov     r8, [rdi + {R8}]
    mov     r9, [rdi + {R9}]
    mov     r10, [rdi + {R10}]
    mov     r11, [rdi + {R11}]
    mov     r12, [rdi + {R12}]
    mov     r13, [rdi + {R13}]
    mov     r14, [rdi + {R14}]
    mov     r15, [rdi + {R15}]
    mov     rbx, [rdi + {RBX}]
    mov     rbp, [rdi + {RBP}]
    mov     rsi, [rdi + {RSI}]
    mov     rdx, [rdi + {RDX}]
    mov     rcx, [rdi + {RCX}]
    mov     rax, [rdi + {RAX}]
    mov     rdi, [rdi + {RSP}]
    lea     rsp, [rdi - {ROOM}]
    .cfi_def_cfa rsp, {ROOM}
    .cfi_offset rip, -{RIP_BELOW}
    pop     rdi
    .cfi_adjust_cfa_offset -8
    popfq
    .cfi_adjust_cfa_offset -8
    ret     {RED_ZONE}
    .cfi_endproc
    .size reveille_resume, . - reveille_resume
    .globl reveille_resume_end
    .hidden reveille_resume_end
reveille_resume_end:
    .popsection
