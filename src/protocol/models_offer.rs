//! Loom models of channels: the offer's word, locked queues of waiters, values that are moved once, and a lot.
//!
//! A value is a number in a cell that loom watches; what is lost shows as a deadlock, what is moved twice as a
//! failed sum, what is looked at too early as a race.

#![allow(unsafe_code)]

use super::models::check;
use super::offer::Offer;
use crate::prim::{AtomicU32, Ordering::*};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::collections::VecDeque;

const DONE: usize = 0;
const AGAIN: usize = 1;

/// A receiver that waits.
struct Waiter {
    offer: Offer,
    /// It waits at several channels.
    several: bool,
    place: UnsafeCell<u32>,
    /// The key's queue in the lot: whether it rests, under the bucket's lock.
    rests: Mutex<bool>,
    woken: Condvar,
}

impl Waiter {
    fn new(several: bool) -> Arc<Waiter> {
        Arc::new(Waiter {
            offer: Offer::new(),
            several,
            place: UnsafeCell::new(0),
            rests: Mutex::new(false),
            woken: Condvar::new(),
        })
    }

    /// As `lot::park` with "no outcome yet" as its check, again and again.
    fn rest(&self) -> usize {
        let mut bucket = self.rests.lock().unwrap();
        loop {
            if let Some(outcome) = self.offer.outcome() {
                return outcome;
            }
            *bucket = true;
            while *bucket {
                bucket = self.woken.wait(bucket).unwrap();
            }
        }
    }

    fn finish(&self, outcome: usize) {
        let mut bucket = self.rests.lock().unwrap();
        self.offer.finish(outcome);
        if *bucket {
            *bucket = false;
            self.woken.notify_one();
        }
    }

    fn put(&self, value: u32) {
        // SAFETY: the pointer is live; loom checks that nobody else is there.
        self.place.with_mut(|p| unsafe { *p = value });
    }

    fn take(&self) -> u32 {
        // SAFETY: as above.
        self.place.with(|p| unsafe { *p })
    }
}

/// A channel: messages that nobody waited for, and receivers.
#[derive(Default)]
struct Channel {
    state: Mutex<(VecDeque<u32>, VecDeque<Arc<Waiter>>)>,
}

impl Channel {
    fn send(&self, value: u32) {
        let mut state = self.state.lock().unwrap();
        while let Some(w) = state.1.pop_front() {
            if !w.several || w.offer.claim() {
                w.put(value);
                drop(state);
                return w.finish(DONE);
            }
        }
        state.0.push_back(value);
    }

    /// A message, or the waiter is entered.
    fn receive_or_enter(&self, w: &Arc<Waiter>) -> Option<u32> {
        let mut state = self.state.lock().unwrap();
        let message = state.0.pop_front();
        if message.is_none() {
            state.1.push_back(Arc::clone(w));
        }
        message
    }

    /// Takes the waiter out; false: somebody has.
    fn leave(&self, w: &Arc<Waiter>) -> bool {
        let mut state = self.state.lock().unwrap();
        let at = state.1.iter().position(|x| Arc::ptr_eq(x, w));
        at.map(|i| state.1.remove(i)).is_some()
    }

    fn left(&self) -> u32 {
        self.state.lock().unwrap().0.iter().sum()
    }
}

fn receive(c: &Channel) -> u32 {
    let w = Waiter::new(false);
    c.receive_or_enter(&w).unwrap_or_else(|| {
        assert_eq!(w.rest(), DONE);
        w.take()
    })
}

/// As [`receive`] by somebody whose time is over as soon as it has entered.
fn receive_in_no_time(c: &Channel) -> Option<u32> {
    let w = Waiter::new(false);
    if let Some(value) = c.receive_or_enter(&w) {
        return Some(value);
    }
    if c.leave(&w) {
        return None;
    }
    assert_eq!(w.rest(), DONE);
    Some(w.take())
}

