//! The `reveille` command.
fn main() {}
