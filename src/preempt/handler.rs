//! The signal handler of the tick.
//!
//! It runs on the worker's signal stack with the tick's signal blocked, and
//! 1. tells a tick from any other use of the signal by its siginfo, and passes others on
//! 2. takes a [`Snapshot`] and decides
//! 3. to switch, copies the frame to the thread's own stack (or its spare area) as a context at rest,
//!    and jumps to the worker's loop, which unblocks the signal and goes on
//!
//! It allocates nothing, locks nothing, calls no libc function, panics never. A frame that the checks of
//! [`FrameRef`] refuse is left alone; a thread that was switched never returns through `sigreturn`.

use super::decide::{Decision, Snapshot, decide};
use super::pass_on::pass_on;
use super::site::Site;
use crate::context::preempted;
use crate::context::x86_64::{RED_ZONE, RESUME_WORDS, Rest, in_resume_window, reveille_leave};
use crate::context::{Checks, FrameRef};
use crate::tcb::Record;
use crate::tcb::state::After;
use crate::tls::hot;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The actions that were in force before ours, by signal number.
static PREVIOUS: [AtomicUsize; 65] = [const { AtomicUsize::new(0) }; 65];

/// Installs the handler for `signo`, once in the life of the process.
pub(crate) fn install(signo: i32) -> Result<(), nix::errno::Errno> {
    super::install::once(signo, reveille_on_signal, &PREVIOUS[signo as usize])
}

unsafe extern "C" {
    safe fn reveille_on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void);
}

core::arch::global_asm!(
    include_str!("../../asm/x86_64/handler.S"),
    handler = sym on_signal,
    NOT_AC = const !(1i32 << 18),
);

extern "C" fn on_signal(signo: c_int, info: *mut libc::siginfo_t, uc: *mut c_void) {
    if crate::context::start::is_start(info) {
        // SAFETY: the frame is the kernel's, on the stack of the thread that is being started.
        unsafe { crate::context::start::capture(uc.cast()) };
        return;
    }
    // SAFETY: the kernel passes a live siginfo.
    let Some(value) = (unsafe { ours(info) }) else {
        return pass_on(&PREVIOUS[signo as usize], signo, info, uc);
    };
    // SAFETY: the word is null or this thread's record, which is never freed.
    if let Some(record) = unsafe { hot::record().cast::<Record>().as_ref() } {
        let site = record.worker.get().cast::<Site>();
        if value & !(PRECISE_TICK | ALARM) == site as usize {
            // SAFETY: the worker of a record that runs is live; the frame is the kernel's.
            unsafe { on_tick(record, &*site, value & (PRECISE_TICK | ALARM), uc.cast()) };
        }
    }
    // Else a late tick of a worker that is at its end.
}

/// Set in the value of the precise timer's ticks; addresses of workers are even.
pub(crate) const PRECISE_TICK: usize = 1;
/// Set in the value of the alarm's.
const ALARM: usize = 2;

/// Marks the values that our timers send: no address of a program looks like this.
const TAG: usize = 0x5eed << 48;

/// What a timer of ours must send so that its signal is taken for a tick of the worker at `address`.
pub(crate) fn tagged(address: usize) -> usize {
    TAG | address
}

/// What the alarm of the worker at `address` must send.
pub(crate) fn alarm_of(address: usize) -> usize {
    tagged(address | ALARM)
}

/// The address in the value of a timer of ours; `None` if the signal is anybody else's.
///
/// # Safety
/// `info` is live.
#[inline(always)]
unsafe fn ours(info: *const libc::siginfo_t) -> Option<usize> {
    // SAFETY: the caller's promise; si_value is valid for SI_TIMER.
    let (code, value) = unsafe { ((*info).si_code, (*info).si_value().sival_ptr as usize) };
    (code == libc::SI_TIMER && value & (0xffff << 48) == TAG).then_some(value & !TAG)
}

/// # Safety
/// `record` was interrupted on the worker of `site`; `uc` is the frame.
#[inline(always)]
unsafe fn on_tick(record: &Record, site: &Site, kind: usize, uc: *mut libc::ucontext_t) {
    site.ticks.bump();
    if kind & ALARM != 0 {
        // SAFETY: the caller's promise.
        return unsafe { on_alarm(record, site, uc) };
    }
    if !site.ticker.counts(kind & PRECISE_TICK != 0) {
        return;
    }
    let waits = (site.waits)(site);
    let fresh = site.switches.get() != site.seen.get();
    site.seen.set(site.switches.get());
    site.ticker.on_tick(site, waits, fresh);
    let mut stays = fresh;
    if waits.sliced {
        (site.turn)(site, fresh);
        stays |= lags(record, site, fresh) && !waits.fresh;
    }
    // Somebody still waits at a tick: there is work for two. While threads give way by themselves the
    // rarer kind of tick decides, since moving one of them costs more than it may save.
    if waits.idle_worker
        && (waits.fresh || waits.sliced)
        && (!fresh || site.ticker.is_cooperative())
    {
        (site.wake_idle)(site);
    }
    let due = Due { fresh: stays, waiting: waits.fresh || waits.sliced, after: After::Preempted };
    // SAFETY: the caller's promise.
    unsafe { take_away(record, site, &due, uc) };
}

