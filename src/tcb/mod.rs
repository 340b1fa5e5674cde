//! The record of a thread: everything the runtime knows of it, at the top of the thread's own stack,
//! just below its TLS block.
//!
//! Who may touch what, in which state, is docs/invariants.md; the short form:
//! * running: the thread itself, and the handler that interrupts it, on the same kernel thread
//! * being left: only the side that was switched to, until it has published the record
//! * ready: whoever takes the record out of its queue
//! * blocked: whoever takes it out of what it waits for
//! * done: the joiner, or the handle's `drop`
//!
//! The memory is never given back, so a record may be *read* through a stale handle at any time; `id`
//! tells whether it is still the same thread.
#![allow(unsafe_code)]

pub(crate) mod current;
pub(crate) mod identity;
pub(crate) mod kernel;
pub(crate) mod state;

use crate::protocol::{join::JoinWord, token::Token};
use core::any::Any;
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, AtomicU64};
use identity::Identity;
use state::{After, Outcome};

/// What a thread that panicked leaves to its joiner.
pub(crate) type Payload = Box<dyn Any + Send + 'static>;

/// A thread's body: runs the closure found in the record's packet.
pub(crate) type Body = unsafe extern "C-unwind" fn(&Record);

/// Bytes kept in the record for a closure and its result; larger ones are boxed.
pub(crate) const PACKET: usize = 192;

/// See the module's documentation. Its address is the top of the thread's stack.
#[repr(C, align(64))]
pub(crate) struct Record {
    /// Stack pointer of the context at rest (layout: switch.S).
    pub rsp: Cell<usize>,
    /// FS base of the thread.
    pub fs: Cell<usize>,
    /// The worker that runs the thread (`worker::Worker`); stale unless it runs.
    pub worker: Cell<*const ()>,
    /// Link in a queue or a free list.
    pub next: Cell<*const Record>,
    /// Who waits for the end.
    pub join: JoinWord<Record>,
    /// Number of the thread, unique in the process; 0 in a free slot.
    pub id: AtomicU64,
    /// The park token.
    pub token: Token,
    /// What the other side of a switch has to do with this record.
    pub after: Cell<After>,
    /// How the body ended.
    pub outcome: Cell<Outcome>,
    /// Where the thread is in its life, for dumps and checks.
    pub state: AtomicU8,
    /// Non-zero: leaving or resuming this thread takes the slow path (its own signal mask).
    pub slow: AtomicU8,

    /// The body, called by reveille_body.
    pub body: Cell<Option<Body>>,
    /// Drops the packet's value, if it needs to be dropped.
    pub drop_packet: Cell<Option<unsafe extern "C" fn(&Record)>>,
    /// The stack pointer at which the cancellation buffer is registered.
    pub registered: Cell<usize>,
    /// The runtime (`runtime::Shared`).
    pub runtime: Cell<*const ()>,
    /// What the thread waits for in a join.
    pub target: Cell<*const Record>,
    /// Called in the thread at its very end, with an argument (scopes).
    pub at_end: Cell<Option<(unsafe extern "C" fn(*const (), bool), *const ())>>,
    /// How often the thread was preempted.
    pub preemptions: AtomicU64,
    /// Signal mask of the thread while it differs from the workers' usual one.
    pub mask: Cell<u64>,
    /// The thread asked for the tick's signal to be blocked, and is told that it is.
    pub masks_tick: Cell<bool>,
    /// Panic payload for the joiner.
    pub payload: UnsafeCell<Option<Payload>>,
    /// What handles show of the thread; valid while `id` is not zero.
    pub identity: UnsafeCell<MaybeUninit<Identity>>,
    /// The identity has a name, which needs to be dropped.
    pub named: Cell<bool>,

    /// Lowest usable address of the stack; the guard page is below.
    pub lo: Cell<usize>,
    /// Room for a preempted context when the stack has none, `[spare, spare_end)`.
    pub spare: Cell<usize>,
    /// Stack class of the slot (`slot::Class`).
    pub class: Cell<u32>,
    /// The record made before this one (`dump`).
    pub older: Cell<*const Record>,
    /// The slot must never be given to another thread (the main thread of a fork child).
    pub keep: Cell<bool>,

    /// glibc's `__pthread_unwind_buf_t`: a jump buffer and four words; with room to spare.
    pub unwind_buf: UnsafeCell<[u64; 32]>,
    /// The closure, then its result.
    pub packet: UnsafeCell<Packet>,
}

/// Raw storage of a closure or result.
#[repr(C, align(16))]
pub(crate) struct Packet(pub [MaybeUninit<u8>; PACKET]);

impl Record {
    /// The record as an opaque address, for hot words and carried values.
    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> *const Record {
        self
    }

    /// What handles show of the thread.
    ///
    /// # Safety
    /// The caller holds the thread's handle, or is the thread itself.
    #[inline(always)]
    pub(crate) unsafe fn identity(&self) -> &Identity {
        // SAFETY: written before the thread was published, dropped by the last who may call this.
        unsafe { (*self.identity.get()).assume_init_ref() }
    }

    /// Upper end of the usable stack.
    #[inline(always)]
    pub(crate) fn top(&self) -> usize {
        self as *const Record as usize
    }

    /// Writes the frame from which the switch starts the context at `entry` (switch.S). It inherits the
    /// floating-point environment of the caller, as a new pthread does.
    ///
    /// # Safety
    /// Nobody runs on the stack, whose top is writable.
    #[inline(always)]
    pub(crate) unsafe fn prepare(&self, entry: usize) {
        let rsp = self.top() - size_of::<crate::context::x86_64::Rest>();
        // SAFETY: the caller's promise. The callee-saved registers start with whatever is there.
        unsafe {
            let rest = &mut *(rsp as *mut crate::context::x86_64::Rest);
            crate::context::x86_64::store_control_words(rest);
            rest.rip = entry;
        }
        self.rsp.set(rsp);
    }
}
