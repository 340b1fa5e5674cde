//! Deadlines in order: a pairing heap whose nodes live in what waits for them (Fredman, Sedgewick, Sleator
//! and Tarjan, "The pairing heap: a new form of self-adjusting heap", 1986).
//!
//! Nothing is allocated: an insertion touches the root alone, a removal the node's neighbours, and taking the
//! earliest its children. With 100,000 sleepers that is what counts, since each node lies on a stack of its
//! own.

use core::cell::Cell;
use core::ptr;

/// What an entry keeps for the heap. Touched under the heap's lock only.
#[derive(Debug)]
pub(crate) struct Node {
    at: Cell<u64>,
    child: Cell<*const Node>,
    /// The next sibling.
    next: Cell<*const Node>,
    /// The previous sibling, or the parent of a first child.
    prev: Cell<*const Node>,
}

impl Node {
    pub(crate) const fn new() -> Node {
        Node {
            at: Cell::new(0),
            child: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
        }
    }
}

/// The heap; its owner locks it.
#[derive(Debug)]
pub(crate) struct Heap {
    root: *const Node,
}

// SAFETY: the heap owns the links of the nodes that stand in it.
unsafe impl Send for Heap {}

impl Heap {
    pub(crate) const fn new() -> Heap {
        Heap { root: ptr::null() }
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&self) -> Option<u64> {
        // SAFETY: the root is a node of this heap, alive as `insert` demands.
        unsafe { self.root.as_ref() }.map(|r| r.at.get())
    }

    /// Adds `node` with the deadline `at`.
    ///
    /// # Safety
    /// The node stands in no heap, does not move, and lives until it has been taken out.
    pub(crate) unsafe fn insert(&mut self, node: *const Node, at: u64) {
        // SAFETY: the caller's promise.
        let n = unsafe { &*node };
        n.at.set(at);
        n.child.set(ptr::null());
        n.next.set(ptr::null());
        n.prev.set(ptr::null());
        // SAFETY: both are roots.
        self.root = unsafe { meld(self.root, node) };
    }

    /// Takes the earliest out if its deadline is not after `now`.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<*const Node> {
        if self.earliest()? > now {
            return None;
        }
        let root = self.root;
        // SAFETY: the root is a live node of this heap, and so are its children.
        self.root = unsafe { meld_siblings((*root).child.get()) };
        Some(root)
    }

    /// Takes `node` out.
    ///
    /// # Safety
    /// It stands in this heap.
    pub(crate) unsafe fn remove(&mut self, node: *const Node) {
        // SAFETY: neighbours of a node of this heap are live nodes of it.
        unsafe {
            let n = &*node;
            let rest = meld_siblings(n.child.get());
            if ptr::eq(node, self.root) {
                self.root = rest;
                return;
            }
            let (prev, next) = (&*n.prev.get(), n.next.get());
            if ptr::eq(prev.child.get(), node) {
                prev.child.set(next);
            } else {
                prev.next.set(next);
            }
            if let Some(next) = next.as_ref() {
                next.prev.set(prev);
            }
            self.root = meld(self.root, rest);
        }
    }
}

/// Makes one tree of two: the later root becomes the first child of the earlier one. Of two with the same
/// deadline the first stays on top.
///
/// # Safety
/// Both are null or roots, alive.
unsafe fn meld(a: *const Node, b: *const Node) -> *const Node {
    // SAFETY: the caller's promise; children of live roots are alive.
    unsafe {
        let (Some(x), Some(y)) = (a.as_ref(), b.as_ref()) else {
            return if a.is_null() { b } else { a };
        };
        let (up, down) = if y.at.get() < x.at.get() { (y, x) } else { (x, y) };
        let first = up.child.get();
        down.next.set(first);
        down.prev.set(up);
        if let Some(first) = first.as_ref() {
            first.prev.set(down);
        }
        up.child.set(down);
        up
    }
}

/// Makes one tree of a list of siblings: in pairs from the left, then together from the right.
///
/// # Safety
/// `first` is null or the first of a list of live siblings.
unsafe fn meld_siblings(mut first: *const Node) -> *const Node {
    let mut pairs: *const Node = ptr::null();
    // SAFETY: the caller's promise. Each node is made a root before it is melded; `next` of a pair's root
    // strings the pairs together until they are.
    unsafe {
        while let Some(a) = first.as_ref() {
            let second = a.next.get();
            first = second.as_ref().map_or(ptr::null(), |b| b.next.get());
            let pair = meld(alone(a), second.as_ref().map_or(ptr::null(), alone));
            (*pair).next.set(pairs);
            pairs = pair;
        }
        let mut root = ptr::null();
        while let Some(pair) = pairs.as_ref() {
            pairs = pair.next.get();
            root = meld(alone(pair), root);
        }
        root
    }
}

fn alone(n: &Node) -> *const Node {
    n.next.set(ptr::null());
    n.prev.set(ptr::null());
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *state >> 33
    }

    /// Against a sorted list: insertions, removals anywhere, taking what is due.
    #[test]
    fn does_what_a_sorted_list_does() {
        for seed in 0..200u64 {
            let mut s = seed;
            let nodes: Vec<Node> = (0..100).map(|_| Node::new()).collect();
            let mut heap = Heap::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for _ in 0..2000 {
                let i = random(&mut s) as usize % nodes.len();
                let at = random(&mut s) % 1000;
                match model.iter().position(|e| e.1 == i) {
                    None => {
                        // SAFETY: the node is in no heap and outlives it.
                        unsafe { heap.insert(&nodes[i], at) };
                        model.push((at, i));
                    }
                    Some(p) if random(&mut s).is_multiple_of(2) => {
                        // SAFETY: the model says that it is in the heap.
                        unsafe { heap.remove(&nodes[i]) };
                        model.swap_remove(p);
                    }
                    Some(_) => {
                        let due = heap.pop_due(at);
                        let first = model.iter().map(|e| e.0).min().filter(|m| *m <= at);
                        assert_eq!(due.is_some(), first.is_some());
                        if let Some(n) = due {
                            let i = nodes.iter().position(|x| ptr::eq(x, n)).unwrap();
                            let p = model.iter().position(|e| e.1 == i).unwrap();
                            assert_eq!(Some(model[p].0), first, "not the earliest");
                            model.swap_remove(p);
                        }
                    }
                }
                assert_eq!(heap.earliest(), model.iter().map(|e| e.0).min());
            }
        }
    }
}
