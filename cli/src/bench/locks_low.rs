//! stub
use super::session::Session;
pub fn run(_s: &mut Session) -> anyhow::Result<()> {
    Ok(())
}
