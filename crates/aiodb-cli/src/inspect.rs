//! `stat` and `verify`: what a store looks like, and whether it is sound.

mod stat;
mod verify;
mod watch;

pub use stat::{StatArgs, stat};
pub use verify::{VerifyArgs, verify};
