//! The record of a thread: everything the runtime knows of it. Its stack and TLS block are apart
//! ([`stack`]): a thread that waits to be started touches neither, and one that has ended has none.
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
pub(crate) mod stack;
pub(crate) mod state;

use crate::context::x86_64::Rest;
use crate::protocol::{join::JoinWord, token::Token};
use crate::tls::hot;
use core::any::Any;
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use identity::Identity;
use stack::Stack;
use state::{After, Outcome};

/// What a thread that panicked leaves to its joiner.
pub(crate) type Payload = Box<dyn Any + Send + 'static>;

/// A thread's body: runs the closure found in the record's packet.
pub(crate) type Body = unsafe extern "C-unwind" fn(&Record);

/// Bytes kept in the record for a closure and its result; larger ones are boxed.
pub(crate) const PACKET: usize = 128;

/// Tells a waiter in `target` from a record.
const WAITER: usize = 1;

/// See the module's documentation.
#[repr(C, align(64))]
pub(crate) struct Record {
    /// Stack pointer of the context at rest (layout: switch.S); 0 while the thread has no context yet, and
    /// whoever dispatches it makes one.
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
    /// The stack and TLS block. A thread that has not started may be given another one in exchange; one
    /// that has ended has none.
    pub stack: Cell<*const Stack>,

    /// The body, called by reveille_body.
    pub body: Cell<Option<Body>>,
    /// Drops the packet's value, if it needs to be dropped.
    pub drop_packet: Cell<Option<unsafe extern "C" fn(&Record)>>,
    /// The runtime (`runtime::Shared`).
    pub runtime: Cell<*const ()>,
    /// What the thread waits for in a join; its waiter while it waits in the lot ([`Record::set_waiter`]).
    pub target: Cell<*const Record>,
    /// Called in the thread at its very end, with an argument (scopes).
    pub at_end: Cell<Option<(unsafe extern "C" fn(*const (), bool), *const ())>>,
    /// How often the thread was preempted.
    pub preemptions: AtomicU64,
    /// Signal mask of the thread while it differs from the workers' usual one.
    pub mask: Cell<u64>,
    /// Control words of the spawner, for the first context.
    pub mxcsr: Cell<u32>,
    pub x87: Cell<u16>,
    /// Count of the spawning worker's switches, to see how long ago that was.
    pub spawned: Cell<u32>,
    /// Its stack is of its runtime's own class, so that it can be exchanged for another of them.
    pub usual_stack: Cell<bool>,
    /// A kernel thread spawned it: its stack goes back to the pool, where the next such spawn looks.
    pub outside: Cell<bool>,
    /// The thread asked for the tick's signal to be blocked, and is told that it is.
    pub masks_tick: Cell<bool>,
    /// Panic payload for the joiner.
    pub payload: UnsafeCell<Option<Payload>>,
    /// What handles show of the thread; valid while `id` is not zero.
    pub identity: UnsafeCell<MaybeUninit<Identity>>,
    /// The identity has a name, which needs to be dropped.
    pub named: Cell<bool>,
    /// Processor time among the threads that use up their slices; means something once it was preempted.
    pub had: Cell<u32>,

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

    /// The stack of a thread that has not ended.
    #[inline(always)]
    pub(crate) fn stack(&self) -> &'static Stack {
        // SAFETY: set at the spawn, taken at the end; stacks are never freed.
        unsafe { &*self.stack.get() }
    }

    /// The thread's waiter (`lot::Waiter`), while it waits in the lot; else null. From any thread, and stale at
    /// once.
    pub(crate) fn waiter(&self) -> *const () {
        let p = self.target_word().load(Ordering::Acquire);
        if p.addr() & WAITER != 0 { p.map_addr(|a| a & !WAITER) } else { core::ptr::null() }
    }

    /// The thread waits with this waiter; null: no longer.
    #[inline(always)]
    pub(crate) fn set_waiter(&self, waiter: *const ()) {
        let tag = if waiter.is_null() { 0 } else { WAITER };
        self.target_word().store(waiter.map_addr(|a| a | tag).cast_mut(), Ordering::Release);
    }

    fn target_word(&self) -> &AtomicPtr<()> {
        // SAFETY: a live aligned pointer; who reads it from elsewhere does so through this too.
        unsafe { AtomicPtr::from_ptr(self.target.as_ptr().cast()) }
    }

    /// Makes the stack's block the thread's: FS base, and the record that its hot words name.
    ///
    /// # Safety
    /// Nobody runs on the stack, which is this thread's.
    #[inline(always)]
    pub(crate) unsafe fn adopt(&self, stack: &'static Stack) {
        self.stack.set(stack);
        self.fs.set(stack.fs.get());
        // SAFETY: the block is live and nobody runs on it.
        unsafe { (*hot::of(stack.fs.get())).record = core::ptr::from_ref(self).cast_mut().cast() };
    }

    /// Writes the frame from which the switch starts the context at `entry` (switch.S).
    ///
    /// # Safety
    /// Nobody runs on the stack.
    #[inline(always)]
    pub(crate) unsafe fn prepare(&self, entry: usize) {
        let rsp = self.stack().top() - size_of::<Rest>();
        // SAFETY: the caller's promise. The callee-saved registers start with whatever is there.
        unsafe {
            let rest = &mut *(rsp as *mut Rest);
            rest.mxcsr = self.mxcsr.get();
            rest.x87 = self.x87.get();
            rest.rip = entry;
        }
        self.rsp.set(rsp);
    }

    /// The thread's first context inherits the floating-point environment of the caller, as a new
    /// pthread does.
    #[inline(always)]
    pub(crate) fn inherit_control_words(&self) {
        let (mxcsr, x87) = crate::context::x86_64::control_words();
        self.mxcsr.set(mxcsr);
        self.x87.set(x87);
    }
}

static_assertions::const_assert!(size_of::<Record>() <= 320);
