//! What the simulated threads do, and the tests.

use super::{Place, SEEDS, SLICE, STEPS, World};

impl World {
    /// The running thread of worker `w` does its next thing; without one, the worker looks for one.
    fn act(&mut self, w: usize) {
        let Some(id) = self.workers[w].running else { return self.look(w) };
        let left = self.threads[id].left.get() - 1;
        self.threads[id].left.set(left);
        if left == 0 || self.closing {
            return self.exit(w, id);
        }
        let what = self.below(12);
        match what {
            0..=2 => return self.give_way(w, id),
            3 | 4 if self.alive() < 60 => {
                let child = self.make();
                self.own(w, child, Place::New);
            }
            5 | 6 if self.alive() < 60 => {
                let child = self.make();
                self.threads[child].joiner.set(Some(id));
                self.own(w, child, Place::New);
                return self.block(w, id);
            }
            7 => {
                self.parked.push(id);
                return self.block(w, id);
            }
            8 | 9 => {
                if let Some(other) = self.any_parked() {
                    self.own(w, other, Place::Blocked);
                }
            }
            _ => {}
        }
        self.workers[w].acts = self.now + 1 + self.below(20);
    }

    fn alive(&self) -> usize {
        self.threads.iter().filter(|t| t.place.get() != Place::Done).count()
    }

    fn any_parked(&mut self) -> Option<usize> {
        let n = self.parked.len() as u64;
        (n != 0).then(|| {
            let i = self.below(n) as usize;
            self.parked.swap_remove(i)
        })
    }

    /// `ops::yield_now`.
    fn give_way(&mut self, w: usize, id: usize) {
        match self.pick(w) {
            None => self.workers[w].acts = self.now + 1,
            Some(next) => {
                self.dispatch(w, Some(next));
                self.own(w, id, Place::Running(w));
            }
        }
    }

    /// `ops::block`.
    fn block(&mut self, w: usize, id: usize) {
        let next = self.pick(w);
        self.dispatch(w, next);
        self.moves(id, Place::Running(w), Place::Blocked);
    }

    /// `ops::exit`: to the joiner directly, without a choice, if nobody else waits in the ring.
    fn exit(&mut self, w: usize, id: usize) {
        self.moves(id, Place::Running(w), Place::Done);
        let next = match self.threads[id].joiner.get() {
            Some(joiner) if self.workers[w].ring.len() == 0 => {
                self.moves(joiner, Place::Blocked, Place::New);
                Some(joiner)
            }
            joiner => {
                let next = self.pick(w);
                if let Some(joiner) = joiner {
                    self.own(w, joiner, Place::Blocked);
                }
                next
            }
        };
        self.dispatch(w, next);
    }

    /// A kernel thread spawns or wakes somebody.
    fn outside(&mut self) {
        match self.any_parked() {
            Some(id) => self.arrives(id, Place::Blocked),
            None if !self.closing => {
                let id = self.make();
                self.arrives(id, Place::New);
            }
            None => {}
        }
    }

    /// The next thing that happens.
    fn step(&mut self) {
        if self.below(25) == 0 {
            self.outside();
        }
        let awake = self.workers.iter().enumerate().filter(|(_, w)| !w.asleep);
        match awake.map(|(i, w)| (w.acts.min(w.tick), i)).min() {
            None => {
                self.now += self.below(SLICE);
                self.outside();
            }
            Some((at, w)) => {
                self.now = self.now.max(at);
                if self.workers[w].tick <= self.workers[w].acts {
                    self.tick(w);
                } else {
                    self.act(w);
                }
            }
        }
        match self.workers.iter().any(|w| w.asleep) {
            true => drop(self.sleepy.get_or_insert(self.now)),
            false => self.sleepy = None,
        }
    }

    /// Everybody ends.
    fn close(&mut self) {
        self.closing = true;
        let mut steps = 0;
        while self.alive() != 0 || self.workers.iter().any(|w| !w.asleep) {
            self.step();
            steps += 1;
            assert!(steps < 100 * STEPS, "{} threads are lost", self.alive());
        }
        assert!(!self.anything());
    }
}

#[test]
fn random_threads_keep_their_places_and_bounds() {
    let one = std::env::var("SIM_SEED").ok().and_then(|s| s.parse().ok());
    for seed in one.map_or(1..SEEDS + 1, |s| s..s + 1) {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.close();
    }
}

/// A thread that spawns and joins for ever makes a choice at every second switch only.
#[test]
fn spawn_and_join_for_ever_starves_nobody() {
    for offset in 0..2 {
        let mut world = World::with_workers(1, 1);
        world.workers[0].switches += offset;
        let hog = world.make();
        world.slice_over(hog, Place::New);
        let parent = world.make();
        world.dispatch_new(0, parent);
        let mut choices = 0;
        while world.threads[hog].place.get() == Place::Sliced {
            let child = world.make();
            world.threads[child].left.set(1);
            world.threads[child].joiner.set(Some(parent));
            world.own(0, child, Place::New);
            world.block(0, parent);
            choices += 1;
            assert!(choices <= 101, "starved");
            if choices == 100 {
                world.tick(0);
            }
            if world.workers[0].running == Some(child) {
                world.exit(0, child);
            }
        }
    }
}
