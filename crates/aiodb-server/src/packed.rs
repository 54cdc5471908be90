//! All elements of a small collection in one piece of memory, as they are kept of collections that were read or written lately: most
//! commands find theirs here, and ask the engine for nothing.
//!
//! The elements lie one behind the other in the order of their names. Each has the length of its name (4, little-endian), that of its
//! value (4, little-endian), the name and the value.

use std::ops::RangeBounds;

use bytes::{BufMut, Bytes};

use crate::collection::Span;

/// Larger collections are not packed: each change copies all elements, and a look-up goes through them.
const MOST_ELEMENTS: usize = 128;
const MOST_BYTES: usize = 16 << 10;

/// Bytes in front of a name.
const LENGTHS: usize = 8;

/// All elements of a collection. Copies share their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed(Bytes);

/// Packs elements, which come in the order of their names.
#[derive(Default)]
pub(crate) struct Packing {
    bytes: Vec<u8>,
    elements: usize,
}

impl Packing {
    /// Adds an element; false if the collection is not small any more.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.elements += 1;
        let length = self.bytes.len() + LENGTHS + name.len() + value.len();
        let fits = self.elements <= MOST_ELEMENTS && length <= MOST_BYTES;
        if fits {
            self.bytes.put_u32_le(name.len() as u32);
            self.bytes.put_u32_le(value.len() as u32);
            self.bytes.extend_from_slice(name);
            self.bytes.extend_from_slice(value);
        }
        fits
    }

    pub(crate) fn finish(self) -> Packed {
        // Of no more memory than its length.
        Packed(self.bytes.into_boxed_slice().into())
    }
}

impl Packed {
    /// Whether a collection with so many elements may be packed.
    pub(crate) fn may_have(elements: u64) -> bool {
        elements <= MOST_ELEMENTS as u64
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The value of an element.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Bytes> {
        let (_, value) = self.elements().find(|(other, _)| *other == name)?;
        Some(self.0.slice_ref(value))
    }

    /// The elements in the order of their names.
    fn elements(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (name_length, behind) = rest.split_first_chunk()?;
            let (value_length, behind) = behind.split_first_chunk()?;
            let (name, behind) = behind.split_at(u32::from_le_bytes(*name_length) as usize);
            let (value, behind) = behind.split_at(u32::from_le_bytes(*value_length) as usize);
            rest = behind;
            Some((name, value))
        })
    }

    /// Elements of a span in its order, for as long as `visit` wants more.
    pub(crate) fn visit(&self, span: &Span, mut visit: impl FnMut(&[u8], &[u8]) -> bool) {
        let range = (span.from.as_ref().map(Vec::as_slice), span.to.as_ref().map(Vec::as_slice));
        let mut within = self.elements().filter(|(name, _)| RangeBounds::<[u8]>::contains(&range, *name));
        if span.is_backward {
            let elements: Vec<_> = within.collect();
            let _ = elements.into_iter().rev().all(|(name, value)| visit(name, value));
        } else {
            let _ = within.all(|(name, value)| visit(name, value));
        }
    }

    /// The elements after changes, which are in the order of their names; `None` if they are too many.
    pub(crate) fn changed<'a>(&self, changes: impl Iterator<Item = (&'a Bytes, Option<&'a Bytes>)>) -> Option<Packed> {
        let mut packing = Packing { bytes: Vec::with_capacity(self.0.len()), elements: 0 };
        let mut old = self.elements().peekable();
        for (name, value) in changes {
            while let Some((other, value)) = old.next_if(|(other, _)| *other < &name[..]) {
                packing.add(other, value).then_some(())?;
            }
            old.next_if(|(other, _)| *other == &name[..]);
            if let Some(value) = value {
                packing.add(name, value).then_some(())?;
            }
        }
        for (name, value) in old {
            packing.add(name, value).then_some(())?;
        }
        Some(packing.finish())
    }
}

#[cfg(test)]
mod tests;
