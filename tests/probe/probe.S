# Loads everything a context has with known values, executes one instruction that raises a
# signal, and writes down what it finds after that.
#
#    PROBE (static, laid out by struct Probe)        stack of the probe
#    +------------------+                            |                       |
#    | given: registers | --> loaded                 +-----------------------+ <- RSP at the trap
#    | found: registers | <-- stored                 | red zone: given.red   |
#    | extended state   | both ways, 64-aligned      |           (16 words)  |
#    +------------------+                            +-----------------------+
#
# probe_run    saves the callee-saved registers; never changes the stack at the trap
# probe_trap   the `ud2`; probe_after is the instruction to continue at
# probe_enter  the signal handler's entry: clears the alignment check flag, which handlers
#              inherit, and goes on to Rust
# probe_trash  replaces all vector and x87 registers

    .pushsection .text.probe, "ax", @progbits
    .macro probe_registers operation
    \operation {R8}, r8
    \operation {R9}, r9
    \operation {R10}, r10
    \operation {R11}, r11
    \operation {R12}, r12
    \operation {R13}, r13
    \operation {R14}, r14
    \operation {R15}, r15
    \operation {RDI}, rdi
    \operation {RSI}, rsi
    \operation {RBP}, rbp
    \operation {RBX}, rbx
    \operation {RDX}, rdx
    \operation {RCX}, rcx
    \operation {RAX}, rax
    .endm
    .macro probe_load index, register
    mov     \register, [rip + {PROBE} + {GIVEN} + \index]
    .endm
    .macro probe_store index, register
    mov     [rip + {PROBE} + {FOUND} + \index], \register
    .endm

    .globl probe_run, probe_trap, probe_after, probe_enter, probe_trash
    .type probe_run, @function
probe_run:
    .irp register, rbx, rbp, r12, r13, r14, r15
    push    \register
    .endr
    mov     [rip + {PROBE} + {HOME}], rsp
    mov     eax, [rip + {PROBE} + {COMPONENTS}]
    xor     edx, edx
    xrstor64 [rip + {PROBE} + {GIVEN_X}]
    push    qword ptr [rip + {PROBE} + {GIVEN} + {EFL}]
    popfq
    .set    probe_word, 0
    .rept   16
    mov     rax, [rip + {PROBE} + {GIVEN_RED} + probe_word * 8]
    mov     [rsp - 128 + probe_word * 8], rax
    .set    probe_word, probe_word + 1
    .endr
    probe_registers probe_load
probe_trap:
    ud2
    hlt
probe_after:
    probe_registers probe_store
    mov     [rip + {PROBE} + {FOUND} + {RSP}], rsp
    .set    probe_word, 0
    .rept   16
    mov     rax, [rsp - 128 + probe_word * 8]
    mov     [rip + {PROBE} + {FOUND_RED} + probe_word * 8], rax
    .set    probe_word, probe_word + 1
    .endr
    pushfq
    pop     qword ptr [rip + {PROBE} + {FOUND} + {EFL}]
    push    0x202
    popfq
    mov     eax, [rip + {PROBE} + {COMPONENTS}]
    xor     edx, edx
    xsave64 [rip + {PROBE} + {FOUND_X}]
    fninit
    push    0x1f80
    ldmxcsr [rsp]
    mov     rsp, [rip + {PROBE} + {HOME}]
    .irp register, r15, r14, r13, r12, rbp, rbx
    pop     \register
    .endr
    ret
probe_enter:
    pushfq
    and     qword ptr [rsp], ~0x40000
    popfq
    jmp     {HANDLER}

probe_trash:
    mov     eax, [rip + {PROBE} + {COMPONENTS}]
    xor     edx, edx
    xrstor64 [rip + {PROBE} + {TRASH_X}]
    ret
    .popsection