/// A sleeper's time has come: it goes before whoever runs, and as long as the worker cannot be taken away from
/// that one the alarm rings again.
///
/// # Safety
/// As [`on_tick`].
#[cold]
unsafe fn on_alarm(record: &Record, site: &Site, uc: *mut libc::ucontext_t) {
    site.alarm.rang();
    if (site.rang)(site) {
        return; // the worker slept
    }
    let due = Due { fresh: false, waiting: true, after: After::Interrupted };
    // SAFETY: the caller's promise. It does not return if the thread is switched.
    unsafe { take_away(record, site, &due, uc) };
    site.alarm.again();
}

/// Whether the thread's time is over, and how it leaves if so.
struct Due {
    fresh: bool,
    waiting: bool,
    after: After,
}

/// Takes the worker away from the interrupted thread, if that is due and can be; returns if not.
///
/// # Safety
/// As [`on_tick`].
#[inline(always)]
unsafe fn take_away(record: &Record, site: &Site, due: &Due, uc: *mut libc::ucontext_t) {
    // SAFETY: the frame is the kernel's.
    let Ok(frame) = (unsafe { FrameRef::new(uc, Checks::Delivered) }) else { return };
    let rsp = frame.greg(libc::REG_RSP) as usize;
    let rip = frame.greg(libc::REG_RIP);
    let place = place_for(record, rsp, frame.xstate_len());
    let known_mask = if record.slow.load(Ordering::Relaxed) == 0 {
        site.usual_mask.get()
    } else {
        record.mask.get()
    };
    let snapshot = Snapshot {
        in_thread: site.loop_record.get() != record.as_ptr(),
        off: hot::off_count(),
        on_signal_stack: site.on_signal_stack(rsp),
        in_window: in_resume_window(rip) || super::action::is_returning(rip),
        foreign_mask: frame.sigmask() != known_mask,
        fresh: due.fresh,
        waiting: due.waiting,
        can_save: place != 0,
    };
    if snapshot.foreign_mask && snapshot.in_thread && snapshot.off == 0 && !snapshot.on_signal_stack
    {
        found_mask(record, known_mask, frame.sigmask(), site.usual_mask.get());
    }
    match decide(&snapshot) {
        Decision::Ignore(_) => {}
        Decision::Defer => hot::set_pending(1),
        Decision::Switch => {
            // The thread that the loop dispatches next begins its slice at this tick.
            site.seen.set(site.switches.get() + 1);
            site.preemptions.bump();
            // SAFETY: the decision found the context whole and the place free.
            unsafe { leave(record, site, &frame, place, due.after) };
        }
    }
}

/// Counts the processor time of the slice that may end now. True if the thread has had so little that it should go
/// on. A fresh thread has not used the whole time since the last tick, so it is left out.
#[inline]
fn lags(record: &Record, site: &Site, fresh: bool) -> bool {
    let now = crate::sys::cpu_time();
    let since = site.since.replace(now);
    let counts = !fresh && since != 0 && site.loop_record.get() != record.as_ptr();
    counts && (site.charge)(site, record, now.saturating_sub(since) as u32)
}

/// The thread's mask was changed behind our back.
///
/// More signals blocked than before: this may be a handler of the program's. It must end on the worker where
/// it began, for its sigreturn puts that one's signal stack back in force, and two workers would share it.
/// So ticks do not take the thread away while that lasts; if it leaves by itself, it takes the mask along
/// (the slow way asks the kernel for it). Any other mask is none of a handler's: the thread's own from now on.
#[cold]
fn found_mask(record: &Record, known: u64, found: u64, usual: u64) {
    let mask = if found & known == known { known } else { found };
    record.mask.set(mask);
    record.slow.store(u8::from(mask == known || mask != usual), Ordering::Relaxed);
}

/// Saves the interrupted context at `place` and goes on in the worker's loop.
///
/// # Safety
/// As [`on_tick`]; `place` comes from [`place_for`] for this frame.
unsafe fn leave(record: &Record, site: &Site, frame: &FrameRef, place: usize, after: After) -> ! {
    // From here the thread counts as being switched: the next tick is not for it.
    hot::off();
    // SAFETY: `place` is free room of the thread's own, large enough.
    record.rsp.set(unsafe { preempted::save(frame, place) });
    record.after.set(after);
    record.preemptions.fetch_add(1, Ordering::Relaxed);
    let to = site.loop_record.get();
    // SAFETY: the loop's context rests while a thread runs.
    unsafe {
        reveille_leave(
            core::ptr::null_mut(),
            (*to).rsp.get(),
            (*to).fs.get(),
            record,
            core::ptr::from_ref(site).cast(),
        )
    }
}

/// Where to save a context interrupted at `rsp`: below its red zone, or in the spare area when the
/// stack has no room or is not the thread's own. 0 if even the resume's two words have none.
#[inline(always)]
fn place_for(record: &Record, rsp: usize, xstate_len: usize) -> usize {
    /// Frames of the code that runs below the saved state before it is resumed, unoptimized.
    const BELOW: usize = 4096;
    let size = preempted::size(xstate_len);
    let (lo, top) = (record.stack().lo.get(), record.stack().top());
    let own = (lo..=top).contains(&rsp);
    if own && rsp - lo < RED_ZONE + RESUME_WORDS {
        return 0;
    }
    let (spare, spare_end) = record.stack().spare();
    if (spare..spare_end).contains(&rsp) {
        // A handler of the program's that interrupted the resume of a thread saved there.
        return 0;
    }
    let room = RED_ZONE + RESUME_WORDS + size + size_of::<Rest>() + BELOW + 64;
    if own && rsp - lo > room {
        (rsp - RED_ZONE - RESUME_WORDS - size) & !63
    } else {
        (spare_end - size) & !63
    }
}
