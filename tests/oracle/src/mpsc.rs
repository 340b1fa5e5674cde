//! Until reveille has channels: enough of one for tests of other things to signal with.

use reveille::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
pub use std::sync::mpsc::{RecvError, SendError, TryRecvError};

struct State<T> {
    queue: VecDeque<T>,
    senders: usize,
    receiver: bool,
}

struct Shared<T>(Mutex<State<T>>, Condvar);

pub struct Sender<T>(Arc<Shared<T>>);
pub struct Receiver<T>(Arc<Shared<T>>);

pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { queue: VecDeque::new(), senders: 1, receiver: true };
    let shared = Arc::new(Shared(Mutex::new(state), Condvar::new()));
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        let mut state = self.0.0.lock().unwrap();
        if !state.receiver {
            return Err(SendError(value));
        }
        state.queue.push_back(value);
        self.0.1.notify_one();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.0.0.lock().unwrap().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(|e| e.into_inner()).senders -= 1;
        self.0.1.notify_one();
    }
}

impl<T> Receiver<T> {
    pub fn recv(&self) -> Result<T, RecvError> {
        let mut state = self.0.0.lock().unwrap();
        loop {
            match state.queue.pop_front() {
                Some(value) => return Ok(value),
                None if state.senders == 0 => return Err(RecvError),
                None => state = self.0.1.wait(state).unwrap(),
            }
        }
    }

    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut state = self.0.0.lock().unwrap();
        match state.queue.pop_front() {
            Some(value) => Ok(value),
            None if state.senders == 0 => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(|e| e.into_inner()).receiver = false;
    }
}
