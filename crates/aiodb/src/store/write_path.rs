//! The layer that a user's write needs. It lies above upkeep, since a write helps with that where its work has reached a bound, and
//! makes room on a full disk.

use std::ops::Deref;

use crate::io::Device;
use crate::store::upkeep::Upkeep;
use crate::sync::{Mutex, Rank};

/// The layer of writes.
pub(crate) struct WritePath<D: Device> {
    /// Held by the write that makes room on a full disk; others wait for its room. The time when none could be made last, and how
    /// many segments had been given back until then.
    pub(crate) room_lock: Mutex<Option<(u64, u64)>, { Rank::MakingRoom as u8 }>,
    pub(crate) upkeep: Upkeep<D>,
}

impl<D: Device> Deref for WritePath<D> {
    type Target = Upkeep<D>;

    fn deref(&self) -> &Upkeep<D> {
        &self.upkeep
    }
}
