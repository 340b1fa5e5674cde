//! The assembly that calls up into the worker: put together here, where both ends are known.
//!
//! `context::x86_64` declares what it defines; who is called, and where a record keeps what, is filled in by
//! name.

use super::{reveille_finish, reveille_start};
use crate::context::x86_64::Saved;
use crate::tcb::Record;
use crate::tcb::stack::Stack;
use crate::tls::hot::HotWords;
use core::mem::offset_of;

core::arch::global_asm!(
    include_str!("../../asm/x86_64/resume.S"),
    finish = sym reveille_finish,
    XSAVE = const size_of::<Saved>(),
    TARGET = const offset_of!(Saved, target),
    RFLAGS = const offset_of!(Saved, rflags),
    RIP = const offset_of!(Saved, rip),
    R8 = const offset_of!(Saved, r8),
    R9 = const offset_of!(Saved, r9),
    R10 = const offset_of!(Saved, r10),
    R11 = const offset_of!(Saved, r11),
    R12 = const offset_of!(Saved, r12),
    R13 = const offset_of!(Saved, r13),
    R14 = const offset_of!(Saved, r14),
    R15 = const offset_of!(Saved, r15),
    RDI = const offset_of!(Saved, rdi),
    RSI = const offset_of!(Saved, rsi),
    RBP = const offset_of!(Saved, rbp),
    RBX = const offset_of!(Saved, rbx),
    RDX = const offset_of!(Saved, rdx),
    RAX = const offset_of!(Saved, rax),
    RCX = const offset_of!(Saved, rcx),
);
core::arch::global_asm!(
    include_str!("../../asm/x86_64/entry.S"),
    start = sym reveille_start,
    RSP = const offset_of!(Record, rsp),
    FS = const offset_of!(Record, fs),
    RECORD = const offset_of!(HotWords, record),
    STACK = const offset_of!(Record, stack),
    REGISTERED = const offset_of!(Stack, registered),
    FS_BASE = const offset_of!(Stack, fs),
    ABOVE = const offset_of!(Stack, above),
    BODY = const offset_of!(Record, body),
);
