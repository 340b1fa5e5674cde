//! The names of a suite's tests: one to a line. `NAME` must run and pass, `NAME: reason` is left out;
//! `MODULE::*: reason` leaves out a whole file. Empty lines and those that begin with `#` say something about it.

use std::collections::BTreeMap;

pub struct List<'a>(BTreeMap<&'a str, Option<&'a str>>);

impl<'a> List<'a> {
    /// # Panics
    /// If a name comes twice, or a reason is empty.
    pub fn parse(text: &'a str) -> List<'a> {
        let mut names = BTreeMap::new();
        let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        for line in lines {
            let (name, reason) = match line.split_once(": ") {
                Some((name, reason)) => (name, Some(reason)),
                None => (line, None),
            };
            assert!(reason.is_none_or(|r| !r.trim().is_empty()), "no reason: {line}");
            assert!(names.insert(name, reason).is_none(), "twice in the list: {name}");
        }
        List(names)
    }

    pub fn left_out(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|(_, reason)| reason.is_some()).map(|(name, _)| *name)
    }

    #[allow(dead_code)] // the build does not run them
    pub fn must_run(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|(_, reason)| reason.is_none()).map(|(name, _)| *name)
    }
}
