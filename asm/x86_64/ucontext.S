# getcontext and swapcontext on the platform's ucontext_t: saving a plain context, one that
# stands at a function call. Only what the calling convention keeps is stored: RBX RBP R12-R15,
# RSP, RIP, MXCSR, the x87 control word. ucontext_load.S is the other half.
#
#    ucontext_t (offsets by name)          stack of the caller of get / swap
#    +-------------+                       |              |
#    | uc_flags    | NO_MASK or 0          +--------------+ <- stored RSP
#    | uc_link     |                       | return addr  |    stored RIP
#    | uc_stack    |                       +--------------+ <- RSP on entry
#    | gregs       |
#    | fpregs      | -> fpmem (this is how a plain context is told from a signal frame)
#    | uc_sigmask  | written by the _mask forms, in Rust
#    | fpmem       | x87 environment: control word, status 0, tags "all empty"; MXCSR
#    +-------------+
#
# reveille_uctx_get   RDI = context to fill; returns 0, and again when the context is continued
# reveille_uctx_swap  RDI = context to fill, RSI = context to continue; -1: RSI was refused
# ..._mask            the same, then on to Rust for the signal mask (a tail call: RSP is the
#                     caller's, so a refusal returns to the caller)
# All clobber RAX and what the calling convention lets a function clobber.

    .macro reveille_save flags
    mov     [rdi + {RBX}], rbx
    mov     [rdi + {RBP}], rbp
    mov     [rdi + {R12}], r12
    mov     [rdi + {R13}], r13
    mov     [rdi + {R14}], r14
    mov     [rdi + {R15}], r15
    mov     qword ptr [rdi + {FLAGS}], \flags
    lea     rax, [rdi + {FPMEM}]
    mov     [rdi + {FPREGS}], rax
    movabs  rax, {EMPTY_X87}
    mov     [rdi + {X87_STATUS_AND_TAGS}], rax
    fnstcw  [rdi + {FPMEM}]
    stmxcsr [rdi + {MXCSR}]
    lea     rax, [rsp + 8]
    mov     [rdi + {RSP}], rax
    mov     rax, [rsp]
    mov     [rdi + {RIP}], rax
    .endm

    .macro reveille_begin name
    .balign 16
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    .cfi_startproc
    .endm

    .macro reveille_end name
    .cfi_endproc
    .size \name, . - \name
    .endm

    .pushsection .text.reveille_uctx, "ax", @progbits
    reveille_begin reveille_uctx_get
    reveille_save {NO_MASK}
    xor     eax, eax
    ret
    reveille_end reveille_uctx_get

    reveille_begin reveille_uctx_get_mask
    reveille_save 0
    jmp     {GET_MASK_REST}
    reveille_end reveille_uctx_get_mask

    reveille_begin reveille_uctx_swap_mask
    reveille_save 0
    jmp     {SWAP_MASK_REST}
    reveille_end reveille_uctx_swap_mask

    reveille_begin reveille_uctx_swap
    reveille_save {NO_MASK}
    mov     rdi, rsi
    jmp     reveille_uctx_set
    reveille_end reveille_uctx_swap
    .popsection
    .purgem reveille_save
