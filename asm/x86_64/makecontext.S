# makecontext's C entry (its arguments are variadic), and the place its functions return to.
#
#    stack made for the new context               on entry of makecontext
#    +----------------------+ top                 +----------------------+
#    | uc_link              | <- RBX, aligned 16  | argument 3, 4, ...   |
#    +----------------------+                     +----------------------+
#    | padding, if any      |                     | return address       |
#    | argument 7, 8, ...   |                     +----------------------+ <- RSP
#    +----------------------+                     | R9  (argument 2)     |
#    | reveille_uctx_start  |                     | R8  (argument 1)     |
#    +----------------------+ <- RSP on entry     | RCX (argument 0)     |
#                                of the function  +----------------------+
#
# reveille_uctx_make   RDI = context, RSI = function, EDX = number of arguments, RCX R8 R9 and
#                      the stack = arguments. Returns nothing.
# reveille_uctx_start  returned into by the function. RBX = address of the uc_link word.
#                      Continues that context, or ends the thread. Backtraces end here.

    .pushsection .text.reveille_uctx_make, "ax", @progbits
    .balign 16
    .globl reveille_uctx_make
    .hidden reveille_uctx_make
    .type reveille_uctx_make, @function
reveille_uctx_make:
    .cfi_startproc
    lea     rax, [rsp + 8]
    push    r9
    .cfi_adjust_cfa_offset 8
    push    r8
    .cfi_adjust_cfa_offset 8
    push    rcx
    .cfi_adjust_cfa_offset 8
    mov     rcx, rsp
    mov     r8, rax
    call    {MAKE}
    add     rsp, 24
    .cfi_adjust_cfa_offset -24
    ret
    .cfi_endproc
    .size reveille_uctx_make, . - reveille_uctx_make

    .balign 16
    .globl reveille_uctx_start
    .hidden reveille_uctx_start
    .type reveille_uctx_start, @function
    .cfi_startproc
    .cfi_undefined rip
    nop                                 # unwinders look up the return address minus one
reveille_uctx_start:
    mov     rsp, rbx
    mov     rdi, [rbx]
    test    rdi, rdi
    jz      2f
    call    {SET_MASK}                  # returns only if the context is refused
2:  xor     edi, edi
    call    [rip + {THREAD_END}]
    ud2
    .cfi_endproc
    .size reveille_uctx_start, . - reveille_uctx_start
    .popsection
