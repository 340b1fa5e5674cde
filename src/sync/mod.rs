//! What threads wait for each other with.

pub mod os;
