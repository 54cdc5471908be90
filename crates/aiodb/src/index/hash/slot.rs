//! One entry of the index in 72 bits, and the size classes.

/// Bits of the hash in a slot.
pub(super) const TAG_BITS: u32 = 27;

/// Bits of a place in the log, counted in granules.
pub(super) const GRANULE_BITS: u32 = 40;

/// Records start on multiples of this many bytes.
pub(super) const GRANULE_BYTES: u64 = 16;

/// Bytes of a slot, in memory and in a checkpoint.
pub(super) const SLOT_BYTES: usize = 9;

/// The granule of a floor. No record starts there: it lies in the header of segment 0.
const FLOOR_GRANULE: u64 = 1;

/// The longest record that a location can name, in bytes.
pub const LENGTH_MAX: u32 = BOUNDS[BOUNDS.len() - 1];

/// The longest record of each size class in bytes. From 336 to 2032 a whole number of the longest fills a unit. From 4 KiB on a
/// class is for a value of a round size together with up to a sector (512 bytes) of header and key, because users choose such
/// values.
const BOUNDS: [u32; 31] = [
    64,
    128,
    192,
    256,
    336,
    448,
    576,
    672,
    816,
    1008,
    1360,
    2032,
    4096,
    (4 << 10) + 512,
    (6 << 10) + 512,
    (8 << 10) + 512,
    (12 << 10) + 512,
    (16 << 10) + 512,
    (24 << 10) + 512,
    (32 << 10) + 512,
    (48 << 10) + 512,
    (64 << 10) + 512,
    (96 << 10) + 512,
    (128 << 10) + 512,
    (192 << 10) + 512,
    (256 << 10) + 512,
    (384 << 10) + 512,
    (512 << 10) + 512,
    (768 << 10) + 512,
    (1024 << 10) + 512,
    // A value of 1 MiB with the longest key and its header.
    (1024 << 10) + (128 << 10),
];

const CLASS_BITS: u32 = 5;
const CLASS_SHIFT: u32 = u32::BITS;
const TAG_SHIFT: u32 = CLASS_SHIFT + CLASS_BITS;
const _: () = assert!(TAG_SHIFT + TAG_BITS == u64::BITS && GRANULE_BITS == u32::BITS + u8::BITS);
const _: () = assert!(BOUNDS.len() == (1 << CLASS_BITS) - 1);

/// The length that a location comes back with, when a record of `length` bytes went in: the least bound of a size class
/// that is not less. Panics beyond [`LENGTH_MAX`].
pub fn class_bound(length: u32) -> u32 {
    BOUNDS[class_of(length) as usize - 1]
}

/// The size class of a record, counted from 1.
pub(super) fn class_of(length: u32) -> u64 {
    assert!(length <= LENGTH_MAX, "a record of {length} bytes is longer than a hash index can name");
    BOUNDS.partition_point(|&bound| bound < length) as u64 + 1
}

/// An entry: `low` holds the tag (bits 37 to 63), the size class (32 to 36) and granule bits 0 to 31; `high` holds
/// granule bits 32 to 39. Size classes count from 1, and a floor has class 0 and granule 1, so the `low` of an entry is never 0 and 0
/// can mean "empty".
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) low: u64,
    pub(super) high: u8,
}

impl Slot {
    pub(super) fn new(tag: u64, granule: u64, class: u64) -> Slot {
        let low = tag << TAG_SHIFT | class << CLASS_SHIFT | u64::from(granule as u32);
        Slot { low, high: (granule >> u32::BITS) as u8 }
    }

    /// The floor of a tag's run, see [`HashIndex::pull_up`](super::HashIndex::pull_up).
    pub(super) fn floor(tag: u64) -> Slot {
        Slot::new(tag, FLOOR_GRANULE, 0)
    }

    pub(super) fn is_floor(self) -> bool {
        self.class() == 0
    }

    pub(super) fn tag(self) -> u64 {
        self.low >> TAG_SHIFT
    }

    pub(super) fn granule(self) -> u64 {
        u64::from(self.high) << u32::BITS | u64::from(self.low as u32)
    }

    /// The bound of the size class in bytes. A floor has none.
    pub(super) fn length(self) -> u32 {
        BOUNDS[self.class() - 1]
    }

    /// Whether these bits can be an entry. All tags and granules can; of size class 0 only floors.
    pub(super) fn is_valid(self) -> bool {
        !self.is_floor() || self.granule() == FLOOR_GRANULE
    }

    pub(super) fn encode(self) -> [u8; SLOT_BYTES] {
        let mut bytes = [self.high; SLOT_BYTES];
        bytes[..8].copy_from_slice(&self.low.to_le_bytes());
        bytes
    }

    pub(super) fn decode([low @ .., high]: [u8; SLOT_BYTES]) -> Slot {
        Slot { low: u64::from_le_bytes(low), high }
    }

    fn class(self) -> usize {
        (self.low >> CLASS_SHIFT) as usize & ((1 << CLASS_BITS) - 1)
    }
}
