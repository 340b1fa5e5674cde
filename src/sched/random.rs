//! Numbers that look random: for choices where any will do, and that must not be the same each time.
#![forbid(unsafe_code)]

/// The number after `x`, which is not zero: Marsaglia's xorshift32 ("Xorshift RNGs", Journal of Statistical
/// Software 8(14), 2003).
#[inline]
pub(crate) fn after(mut x: u32) -> u32 {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    x
}
