//! What the library makes of the machine it runs on.
//!
//! [`report`] looks at each thing that a runtime depends on and says whether it is used, or what is used
//! in its place. `reveille doctor` prints it.

use crate::sys::{self, membarrier, memory, signal};
use crate::tls::{block, glibc, modules};
use crate::{Runtime, slot};

/// What follows from a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Nothing.
    Info,
    /// It is there and is used.
    Used,
    /// It is not there; something else is used, at some cost.
    Fallback,
    /// It is not there and nothing replaces it: no runtime can start.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub value: String,
    /// What follows.
    pub state: State,
}

/// Examines the machine, starting a runtime with one worker to see what it uses.
///
/// # Examples
/// ```
/// for f in reveille::doctor::report() {
///     println!("{}: {} ({:?})", f.name, f.value, f.state);
/// }
/// ```
#[must_use]
pub fn report() -> Vec<Finding> {
    let mut out = Vec::new();
    let mut say = |name, value: String, state| out.push(Finding { name, value, state });
    let or_missing = |ok| if ok { State::Used } else { State::Missing };
    let or_fallback = |ok| if ok { State::Used } else { State::Fallback };
    let yes_no = |b| String::from(if b { "yes" } else { "no" });

    let fsgsbase = sys::has_fsgsbase();
    say("FS base written in user mode", yes_no(fsgsbase), or_missing(fsgsbase));
    let xsave = crate::context::xstate::size();
    say("extended state (XSAVE)", format!("{xsave} bytes"), or_missing(xsave != 0));
    say("signal frame", format!("{} bytes", signal::min_signal_stack()), State::Info);
    say("C library", format!("glibc {}", glibc::version()), State::Info);
    let symbols = glibc::get();
    let symbols_ok = symbols.is_ok();
    let value = match symbols {
        Ok(g) => format!("all found; thread block {} bytes", g.static_size),
        Err(e) => e.to_string(),
    };
    say("C library's thread symbols", value, or_missing(symbols_ok));

    let runtime = Runtime::builder().workers(1).build();
    match &runtime {
        Ok(rt) => {
            rt.run(|| ());
            say("runtime with one worker", "starts".into(), State::Used);
        }
        Err(e) => say("runtime with one worker", e.to_string(), State::Missing),
    }
    let calibrated = block::template().is_some();
    say("thread block as calibrated", yes_no(calibrated), or_missing(calibrated));
    let guards = memory::guard_by_madvise();
    let value =
        if guards { "madvise, no mapping of their own" } else { "mprotect, one mapping each" };
    say("guard pages", value.into(), or_fallback(guards));
    let barrier = membarrier::available();
    let value = if barrier { "membarrier, cheap for the frequent side" } else { "full fences" };
    say("asymmetric fence", value.into(), or_fallback(barrier));
    let counters = modules::counters_found();
    let value =
        if counters { "by the loader's counters" } else { "by asking the loader each time" };
    say("newly loaded libraries are seen", value.into(), or_fallback(counters));
    say("least stack of a thread", format!("{} bytes", slot::min_stack()), State::Info);
    if let Ok(rt) = runtime {
        say("shortest time slice", format!("{:?}", rt.shortest_slice()), State::Info);
        let _ = rt.shutdown();
    }
    out
}
