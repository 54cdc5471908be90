//! The order of writes as users see it, and waiting until what they wrote is durable.

use std::fmt;

use crate::io::Device;
use crate::{Db, Error, Result};

/// The place of a write in the one order of all writes of a store. Later writes have greater sequences, also after the
/// store was closed and opened again; the sequence of a batch is that of its last operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub(crate) u64);

impl Sequence {
    /// The sequence as a number: the first record of a store has 1, and the default, 0, comes before all.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<D: Device> Db<D> {
    /// The sequence of the last record that was appended, by whomever.
    pub fn sequence(&self) -> Sequence {
        Sequence(self.engine.commit.next_sequence() - 1)
    }

    /// Returns when a power cut can no longer take the write with this sequence, nor any before it; flushes if nobody
    /// else does. So writes of the classes `interval` and `none` can be made cheaply, and waited for where it matters:
    ///
    /// ```
    /// # use aiodb::{Db, Durability, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path(), Options { durability: Durability::None, ..Options::default() })?;
    /// let table = db.table_or_create("orders", IndexKind::Lmdb)?;
    /// table.put(b"4711", b"two apples")?;
    /// let paid = table.put(b"4711 paid", b"yes")?;
    /// db.wait_durable(paid)?; // both are on the device now
    /// # Ok(()) }
    /// ```
    ///
    /// A sequence that this store has not given to any write is [`Error::Option`].
    pub fn wait_durable(&self, sequence: Sequence) -> Result<()> {
        self.engine.check_open()?;
        if sequence > self.sequence() {
            let allowed = "a sequence that a write of this store has returned";
            return Err(Error::Option { option: "sequence", value: sequence.to_string(), allowed });
        }
        self.engine.flush_to(sequence)
    }
}
