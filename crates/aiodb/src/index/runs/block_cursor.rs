//! The keys of one block in either direction.

use super::file::{RunFile, chain_of};
use crate::Result;
use crate::format::run::block::BlockWalk;
use crate::index::chain::VersionChain;
use crate::io::Device;

/// A place in a block of which there is a copy: at a key, or at the end.
pub(super) enum BlockCursor {
    /// Keys are decoded one after the other: many scans want few of a block.
    Forward(BlockWalk),
    /// Keys say what they share with the one before, so all up to the first one wanted are decoded at once.
    Backward(Decoded),
}

/// The keys of a block that are left, the next one last.
#[derive(Default)]
pub(super) struct Decoded {
    keys: Vec<u8>,
    ends: Vec<usize>,
    chains: Vec<VersionChain>,
}

impl BlockCursor {
    /// The end of some block.
    pub(super) fn new(backward: bool) -> BlockCursor {
        if backward { BlockCursor::Backward(Decoded::default()) } else { BlockCursor::Forward(BlockWalk::default()) }
    }

    /// Goes to the first key of a block, of which these are the plain bytes, that is not before `from` or, backward, to the last key; none before
    /// `from` counts.
    pub(super) fn enter<D: Device>(
        &mut self,
        file: &RunFile<D>,
        number: usize,
        bytes: &[u8],
        from: &[u8],
    ) -> Result<()> {
        let block = file.block(number, bytes)?;
        match self {
            BlockCursor::Forward(walk) => block.seek(from, walk).map_err(|damage| file.damaged(number, damage)),
            BlockCursor::Backward(decoded) => {
                decoded.clear();
                let mut keys = block.keys();
                while let Some((key, chain)) = keys.next().map_err(|damage| file.damaged(number, damage))? {
                    if key >= from {
                        decoded.push(key, chain_of(chain));
                    }
                }
                Ok(())
            }
        }
    }

    /// Goes to the end.
    pub(super) fn leave(&mut self) {
        match self {
            BlockCursor::Forward(walk) => walk.clear(),
            BlockCursor::Backward(decoded) => decoded.clear(),
        }
    }

    /// The key here; `None` at the end.
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            BlockCursor::Forward(walk) => walk.key(),
            BlockCursor::Backward(decoded) => decoded.last(),
        }
    }

    /// Goes on by one key. The block is the one of this number.
    pub(super) fn advance<D: Device>(&mut self, file: &RunFile<D>, number: usize) -> Result<()> {
        match self {
            BlockCursor::Forward(walk) => walk.advance().map_err(|damage| file.damaged(number, damage)),
            BlockCursor::Backward(decoded) => {
                decoded.pop();
                Ok(())
            }
        }
    }

    /// The entries of the key here, which can be taken once. The block is the one of this number.
    pub(super) fn take<D: Device>(&mut self, file: &RunFile<D>, number: usize) -> Result<VersionChain> {
        match self {
            BlockCursor::Forward(walk) => walk.take().map(chain_of).map_err(|damage| file.damaged(number, damage)),
            BlockCursor::Backward(decoded) => Ok(decoded.chains.last_mut().map(std::mem::take).unwrap_or_default()),
        }
    }
}

impl Decoded {
    fn push(&mut self, key: &[u8], chain: VersionChain) {
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.chains.push(chain);
    }

    fn last(&self) -> Option<&[u8]> {
        Some(&self.keys[self.start()..*self.ends.last()?])
    }

    /// Where the last key begins.
    fn start(&self) -> usize {
        self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before])
    }

    fn pop(&mut self) {
        self.keys.truncate(self.start());
        self.ends.pop();
        self.chains.pop();
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.chains.clear();
    }
}
