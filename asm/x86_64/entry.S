# Where a thread begins, and the frame that pthread_exit and cancellation come back to.
#
#     top of the stack  ->  the cancellation buffer
#     reveille_entry        rsp = top; outermost frame, backtraces end here
#       thread_main         (Rust) catches panics
#         reveille_body     registers the cancellation buffer
#           body            (Rust) the closure
#
# glibc ends a thread by unwinding to the frame that registered a cancellation buffer and then jumping
# into the buffer. A function that returns twice cannot be written in Rust, hence this one. The frame lies at
# the same address for every thread of a stack, so the buffer is registered once for each stack, which remembers
# at which rsp (low half plus 1).
#
# reveille_entry   in   rax, rdx  carried over by the switch: the record left, the worker
#                  comes back from thread_main with the next context, and goes to it
# reveille_body    in   rdi       the record
#                  out  eax       0 the body returned, 1 the thread was ended by glibc

    .text
    .balign 64
    .globl reveille_entry
    .hidden reveille_entry
    .type reveille_entry, @function
reveille_entry:
    .cfi_startproc
    .cfi_undefined rip
    xor ebp, ebp
    mov rdi, rax
    mov rsi, rdx
    call {start}
    # The thread has ended, preemption is off; rax, rdx: the next record, the worker.
    mov rsi, [rax + {RSP}]
    mov r8, rdx
    mov rdx, [rax + {FS}]
    mov rcx, qword ptr [rip + reveille_hot@GOTTPOFF]
    mov rcx, qword ptr fs:[rcx + {RECORD}]
    jmp reveille_jump
    .cfi_endproc
    .size reveille_entry, . - reveille_entry

    .globl reveille_body
    .hidden reveille_body
    .type reveille_body, @function
reveille_body:
    .cfi_startproc
    push rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbp, -16
    mov rbp, rsp
    .cfi_def_cfa_register rbp
    push rbx
    push r12
    push r13
    push r14
    push r15
    push rdi
    .cfi_offset rbx, -24
    .cfi_offset r12, -32
    .cfi_offset r13, -40
    .cfi_offset r14, -48
    .cfi_offset r15, -56
    mov rax, [rdi + {STACK}]
    lea ecx, [rsp + 1]
    cmp [rax + {REGISTERED}], ecx
    jne 3f
1:  mov rdi, [rsp]
    call [rdi + {BODY}]
    xor eax, eax
2:  mov rbx, [rbp - 8]
    mov r12, [rbp - 16]
    mov r13, [rbp - 24]
    mov r14, [rbp - 32]
    mov r15, [rbp - 40]
    mov rsp, rbp
    pop rbp
    .cfi_remember_state
    .cfi_def_cfa rsp, 8
    ret
    .cfi_restore_state
3:  mov [rax + {REGISTERED}], ecx
    mov r12d, [rax + {ABOVE}]
    neg r12
    add r12, [rax + {FS_BASE}]
    mov rdi, r12
    xor esi, esi
    call __sigsetjmp@PLT
    test eax, eax
    jnz 4f
    mov rdi, r12
    call __pthread_register_cancel@PLT
    jmp 1b
4:  # glibc ended the thread; rsp and rbp are this frame's. Its cleanup handlers may have left theirs registered.
    mov rdi, [rsp]
    mov rdi, [rdi + {STACK}]
    mov dword ptr [rdi + {REGISTERED}], 0
    mov eax, 1
    jmp 2b
    .cfi_endproc
    .size reveille_body, . - reveille_body
