//! The running thread's record.

use super::Record;
use crate::tls::hot;

/// The record of the running thread; `None` on a plain kernel thread.
#[inline(always)]
pub(crate) fn get() -> Option<&'static Record> {
    // SAFETY: the word is null or the address of this thread's record, which is never freed.
    unsafe { hot::record().cast::<Record>().as_ref() }
}
