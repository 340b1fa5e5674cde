# The end of every signal handler of the program: where the kernel sends a handler's `ret` (sa_restorer).
#
# libc's own does nothing but the system call, which puts everything in the frame back in force, the signal
# stack of the kernel thread included: that of the worker where the handler began. A handler that was
# preempted and goes on elsewhere would give two workers one signal stack. So the running worker's is written
# into the frame first.
#
# reveille_sigreturn   in   rsp  the frame's ucontext_t. All registers come out of the frame.
#
# A tick between the first instruction and the last is ignored (handler.rs): the worker must not change
# between the look and the system call. On a kernel thread that runs no reveille thread the record is null.
#
# Unwinders find the interrupted code through the rules below, as for libc's: each register is at its place
# in the ucontext_t. They look one byte before the address, hence the `nop`.

.macro reveille_saved register, low, high
    .cfi_escape 0x10, \register, 3, 0x77, \low, \high
.endm

    .text
    .balign 16
    .cfi_startproc
    .cfi_signal_frame
    # The stack pointer is the word at rsp + 160.
    .cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06
    reveille_saved 8, 0xa8, 0x00
    reveille_saved 9, 0xb0, 0x00
    reveille_saved 10, 0xb8, 0x00
    reveille_saved 11, 0xc0, 0x00
    reveille_saved 12, 0xc8, 0x00
    reveille_saved 13, 0xd0, 0x00
    reveille_saved 14, 0xd8, 0x00
    reveille_saved 15, 0xe0, 0x00
    reveille_saved 5, 0xe8, 0x00
    reveille_saved 4, 0xf0, 0x00
    reveille_saved 6, 0xf8, 0x00
    reveille_saved 3, 0x80, 0x01
    reveille_saved 1, 0x88, 0x01
    reveille_saved 0, 0x90, 0x01
    reveille_saved 2, 0x98, 0x01
    reveille_saved 16, 0xa8, 0x01
    nop
    .globl reveille_sigreturn
    .hidden reveille_sigreturn
    .type reveille_sigreturn, @function
reveille_sigreturn:
    mov rax, qword ptr [rip + reveille_hot@GOTTPOFF]
    mov rax, qword ptr fs:[rax + {RECORD}]
    test rax, rax
    jz 1f
    mov rax, [rax + {WORKER}]
    mov rcx, [rax + {LO}]
    mov [rsp + {SP}], rcx
    mov rcx, [rax + {LEN}]
    mov [rsp + {SIZE}], rcx
    mov dword ptr [rsp + {FLAGS}], 0
1:  mov rax, 15
    syscall
    .globl reveille_sigreturn_end
    .hidden reveille_sigreturn_end
reveille_sigreturn_end:
    .cfi_endproc
    .size reveille_sigreturn, . - reveille_sigreturn
