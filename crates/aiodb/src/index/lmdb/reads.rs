//! Reading the committed chains.

use super::LmdbIndex;
use crate::index::chain::VersionChain;
use crate::index::codec::decode_chain;
use crate::index::memtable::parts::ChainList;
use crate::index::memtable::{RangeQuery, Reached};
use crate::{Error, Result};

impl LmdbIndex {
    /// Adds the entries of a key up to a sequence, below the entries in `chain`.
    pub(crate) fn lookup(&self, key: &[u8], newest: u64, chain: &mut VersionChain) -> Result<()> {
        let env = self.env();
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(|e| self.failed(&e))?;
        if let Some(value) = self.database.get(&txn, key).map_err(|e| self.failed(&e))? {
            self.add_committed(value, newest, chain)?;
        }
        Ok(())
    }

    #[inline]
    fn add_committed(&self, value: &[u8], newest: u64, chain: &mut VersionChain) -> Result<()> {
        let committed = decode_chain(value).ok_or_else(|| self.bad_entry())?;
        chain.add_found(committed, newest);
        Ok(())
    }

    /// Keys of a range, with their entries. Says how far it came.
    pub(crate) fn range(&self, query: RangeQuery<'_>) -> Result<(ChainList, Reached)> {
        let RangeQuery { range, backward, limit, newest, .. } = query;
        let env = self.env();
        let failed = |e: heed::Error| self.failed(&e);
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(failed)?;
        let (mut found, mut reached) = (ChainList::new(), Reached::End);
        let mut taken = 0;
        let mut take = |item: heed::Result<(&[u8], &[u8])>| {
            let (key, value) = item.map_err(failed)?;
            taken += 1;
            if taken == limit {
                reached = Reached::Key(key.into());
            }
            let mut chain = VersionChain::default();
            self.add_committed(value, newest, &mut chain)?;
            found.push((key.into(), chain));
            Ok(())
        };
        if backward {
            self.database.rev_range(&txn, &range).map_err(failed)?.take(limit).try_for_each(&mut take)?;
            found.reverse();
        } else {
            self.database.range(&txn, &range).map_err(failed)?.take(limit).try_for_each(&mut take)?;
        }
        Ok((found, reached))
    }
}
