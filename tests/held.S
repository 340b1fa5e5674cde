# Every register, the flags and the red zone, held for a while with no instruction that changes them but
# `loop`, which counts down rcx and leaves the flags alone.
#
# storm_hold   in  rdi  the Held structure (tests/storm_registers.rs)
# While it holds:  [rsp] the structure, [rsp - 128, rsp) the red zone

    .text
    .globl storm_hold
    .hidden storm_hold
    .type storm_hold, @function
storm_hold:
    .cfi_startproc
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    sub rsp, 8
    stmxcsr dword ptr [rsp]
    fnstcw word ptr [rsp + 4]
    push rdi
    .cfi_adjust_cfa_offset 64
    mov eax, -1
    mov edx, -1
    and eax, dword ptr [rdi + {COMPONENTS}]
    xrstor64 [rdi + {GIVEN_X}]
    mov rdx, rdi
    lea rsi, [rdx + {GIVEN_RED}]
    lea rdi, [rsp - 128]
    mov ecx, 16
    cld
    rep movsq
    # The flags, from above the stack's red zone.
    lea rsp, [rdx + {GIVEN_FLAGS}]
    popfq
    lea rsp, [rdi]
    mov rcx, [rdx + {SPINS}]
    mov rax, [rdx + {GIVEN} + 0]
    mov rbx, [rdx + {GIVEN} + 8]
    mov rsi, [rdx + {GIVEN} + 16]
    mov rdi, [rdx + {GIVEN} + 24]
    mov rbp, [rdx + {GIVEN} + 32]
    mov r8, [rdx + {GIVEN} + 40]
    mov r9, [rdx + {GIVEN} + 48]
    mov r10, [rdx + {GIVEN} + 56]
    mov r11, [rdx + {GIVEN} + 64]
    mov r12, [rdx + {GIVEN} + 72]
    mov r13, [rdx + {GIVEN} + 80]
    mov r14, [rdx + {GIVEN} + 88]
    mov r15, [rdx + {GIVEN} + 96]
    mov rdx, [rdx + {GIVEN} + 104]
2:  loop 2b
    mov rcx, [rsp]
    mov [rcx + {FOUND} + 0], rax
    mov [rcx + {FOUND} + 8], rbx
    mov [rcx + {FOUND} + 16], rsi
    mov [rcx + {FOUND} + 24], rdi
    mov [rcx + {FOUND} + 32], rbp
    mov [rcx + {FOUND} + 40], r8
    mov [rcx + {FOUND} + 48], r9
    mov [rcx + {FOUND} + 56], r10
    mov [rcx + {FOUND} + 64], r11
    mov [rcx + {FOUND} + 72], r12
    mov [rcx + {FOUND} + 80], r13
    mov [rcx + {FOUND} + 88], r14
    mov [rcx + {FOUND} + 96], r15
    mov [rcx + {FOUND} + 104], rdx
    mov rbx, rsp
    # The flags, again without touching the red zone.
    lea rsp, [rcx + {FOUND_FLAGS} + 8]
    pushfq
    lea rsp, [rbx]
    # Direction and alignment check as the ABI wants them, with all else untouched.
    lea rsp, [rcx + {CLEAN_FLAGS}]
    popfq
    lea rsp, [rbx]
    lea rsi, [rsp - 128]
    lea rdi, [rcx + {FOUND_RED}]
    mov rdx, rcx
    mov ecx, 16
    rep movsq
    mov rdi, rdx
    mov eax, -1
    mov edx, -1
    and eax, dword ptr [rdi + {COMPONENTS}]
    xsave64 [rdi + {FOUND_X}]
    pop rdi
    fninit
    ldmxcsr dword ptr [rsp]
    fldcw word ptr [rsp + 4]
    add rsp, 8
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    .cfi_adjust_cfa_offset -64
    ret
    .cfi_endproc
    .size storm_hold, . - storm_hold
