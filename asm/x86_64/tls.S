# The hot words: four words of thread-local storage that the switch, the tick and the guard share.
#
# They are plain initial-exec TLS, so each TLS block in the process has its own copy, and one
# instruction on %fs reaches the copy of whoever runs. The image is that of a kernel thread: preemption
# off for good, no record. A slot's copy is filled in when the slot is made.
#
#     reveille_hot + 0    u32   off      preemption is off while this is not 0
#                  + 4    u32   pending  a tick came while it was off
#                  + 8    ptr   record   the thread's record; null on a plain kernel thread
#                  + 16   u64   syscall  kept free: "in a system call"
#                  + 24   ptr   starting the record that is being started through a signal
#
# off and pending share one aligned word, so that a thread that has just been switched to clears
# both with one store.

    .section .tdata, "awT", @progbits
    .balign 64
    .globl reveille_hot
    .hidden reveille_hot
    .type reveille_hot, @tls_object
    .size reveille_hot, 64
reveille_hot:
    .long 1
    .long 0
    .quad 0
    .quad 0
    .fill 5, 8, 0
    .text
