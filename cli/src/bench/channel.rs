//! `bench channel`: messages between two threads, ours and the kernel's.
//!
//! - `channel/rendezvous-1w`, `-2w`: two threads on one worker (CPU) or two that send a number to and fro, over two
//!   channels without capacity; ns for a round trip.
//! - `channel/bounded-1w`, `-2w`: one sends, the other receives, over a channel that holds 64; ns for a message.
//! - `channel/unbounded-1w`, `-2w`: the same over one that holds any number.
//! - `channel/alone`: ns for sending and receiving a message in one thread, over a channel that holds any number.
//! - `channel/select`: ns for receiving it by a select over four such channels.
//!
//! Beside ours those of std and crossbeam, on kernel threads.

use std::hint::black_box;
use std::io;

use super::locks::each;
use super::session::{Lane, Session};
use super::system::{Handle, Nptl, Reveille, System};
use crate::output::{REVEILLE, Unit};

/// A maker of channels.
trait Maker: 'static {
    /// The name in the reports.
    const NAME: &'static str;
    /// Who runs the threads.
    type Threads: System;
    /// The sending side.
    type Sender: Send + 'static;
    /// The receiving side.
    type Receiver: Send + 'static;

    /// A channel of a capacity; `None`: any number.
    fn make(cap: Option<usize>) -> (Self::Sender, Self::Receiver);
    /// Sends.
    fn send(s: &Self::Sender, message: u64);
    /// Receives.
    fn recv(r: &Self::Receiver) -> u64;
}

/// This library's.
struct Ours;

impl Maker for Ours {
    const NAME: &'static str = REVEILLE;
    type Threads = Reveille;
    type Sender = reveille::sync::mpmc::Sender<u64>;
    type Receiver = reveille::sync::mpmc::Receiver<u64>;

    fn make(cap: Option<usize>) -> (Self::Sender, Self::Receiver) {
        use reveille::sync::mpmc::{channel, sync_channel};
        cap.map_or_else(channel, sync_channel)
    }

    #[inline]
    fn send(s: &Self::Sender, message: u64) {
        s.send(message).expect("somebody receives");
    }

    #[inline]
    fn recv(r: &Self::Receiver) -> u64 {
        r.recv().expect("somebody sends")
    }
}

/// The standard library's.
struct Std;

/// Both of its senders.
enum StdSender {
    /// Of an unbounded channel.
    Any(std::sync::mpsc::Sender<u64>),
    /// Of a bounded one.
    Bounded(std::sync::mpsc::SyncSender<u64>),
}

impl Maker for Std {
    const NAME: &'static str = "std";
    type Threads = Nptl;
    type Sender = StdSender;
    type Receiver = std::sync::mpsc::Receiver<u64>;

    fn make(cap: Option<usize>) -> (Self::Sender, Self::Receiver) {
        match cap {
            None => {
                let (s, r) = std::sync::mpsc::channel();
                (StdSender::Any(s), r)
            }
            Some(cap) => {
                let (s, r) = std::sync::mpsc::sync_channel(cap);
                (StdSender::Bounded(s), r)
            }
        }
    }

    #[inline]
    fn send(s: &Self::Sender, message: u64) {
        match s {
            StdSender::Any(s) => s.send(message),
            StdSender::Bounded(s) => s.send(message),
        }
        .expect("somebody receives");
    }

    #[inline]
    fn recv(r: &Self::Receiver) -> u64 {
        r.recv().expect("somebody sends")
    }
}

/// crossbeam-channel.
struct Crossbeam;

impl Maker for Crossbeam {
    const NAME: &'static str = "crossbeam";
    type Threads = Nptl;
    type Sender = crossbeam_channel::Sender<u64>;
    type Receiver = crossbeam_channel::Receiver<u64>;

    fn make(cap: Option<usize>) -> (Self::Sender, Self::Receiver) {
        cap.map_or_else(crossbeam_channel::unbounded, crossbeam_channel::bounded)
    }

    #[inline]
    fn send(s: &Self::Sender, message: u64) {
        s.send(message).expect("somebody receives");
    }

    #[inline]
    fn recv(r: &Self::Receiver) -> u64 {
        r.recv().expect("somebody sends")
    }
}

/// Runs the cases.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    for workers in [1, 2] {
        let (ours, theirs) = session.pick((200_000, 10_000), (20_000, 500));
        let counts = [ours, theirs];
        three(session, &format!("channel/rendezvous-{workers}w"), workers, counts, Measure::Round)?;
    }
    for (name, cap) in [("bounded", Some(64)), ("unbounded", None)] {
        for workers in [1, 2] {
            let n = session.pick(1_000_000, 50_000);
            let case = format!("channel/{name}-{workers}w");
            three(session, &case, workers, [n, n], Measure::Stream(cap))?;
        }
    }
    let n = session.pick(2_000_000, 100_000);
    three(session, "channel/alone", 1, [n, n], Measure::Alone)?;
    select(session)
}

