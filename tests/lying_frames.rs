//! Frames that are truncated or lie are refused, and what is accepted can be loaded.

use std::arch::asm;
use std::mem;

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use reveille::context::ucontext::{
    capture, setcontext, setcontext_mask, store, swapcontext, xstate_buffer_size,
};
use reveille::context::{Checks, FrameError, FrameRef, Gregs, SavedContext, XstateError};

const MAGIC1: usize = 464;
const EXTENDED_SIZE: usize = 468;
const COMPONENTS: usize = 472;
const SIZE: usize = 480;
const MXCSR: usize = 24;
const HEADER: usize = 512;

#[repr(C, align(64))]
#[derive(Clone)]
struct Area([u8; 16384]);

/// A true frame, copied out of a handler, to be spoiled.
struct Specimen {
    uc: ucontext_t,
    xstate: Box<Area>,
}

static mut SPECIMEN: *mut Specimen = std::ptr::null_mut();

extern "C" fn on_signal(_: c_int, _: *mut siginfo_t, uc: *mut c_void) {
    // SAFETY: the kernel's frame; specimen() waits for us.
    unsafe {
        let frame = FrameRef::new(uc.cast::<ucontext_t>(), Checks::Full).unwrap();
        let Specimen { uc, xstate } = &mut *SPECIMEN;
        capture(uc, &frame, xstate.0.as_mut_ptr(), xstate.0.len()).unwrap();
    }
}

fn specimen() -> Specimen {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap();
    // SAFETY: one at a time; the handler has the right type.
    unsafe {
        let mut specimen = Specimen { uc: mem::zeroed(), xstate: Box::new(Area([0; 16384])) };
        SPECIMEN = &raw mut specimen;
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
        libc::raise(libc::SIGUSR1);
        specimen
    }
}

impl Specimen {
    fn put(&mut self, at: usize, value: u32) -> &mut Specimen {
        self.xstate.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn get(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.xstate.0[at..at + 4].try_into().unwrap())
    }

    fn verdict(&self, checks: Checks) -> Result<FrameRef, FrameError> {
        // SAFETY: the fields are readable, and so is the area, which is larger than any size
        // that this CPU can have for the components it has.
        unsafe { FrameRef::new(&raw const self.uc, checks) }
    }

    /// Refused by everything, with this reason, and nothing happens.
    #[track_caller]
    fn refused(&self, reason: FrameError) {
        assert_eq!(self.verdict(Checks::Full).unwrap_err(), reason);
        let mut other = specimen();
        let before = (other.uc.uc_mcontext.gregs, other.xstate.clone());
        // SAFETY: refused before anything is done; the frame `other` is never returned to.
        unsafe {
            let mut here: ucontext_t = mem::zeroed();
            for call in [setcontext, |uc| setcontext_mask(uc)] {
                *libc::__errno_location() = 0;
                assert_eq!(call(&raw const self.uc), -1);
                assert_eq!(*libc::__errno_location(), libc::EINVAL);
            }
            assert_eq!(swapcontext(&raw mut here, &raw const self.uc), -1);
            let frame = FrameRef::new(&raw mut other.uc, Checks::Full).unwrap();
            assert_eq!(store(&frame, &raw const self.uc), Err(reason));
        }
        assert!(before.0 == other.uc.uc_mcontext.gregs && before.1.0 == other.xstate.0);
    }
}

#[test]
fn a_true_frame_is_accepted() {
    let specimen = specimen();
    for checks in [Checks::Delivered, Checks::Full] {
        let frame = specimen.verdict(checks).unwrap();
        assert_eq!(frame.fpstate().cast_const(), specimen.xstate.0.as_ptr());
        assert_eq!(frame.xstate_len(), specimen.get(SIZE) as usize);
        assert_eq!(frame.gregs(), specimen.uc.uc_mcontext.gregs);
        assert_eq!(frame.uc_flags(), specimen.uc.uc_flags);
        assert_eq!(frame.greg(-1), 0);
        assert_eq!(frame.greg(23), 0);
        assert!(frame.xstate_len() + 4 <= xstate_buffer_size());
    }
}

#[test]
fn frames_without_extended_state_are_refused() {
    let mut lie = specimen();
    lie.uc.uc_flags &= !1;
    lie.refused(FrameError::NoXstate);
    let mut lie = specimen();
    lie.uc.uc_mcontext.fpregs = std::ptr::null_mut();
    lie.refused(FrameError::NullFpstate);
    let mut lie = specimen();
    lie.uc.uc_mcontext.fpregs = lie.uc.uc_mcontext.fpregs.wrapping_byte_add(16);
    lie.refused(FrameError::Misaligned);
}

#[test]
fn truncated_frames_are_refused() {
    let mut lie = specimen();
    lie.put(MAGIC1, 0).refused(FrameError::Magic1);
    let mut lie = specimen();
    let size = lie.get(SIZE);
    lie.put(size as usize, 0).refused(FrameError::Magic2);
    lie.put(SIZE, size - 64).refused(FrameError::Magic2);
    lie.put(SIZE, size + 64).refused(FrameError::Size);
    lie.put(SIZE, u32::MAX).refused(FrameError::Size);
    lie.put(SIZE, 575).refused(FrameError::Size);
    let mut lie = specimen();
    lie.put(EXTENDED_SIZE, size).refused(FrameError::Size);
    // Cut off in good order, but with more components than have room.
    let mut lie = specimen();
    let claimed = lie.get(COMPONENTS);
    lie.put(SIZE, 576).put(576, 0x4650_5845).put(HEADER, claimed);
    assert!(lie.verdict(Checks::Delivered).is_ok());
    lie.refused(FrameError::Xstate(XstateError::Truncated));
}

