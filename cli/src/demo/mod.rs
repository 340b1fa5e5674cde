//! placeholder
pub fn run(_: &crate::args::Demo) -> anyhow::Result<bool> {
    Ok(true)
}
