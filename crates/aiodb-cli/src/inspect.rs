//! `stat` and `verify`: what a store looks like, and whether it is sound. They only read; `stat --watch` reads what another
//! process publishes, and does not open the store at all.

mod stat;
mod verify;
mod watch;

pub use stat::{StatArgs, stat};
pub use verify::{VerifyArgs, verify};
