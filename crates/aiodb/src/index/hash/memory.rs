//! The memory of a shard.

use memmap2::{MmapMut, MmapOptions};

/// Below this many bytes a shard lies on the heap: small tables then share pages. From here on it has a mapping of its
/// own, which goes back to the system at once when the shard is resized; the allocator would not give back the holes.
const MAPPED_BYTES: usize = 8 << 10;

/// Mappings end on a page.
const PAGE_BYTES: usize = 4096;

/// A fixed number of bytes, zero at first.
pub(super) enum Memory {
    Heap(Box<[u8]>),
    Mapped(MmapMut),
}

impl Memory {
    /// The bytes that an allocation of `bytes` holds in fact.
    pub(super) fn rounded(bytes: usize) -> usize {
        if bytes < MAPPED_BYTES { bytes } else { bytes.next_multiple_of(PAGE_BYTES) }
    }

    pub(super) fn zeroed(bytes: usize) -> Memory {
        // All pages are about to be written; populating saves their faults.
        if bytes >= MAPPED_BYTES
            && let Ok(mapping) = MmapOptions::new().len(bytes).populate().map_anon()
        {
            return Memory::Mapped(mapping);
        }
        // Also where the system has no mapping left for this process: their number is limited, unlike the heap's.
        Memory::Heap(vec![0; bytes].into_boxed_slice())
    }

    pub(super) fn held_bytes(&self) -> usize {
        Memory::rounded(self.bytes().len())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::zeroed(0)
    }
}
