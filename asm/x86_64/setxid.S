# glibc's own signal to all kernel threads (SIGSETXID, 33: setuid and the like), handled with the thread
# block of the kernel thread.
#
# glibc's handler clears a flag in the block that FS points to, and the sender waits until it is clear in
# the block of each kernel thread. While a reveille thread runs, FS is the thread's. So: FS of the worker's
# home, glibc's handler, FS of the thread.
#
# reveille_setxid   in   rdi, rsi, rdx  as any SA_SIGINFO handler
#
# On a kernel thread that runs no reveille thread (record null) FS is right already. With the home's FS
# the record is null too, so a tick that comes meanwhile is not taken for one.

    .text
    .balign 16
    .globl reveille_setxid
    .hidden reveille_setxid
    .type reveille_setxid, @function
reveille_setxid:
    .cfi_startproc
    mov rax, qword ptr [rip + reveille_hot@GOTTPOFF]
    mov rax, qword ptr fs:[rax + {RECORD}]
    test rax, rax
    jz 1f
    mov rax, [rax + {WORKER}]
    mov rax, [rax + {HOME_FS}]
    push rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    rdfsbase rbx
    wrfsbase rax
    call [rip + {real}]
    wrfsbase rbx
    pop rbx
    .cfi_adjust_cfa_offset -8
    ret
1:  jmp [rip + {real}]
    .cfi_endproc
    .size reveille_setxid, . - reveille_setxid
