//! The `select!` macro: reads its cases one by one, then is a [`Select`](super::Select) and a `match`.
//!
//! Each step of the reading binds one handle to a name of its own; as names in a macro belong to the step that wrote
//! them, these do not collide, and the last step can use them all.

/// Waits for one of several channel operations and runs what belongs to it.
///
/// ```text
/// select! {
///     recv(receiver) -> result => ...     result: Result<T, RecvError>
///     send(sender, message) -> result => ...     result: Result<(), SendError<T>>
///     default => ...                      if nothing can be done at once
///     default(timeout) => ...             if nothing could be done for that long
/// }
/// ```
///
/// `result` is a pattern. A message is evaluated when its operation has been chosen. If several operations are
/// ready, one is chosen at random. There is one `default` at most, and it stands last. Without any case it waits for
/// ever.
///
/// # Examples
/// ```
/// use reveille::{select, sync::mpmc, thread};
/// use std::time::Duration;
/// let ((s, numbers), (done, end)) = (mpmc::channel(), mpmc::channel());
/// let t = thread::spawn(move || {
///     (1..=3).for_each(|i| s.send(i).unwrap());
///     done.send(()).unwrap();
/// });
/// let mut sum = 0;
/// loop {
///     select! {
///         recv(numbers) -> n => match n {
///             Ok(n) => sum += n,
///             Err(_) => break,
///         },
///         recv(end) -> _ => {}
///         default(Duration::from_secs(10)) => panic!("nothing happens"),
///     }
/// }
/// assert_eq!(sum, 6);
/// # t.join().unwrap();
/// ```
#[macro_export]
macro_rules! select {
    () => { loop { $crate::thread::park() } };
    ($($cases:tt)+) => {{
        let mut select = $crate::sync::mpmc::Select::new();
        $crate::__select_case!(select [0usize] [] $($cases)+)
    }};
}

/// As [`select!`]; of several operations that are ready, the one that is written first is chosen.
///
/// # Examples
/// ```
/// use reveille::{select_biased, sync::mpmc};
/// let ((s, urgent), (t, other)) = (mpmc::channel(), mpmc::channel());
/// t.send(1).unwrap();
/// s.send(2).unwrap();
/// select_biased! {
///     recv(urgent) -> message => assert_eq!(message, Ok(2)),
///     recv(other) -> _ => unreachable!(),
/// }
/// ```
#[macro_export]
macro_rules! select_biased {
    () => { $crate::select!() };
    ($($cases:tt)+) => {{
        let mut select = $crate::sync::mpmc::Select::new_biased();
        $crate::__select_case!(select [0usize] [] $($cases)+)
    }};
}

/// One step of [`select!`]: the select, the index of the next case, the cases read so far, the rest.
#[doc(hidden)]
#[macro_export]
macro_rules! __select_case {
    // The separators after a body.
    ($select:ident [$n:expr] [$($known:tt)*] , $($rest:tt)*) => {
        $crate::__select_case!($select [$n] [$($known)*] $($rest)*)
    };

    // A body in braces needs no comma.
    ($select:ident [$n:expr] [$($known:tt)*]
     recv($r:expr $(,)?) -> $result:pat => $body:block $($rest:tt)*) => {
        match &$r {
            handle => {
                $select.recv(handle);
                $crate::__select_case!($select [$n + 1] [$($known)*
                    { [$n] [recv(handle)] [$result] [$body] }] $($rest)*)
            }
        }
    };
    ($select:ident [$n:expr] [$($known:tt)*]
     recv($r:expr $(,)?) -> $result:pat => $body:expr $(, $($rest:tt)*)?) => {
        match &$r {
            handle => {
                $select.recv(handle);
                $crate::__select_case!($select [$n + 1] [$($known)*
                    { [$n] [recv(handle)] [$result] [$body] }] $($($rest)*)?)
            }
        }
    };
    ($select:ident [$n:expr] [$($known:tt)*]
     send($s:expr, $message:expr $(,)?) -> $result:pat => $body:block $($rest:tt)*) => {
        match &$s {
            handle => {
                $select.send(handle);
                $crate::__select_case!($select [$n + 1] [$($known)*
                    { [$n] [send(handle, $message)] [$result] [$body] }] $($rest)*)
            }
        }
    };
    ($select:ident [$n:expr] [$($known:tt)*]
     send($s:expr, $message:expr $(,)?) -> $result:pat => $body:expr $(, $($rest:tt)*)?) => {
        match &$s {
            handle => {
                $select.send(handle);
                $crate::__select_case!($select [$n + 1] [$($known)*
                    { [$n] [send(handle, $message)] [$result] [$body] }] $($($rest)*)?)
            }
        }
    };

    // The end: with a default, with one and a time, without.
    ($select:ident [$n:expr] [$($known:tt)*] default $(())? => $body:expr $(,)?) => {
        match $select.try_select() {
            Ok(oper) => $crate::__select_match!(oper $($known)*),
            Err(_) => $body,
        }
    };
    ($select:ident [$n:expr] [$($known:tt)*] default($time:expr $(,)?) => $body:expr $(,)?) => {
        match $select.select_timeout($time) {
            Ok(oper) => $crate::__select_match!(oper $($known)*),
            Err(_) => $body,
        }
    };
    ($select:ident [$n:expr] [$($known:tt)*]) => {{
        let oper = $select.select();
        $crate::__select_match!(oper $($known)*)
    }};
}

/// The last step of [`select!`]: runs the case that was chosen.
#[doc(hidden)]
#[macro_export]
macro_rules! __select_match {
    ($oper:ident) => {{
        let _: &$crate::sync::mpmc::SelectedOperation<'_> = &$oper;
        unreachable!("no case was chosen")
    }};
    ($oper:ident { [$n:expr] [$how:ident($($args:tt)*)] [$result:pat] [$body:expr] } $($rest:tt)*) => {
        if $oper.index() == $n {
            // The operation is over before its case runs.
            let result = $crate::__select_complete!($oper $how($($args)*));
            match result { $result => $body }
        } else {
            $crate::__select_match!($oper $($rest)*)
        }
    };
}

/// Completes what [`select!`] has chosen.
#[doc(hidden)]
#[macro_export]
macro_rules! __select_complete {
    ($oper:ident recv($r:ident)) => {
        $oper.recv($r)
    };
    ($oper:ident send($s:ident, $message:expr)) => {
        $oper.send($s, $message)
    };
}
