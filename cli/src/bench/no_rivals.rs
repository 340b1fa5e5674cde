//! No rivals: the program was built without the feature `rivals`.

use anyhow::bail;

use super::session::Lane;
use crate::args::Measurement;

/// No lanes.
pub fn lanes(_: Measurement, _: u64) -> Vec<Lane<'static>> {
    Vec::new()
}

/// There is nothing to measure.
///
/// # Errors
/// Always.
pub fn measure(name: &str, _: Measurement, _: u64) -> anyhow::Result<f64> {
    bail!("`{name}` is unknown here; rivals need a build with --features rivals")
}