#[test]
fn extended_state_that_would_fault_is_refused() {
    let mut lie = specimen();
    lie.put(MXCSR, 0x1f80 | 1 << 16).refused(FrameError::Xstate(XstateError::Mxcsr));
    let mut lie = specimen();
    lie.put(HEADER + 4, 1 << 31).refused(FrameError::Xstate(XstateError::Components));
    let mut lie = specimen();
    lie.put(COMPONENTS, 3).put(HEADER, 7).refused(FrameError::Xstate(XstateError::Components));
    let mut lie = specimen();
    lie.put(HEADER + 12, 1 << 31).refused(FrameError::Xstate(XstateError::Compacted));
    for at in (HEADER + 16..HEADER + 64).step_by(4) {
        let mut lie = specimen();
        lie.put(at, 1).refused(FrameError::Xstate(XstateError::Reserved));
    }
}

#[test]
fn registers_that_cannot_be_are_refused() {
    for (register, value, reason) in [
        (libc::REG_CSGSFS, 0x23, FrameError::Segment),
        (libc::REG_RIP, 0, FrameError::Address),
        (libc::REG_RIP, -4096, FrameError::Address),
        (libc::REG_RSP, 0, FrameError::Address),
        (libc::REG_RSP, i64::MIN, FrameError::Address),
    ] {
        let mut lie = specimen();
        lie.uc.uc_mcontext.gregs[register as usize] = value;
        lie.refused(reason);
    }
}

#[test]
fn writing_keeps_the_note_and_refuses_what_does_not_fit() {
    let from = specimen();
    let mut to = specimen();
    let note: Vec<u8> = to.xstate.0[464..512].to_vec();
    let mut gregs: Gregs = [7; 23];
    // SAFETY: these frames are never returned to.
    unsafe {
        let frame = to.verdict(Checks::Full).unwrap();
        let (area, len) = (from.xstate.0.as_ptr(), from.get(SIZE) as usize);
        frame.write_xstate(area, len).unwrap();
        assert_eq!(frame.write_xstate(area, 500), Err(FrameError::Size));
        frame.write_gregs(&gregs);
        frame.write_mask(0x5a5a);
        assert_eq!(frame.sigmask(), 0x5a5a);
        assert_eq!(SavedContext::new().store_into_frame(&frame), Err(FrameError::Address));
        gregs[18..].copy_from_slice(&from.uc.uc_mcontext.gregs[18..]);
        assert_eq!(frame.gregs()[..19], gregs[..19]);
    }
    assert_eq!(to.xstate.0[464..512], note);
    to.put(COMPONENTS, 3).put(HEADER, 3).put(SIZE, 576).put(576, 0x4650_5845);
    let mut from = from;
    let all = from.get(COMPONENTS);
    from.put(HEADER, all);
    // SAFETY: as above.
    unsafe {
        let frame = to.verdict(Checks::Full).unwrap();
        let (area, len) = (from.xstate.0.as_ptr(), from.get(SIZE) as usize);
        assert_eq!(frame.write_xstate(area, len), Err(FrameError::NoRoom));
        let needed = frame.xstate_len() + 4;
        let mut uc: ucontext_t = mem::zeroed();
        let mut buffer = Area([0; 16384]);
        let at = buffer.0.as_mut_ptr();
        let capture = |at, len| capture(&raw mut uc, &frame, at, len);
        let mut capture = capture;
        assert_eq!(capture(at, needed - 1), Err(FrameError::NoRoom));
        assert_eq!(capture(at.add(8), needed), Err(FrameError::Misaligned));
        assert_eq!(capture(at, needed), Ok(()));
    }
}

/// Loads the area, which must not fault, and puts the own state back.
unsafe fn load(area: *const u8) {
    let mut own = Area([0; 16384]);
    // SAFETY: the own state is saved and restored round it; no Rust code runs in between.
    // Tiles (bits 17, 18) and protection keys (bit 9) are left out: they stay as they are.
    unsafe {
        asm!(
            "xsave64 [{own}]",
            "xrstor64 [{area}]",
            "xrstor64 [{own}]",
            own = in(reg) own.0.as_mut_ptr(),
            area = in(reg) area,
            in("eax") 0xffff_fdff_u32 & !(3 << 17),
            in("edx") 0x7fff_ffff_u32,
        );
    }
}

/// Random damage to what is checked: either it is refused, or `xrstor` does not fault.
#[test]
fn what_is_accepted_can_be_loaded() {
    let fresh = specimen();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % below
    };
    let size = fresh.get(SIZE) as usize;
    let interesting = [0..32, 464..512, 512..576, size - 8..size + 8];
    let (mut accepted, mut refused) = (0, 0);
    let mut lie = Specimen { uc: fresh.uc, xstate: fresh.xstate.clone() };
    lie.uc.uc_mcontext.fpregs = lie.xstate.0.as_mut_ptr().cast();
    for round in 0..20_000 {
        lie.xstate.0[..size + 64].copy_from_slice(&fresh.xstate.0[..size + 64]);
        for _ in 0..1 + random(3) {
            let range = interesting[random(4)].clone();
            let at = range.start + random(range.len());
            match random(3) {
                0 => lie.xstate.0[at] ^= 1 << random(8),
                1 => lie.xstate.0[at] = random(256) as u8,
                _ => lie.xstate.0[at] = [0, 0xff, 0x7f, 0x80][random(4)],
            }
        }
        match lie.verdict(Checks::Full) {
            Ok(frame) => {
                // SAFETY: that this is sound is what is tested.
                unsafe { load(frame.fpstate()) };
                accepted += 1;
            }
            Err(_) => refused += 1,
        }
        assert_eq!(accepted + refused, round + 1);
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
}