/// What is measured.
#[derive(Clone, Copy)]
enum Measure {
    Round,
    Stream(Option<usize>),
    Alone,
}

/// One case on all three; ours has the first count of rounds.
fn three(
    session: &mut Session,
    case: &str,
    workers: usize,
    counts: [u64; 2],
    what: Measure,
) -> anyhow::Result<()> {
    if !session.wants(case) {
        return Ok(());
    }
    let (reveille, nptl) = (Reveille::workers(workers)?, Nptl::on(workers));
    let lanes = vec![
        Lane::new(Ours::NAME, || Ok(one::<Ours>(&reveille, counts[0], what)?)),
        Lane::new(Std::NAME, || Ok(one::<Std>(&nptl, counts[1], what)?)),
        Lane::new(Crossbeam::NAME, || Ok(one::<Crossbeam>(&nptl, counts[1], what)?)),
    ];
    session.measure(case, Unit::Ns, lanes)
}

/// Ns for one of `n`.
fn one<M: Maker>(system: &M::Threads, n: u64, what: Measure) -> io::Result<f64> {
    system.inside(|| match what {
        Measure::Round => round::<M>(n),
        Measure::Stream(cap) => stream::<M>(n, cap),
        Measure::Alone => {
            let (s, r) = M::make(None);
            Ok(each(n, || {
                M::send(black_box(&s), 1);
                black_box(M::recv(&r));
            }))
        }
    })?
}

/// To and fro over two channels.
fn round<M: Maker>(n: u64) -> io::Result<f64> {
    let ((there, arrives), (back, returns)) = (M::make(Some(0)), M::make(Some(0)));
    let echo = M::Threads::spawn(move || {
        for _ in 0..n {
            M::send(&back, M::recv(&arrives));
        }
    })?;
    let caller = M::Threads::spawn(move || {
        each(n, || {
            M::send(&there, 1);
            black_box(M::recv(&returns));
        })
    })?;
    echo.join();
    Ok(caller.join())
}

/// From one thread to another.
fn stream<M: Maker>(n: u64, cap: Option<usize>) -> io::Result<f64> {
    let (s, r) = M::make(cap);
    let receiver = M::Threads::spawn(move || each(n, || _ = black_box(M::recv(&r))))?;
    let sender = M::Threads::spawn(move || (0..n).for_each(|i| M::send(&s, i)))?;
    sender.join();
    Ok(receiver.join())
}

/// `channel/select`: the same code for both who have one.
macro_rules! selecting {
    ($system:expr, $n:expr, $channel:path, $select:path) => {
        $system.inside(|| {
            let channels: Vec<_> = (0..4).map(|_| $channel()).collect();
            let mut at = 0;
            each($n, || {
                at = (at + 1) % 4;
                channels[at].0.send(1).expect("the receiver is here");
                let mut select = <$select>::new();
                channels.iter().for_each(|(_, r)| _ = select.recv(r));
                let chosen = select.select();
                let index = chosen.index();
                black_box(chosen.recv(&channels[index].1).expect("a message is there"));
            })
        })
    };
}

fn select(session: &mut Session) -> anyhow::Result<()> {
    if !session.wants("channel/select") {
        return Ok(());
    }
    let n: u64 = session.pick(500_000, 50_000);
    let (reveille, nptl) = (Reveille::workers(1)?, Nptl::on(1));
    let lanes = vec![
        Lane::new(REVEILLE, || {
            use reveille::sync::mpmc::{Select, channel};
            Ok(selecting!(reveille, n, channel::<u64>, Select)?)
        }),
        Lane::new(Crossbeam::NAME, || {
            use crossbeam_channel::{Select, unbounded};
            Ok(selecting!(nptl, n, unbounded::<u64>, Select)?)
        }),
    ];
    session.measure("channel/select", Unit::Ns, lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_pass_the_same_code() {
        for what in
            [Measure::Round, Measure::Stream(Some(2)), Measure::Stream(None), Measure::Alone]
        {
            assert!(one::<Std>(&Nptl::ANY_CPU, 50, what).unwrap() > 0.0);
            assert!(one::<Crossbeam>(&Nptl::ANY_CPU, 50, what).unwrap() > 0.0);
        }
    }
}
