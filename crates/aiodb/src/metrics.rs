//! What a store counts and times while it works.

pub(crate) mod counter;
