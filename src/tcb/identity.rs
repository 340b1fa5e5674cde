//! Who a thread is, as its handles show it: reveille's threads and plain kernel threads alike.

use super::Record;
use super::kernel::KernelThread;
use std::sync::Arc;

/// A thread's name, shared by its handles; one word.
#[derive(Clone, Debug)]
pub(crate) struct Name(Arc<NameText>);

#[derive(Debug)]
struct NameText(Box<str>);

impl Name {
    pub(crate) fn new(name: String) -> Name {
        Name(Arc::new(NameText(name.into())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0.0
    }
}

/// See the module's documentation.
#[derive(Clone)]
pub(crate) enum Identity {
    /// A reveille thread. The record may belong to another thread by now: `id` tells.
    Reveille { record: &'static Record, id: u64, name: Option<Name> },
    /// A kernel thread.
    Kernel(Arc<KernelThread>),
}

// SAFETY: the record is used through its atomics only; it is never freed.
unsafe impl Send for Identity {}
// SAFETY: as above.
unsafe impl Sync for Identity {}

impl Identity {
    pub(crate) fn id(&self) -> u64 {
        match self {
            Identity::Reveille { id, .. } => *id,
            Identity::Kernel(k) => k.id,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Identity::Reveille { name, .. } => name.as_ref().map(Name::as_str),
            Identity::Kernel(k) => k.name.as_deref(),
        }
    }
}
