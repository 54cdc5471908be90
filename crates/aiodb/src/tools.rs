//! The room of tools, which work on a whole store, from above or from outside.
//!
//! It owns online backups and their restore, the salvage of damaged stores, and a recount of everything that is counted. It promises to
//! leave its source as it was. It never serves gets or writes of users; it uses their interface where that suffices.

pub(crate) mod accounting;
pub(crate) mod backup;
pub(crate) mod salvage;
