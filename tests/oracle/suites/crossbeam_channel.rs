//! The tests of crossbeam-channel: `bounded(n)` and so on are reveille's channels here, `select!` is reveille's.
//! Only the macro below it that the tests of `mpsc` use is crossbeam's, taken from its source.
#![feature(custom_test_frameworks, test)]
#![test_runner(crate::run)]
#![allow(warnings, macro_expanded_macro_exports_accessed_by_absolute_paths)]

extern crate oracle as std;
extern crate rand08 as rand;
extern crate self as crossbeam_channel;
extern crate test as test_crate;

pub use reveille::sync::mpmc::{
    IntoIter, Iter, ReadyTimeoutError, Receiver, RecvError, RecvTimeoutError, Select,
    SelectTimeoutError, SelectedOperation, SendError, SendTimeoutError, Sender, TryIter,
    TryReadyError, TryRecvError, TrySelectError, TrySendError, after, at, channel as unbounded,
    never, sync_channel as bounded, tick,
};
pub use reveille::{select, select_biased};

fn run(tests: &[&test_crate::TestDescAndFn]) {
    std::runner::run(include_str!("../lists/crossbeam_channel.txt"), tests);
}

/// What the macro calls, with its cases in an array.
pub mod internal {
    use super::{Receiver, Select, SelectedOperation, Sender};
    use std::time::Duration;

    pub trait SelectHandle {
        fn add<'a>(&'a self, to: &mut Select<'a>);
    }

    impl<T> SelectHandle for Sender<T> {
        fn add<'a>(&'a self, to: &mut Select<'a>) {
            to.send(self);
        }
    }

    impl<T> SelectHandle for Receiver<T> {
        fn add<'a>(&'a self, to: &mut Select<'a>) {
            to.recv(self);
        }
    }

    type Cases<'a> = [(&'a dyn SelectHandle, usize, *const u8)];

    fn all<'a>(cases: &Cases<'a>, biased: bool) -> Select<'a> {
        let mut select = if biased { Select::new_biased() } else { Select::new() };
        cases.iter().for_each(|case| case.0.add(&mut select));
        select
    }

    pub fn select<'a>(cases: &mut Cases<'a>, biased: bool) -> SelectedOperation<'a> {
        all(cases, biased).select()
    }

    pub fn try_select<'a>(cases: &mut Cases<'a>, biased: bool) -> Option<SelectedOperation<'a>> {
        all(cases, biased).try_select().ok()
    }

    pub fn select_timeout<'a>(
        cases: &mut Cases<'a>,
        timeout: Duration,
        biased: bool,
    ) -> Option<SelectedOperation<'a>> {
        all(cases, biased).select_timeout(timeout).ok()
    }
}

include!(concat!(env!("OUT_DIR"), "/crossbeam_channel/modules.rs"));

/// crossbeam's name for threads in a scope.
pub struct Scope<'scope, 'env>(&'scope std::thread::Scope<'scope, 'env>);

impl<'scope> Scope<'scope, '_> {
    pub fn spawn<T: Send + 'scope>(
        &self,
        f: impl FnOnce(()) -> T + Send + 'scope,
    ) -> std::thread::ScopedJoinHandle<'scope, T> {
        self.0.spawn(move || f(()))
    }
}

pub fn scope<'env, R>(
    f: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> R,
) -> std::thread::Result<R> {
    Ok(std::thread::scope(|s| f(&Scope(s))))
}
