//! A thread with a name, a stack size, a way to start.

use super::join::{JoinHandle, Joining};
use super::spawn::{self, Options};
use crate::context::start::StartMethod;
use crate::tcb::current;
use crate::tcb::identity::Name;
use crate::worker::Shared;
use std::io;

/// Configures a new thread; see [`std::thread::Builder`].
///
/// # Examples
/// ```
/// let t = reveille::thread::Builder::new()
///     .name("parser".into())
///     .stack_size(256 * 1024)
///     .spawn(|| reveille::thread::current().name().map(str::to_owned))?;
/// assert_eq!(t.join().unwrap().as_deref(), Some("parser"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use = "nothing starts before spawn"]
pub struct Builder {
    pub(crate) options: Options,
    pub(crate) shared: Option<SharedRef>,
}

/// The runtime that was named.
#[derive(Clone, Copy)]
pub(crate) struct SharedRef(pub &'static Shared);

impl core::fmt::Debug for SharedRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Runtime")
    }
}

impl Builder {
    /// A builder with the runtime's settings.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// The thread's name, for messages.
    ///
    /// # Panics
    /// If there is a null byte in it; std does so when it spawns the thread.
    pub fn name(mut self, name: String) -> Builder {
        assert!(!name.contains('\0'), "thread name may not contain interior null bytes");
        self.options.name = Some(Name::new(name));
        self
    }

    /// Bytes of stack at least; rounded up to pages. Default: the runtime's.
    pub fn stack_size(mut self, bytes: usize) -> Builder {
        self.options.stack = Some(bytes);
        self
    }

    /// How the thread's first context is made. Default: the runtime's.
    pub fn start_method(mut self, method: StartMethod) -> Builder {
        self.options.start = Some(method);
        self
    }

    /// Spawns the thread.
    ///
    /// # Errors
    /// If the stack size is too small or there is no memory for it, or if the default runtime was needed
    /// and could not start. Nothing has been started then.
    #[inline]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: nothing is borrowed.
        let inner = unsafe { self.spawn_inner(None, f)? };
        Ok(JoinHandle { inner })
    }

    /// # Safety
    /// What `f` and its result borrow outlives the thread.
    #[inline]
    pub(crate) unsafe fn spawn_inner<F, T>(
        self,
        at_end: spawn::AtEnd,
        f: F,
    ) -> io::Result<Joining<T>>
    where
        F: FnOnce() -> T,
    {
        let shared = match (self.shared, current::get()) {
            (Some(s), _) => s.0,
            // SAFETY: a running thread's runtime; runtimes are never freed.
            (None, Some(me)) => unsafe { &*me.runtime.get().cast::<Shared>() },
            (None, None) => crate::runtime::default_shared().map_err(crate::Error::into_io)?,
        };
        // SAFETY: the caller's promise.
        let spawned = unsafe { spawn::spawn::<F, T>(shared, self.options, at_end, f) };
        match spawned {
            // SAFETY: just spawned with a result of this type.
            Ok(record) => Ok(unsafe { Joining::new(record) }),
            Err(e) => Err(e.into_io()),
        }
    }
}