/// From the first of several that has a message; `patient`, or its time is over as soon as it has entered.
fn select(channels: &[Channel], patient: bool) -> Option<u32> {
    let w = Waiter::new(true);
    // All are locked while it looks and enters.
    {
        let mut all: Vec<_> = channels.iter().map(|c| c.state.lock().unwrap()).collect();
        if let Some(value) = all.iter_mut().find_map(|s| s.0.pop_front()) {
            return Some(value);
        }
        all.iter_mut().for_each(|s| s.1.push_back(Arc::clone(&w)));
    }
    if !patient && w.offer.claim() {
        channels.iter().for_each(|c| _ = c.leave(&w));
        return None;
    }
    assert_eq!(w.rest(), DONE);
    channels.iter().for_each(|c| _ = c.leave(&w));
    Some(w.take())
}

#[test]
fn loom_two_receivers_get_two_messages() {
    check(Some(3), || {
        let c = Arc::new(Channel::default());
        let other = thread::spawn({
            let c = Arc::clone(&c);
            move || receive(&c)
        });
        let sender = thread::spawn({
            let c = Arc::clone(&c);
            move || [1, 2].into_iter().for_each(|v| c.send(v))
        });
        assert_eq!(receive(&c) + other.join().unwrap(), 3);
        sender.join().unwrap();
    });
}

#[test]
fn loom_a_time_out_at_the_moment_of_the_hand_off() {
    check(None, || {
        let c = Arc::new(Channel::default());
        let sender = thread::spawn({
            let c = Arc::clone(&c);
            move || c.send(5)
        });
        let got = receive_in_no_time(&c).unwrap_or(0);
        sender.join().unwrap();
        assert_eq!(got + c.left(), 5);
    });
}

/// Two senders at two channels, one who waits at both.
fn selecting(patient: bool) {
    check(Some(3), move || {
        let channels = Arc::new([Channel::default(), Channel::default()]);
        let senders = [0, 1].map(|i| {
            let channels = Arc::clone(&channels);
            thread::spawn(move || channels[i].send(1 + i as u32))
        });
        let got = select(&*channels, patient);
        senders.into_iter().for_each(|s| s.join().unwrap());
        assert!(got.is_some() || !patient);
        assert_eq!(got.unwrap_or(0) + channels.iter().map(Channel::left).sum::<u32>(), 3);
    });
}

#[test]
fn loom_a_selecting_receiver_takes_one_of_two_messages() {
    selecting(true);
}

#[test]
fn loom_a_selecting_receiver_times_out_or_takes_one() {
    selecting(false);
}

/// Two who wait at two channels in either order, one message in each: both get one.
#[test]
fn loom_two_selecting_receivers_share_two_messages() {
    check(Some(2), || {
        let channels = Arc::new([Channel::default(), Channel::default()]);
        let other = thread::spawn({
            let channels = Arc::clone(&channels);
            move || select(&*channels, true)
        });
        let sender = thread::spawn({
            let channels = Arc::clone(&channels);
            move || [1, 0].into_iter().for_each(|i| channels[i].send(1 + i as u32))
        });
        assert_eq!(select(&*channels, true).unwrap() + other.join().unwrap().unwrap(), 3);
        sender.join().unwrap();
    });
}

/// A sender that has been selected holds a receiver, and sends, or gives it back.
#[test]
fn loom_a_receiver_that_was_given_back_waits_on() {
    check(Some(3), || {
        let c = Arc::new(Channel::default());
        let tries = Arc::new(AtomicU32::new(0));
        let sender = thread::spawn({
            let (c, tries) = (Arc::clone(&c), Arc::clone(&tries));
            move || {
                let held = c.state.lock().unwrap().1.pop_front();
                if let Some(w) = held {
                    tries.fetch_add(1, Relaxed);
                    w.finish(AGAIN);
                }
                c.send(9);
            }
        });
        let mut again = 0;
        let got = loop {
            let w = Waiter::new(false);
            if let Some(value) = c.receive_or_enter(&w) {
                break value;
            }
            match w.rest() {
                DONE => break w.take(),
                _ => again += 1,
            }
        };
        sender.join().unwrap();
        assert_eq!((got, again), (9, tries.load(Relaxed)));
    });
}
