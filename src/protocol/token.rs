//! The park token: one word, at most one token, no wake-up lost.
//!
//! The thread that parks:
//! 1. takes the token if it is there ([`Token::try_take`]) and goes on
//! 2. is taken off its stack; then, on its behalf, EMPTY becomes PARKED ([`Token::park`]); if the token came
//!    meanwhile it is taken instead and the thread is ready again
//!
//! Whoever unparks ([`Token::unpark`]): EMPTY becomes NOTIFIED; PARKED becomes EMPTY, and the caller, now the
//! only one who may, makes the thread ready.
//!
//! A thread that parks for a limited time waits in the lot, with the token's address as the key: its check there is
//! EMPTY becomes LOT ([`Token::enter_lot`]). An unpark makes that NOTIFIED, and the caller wakes the key. Once
//! awake, for whatever reason, the thread empties the word ([`Token::leave_lot`]).
//!
//! Each transition is a read-modify-write, also NOTIFIED to NOTIFIED: what was written before *any* unpark
//! is visible after the park that takes the token. And a woken thread finds nothing to clear: a plain store
//! of EMPTY at that place could overwrite a second token whose news the thread has not seen.
#![forbid(unsafe_code)]

use crate::prim::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const PARKED: u32 = 2;
const LOT: u32 = 3;

/// See the module's documentation. All zeroes is an empty token.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Token(AtomicU32);

/// What an unpark leaves to its caller.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unparking {
    /// Nothing: the token is there for the next park.
    Stored,
    /// The thread waited; the caller, and nobody else, makes it ready.
    Rested,
    /// The thread waits in the lot; the caller wakes the token's key there.
    InLot,
}

/// What became of an attempt to park.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parking {
    /// The thread waits; an unpark makes it ready.
    Parked,
    /// The token was there and has been taken: the caller makes the thread ready.
    Notified,
}

impl Token {
    /// Empties the token of a thread that nobody knows yet.
    #[inline(always)]
    pub(crate) fn reset(&self) {
        self.0.store(EMPTY, Ordering::Relaxed);
    }

    /// Step 1, by the thread itself.
    #[must_use]
    #[inline]
    pub(crate) fn try_take(&self) -> bool {
        // Seeing nothing decides nothing: step 2 looks again.
        self.0.load(Ordering::Relaxed) == NOTIFIED
            && self.0.swap(EMPTY, Ordering::Acquire) == NOTIFIED
    }

    /// Step 2, on behalf of a thread that has left its stack.
    #[inline]
    pub(crate) fn park(&self) -> Parking {
        let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        if self.0.compare_exchange(EMPTY, PARKED, ok, failed).is_ok() {
            return Parking::Parked;
        }
        // Only the thread itself takes its token, so it is there still.
        self.0.swap(EMPTY, Ordering::Acquire);
        Parking::Notified
    }

    /// The check of a thread that waits in the lot: false, there is a token.
    #[must_use]
    pub(crate) fn enter_lot(&self) -> bool {
        self.0.compare_exchange(EMPTY, LOT, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The thread has left the lot, and takes the token if there is one.
    pub(crate) fn leave_lot(&self) {
        self.0.swap(EMPTY, Ordering::Acquire);
    }

    /// Makes the token available.
    #[inline]
    pub(crate) fn unpark(&self) -> Unparking {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let next = if now == PARKED { EMPTY } else { NOTIFIED };
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, next, ok, failed) {
                Ok(PARKED) => return Unparking::Rested,
                Ok(LOT) => return Unparking::InLot,
                Ok(_) => return Unparking::Stored,
                Err(other) => now = other,
            }
        }
    }

    /// As steps 1 and 2, for a thread that sleeps in the kernel: `sleep` is a futex wait while the word has
    /// the value given. May return without a token, as any park may.
    pub(crate) fn park_in_kernel(&self, sleep: impl FnOnce(&AtomicU32, u32)) {
        if !self.try_take() && self.park() == Parking::Parked {
            sleep(&self.0, PARKED);
            // Takes a token that came since, and the claim to a wake-up that did not come.
            self.0.swap(EMPTY, Ordering::Acquire);
        }
    }

    /// The key that [`Token::enter_lot`]'s thread waits for.
    pub(crate) fn key(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// The word that [`Token::park_in_kernel`] sleeps on, for the wake.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}
