//! Memory that devices read into and write from.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::UNIT_BYTES;

/// Heap memory aligned to [`UNIT_BYTES`], as direct I/O wants it. Zeroed when made.
pub struct AlignedBuffer {
    start: *mut u8,
    length: usize,
}

// SAFETY: the buffer owns its memory exclusively; nothing about it is tied to a thread.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access is read-only (`Deref`), as for a boxed slice.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A zeroed buffer of `length` bytes, rounded up to whole units; at least one unit.
    pub fn new(length: usize) -> AlignedBuffer {
        let length = length.next_multiple_of(UNIT_BYTES).max(UNIT_BYTES);
        let layout = Self::layout(length);
        // SAFETY: the layout's size is at least one unit, so not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        AlignedBuffer { start, length }
    }

    /// The address of the first byte, for a device to write to.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }

    /// The address of the first byte. Unlike the slice's method of this name it makes no reference to the whole buffer,
    /// other parts of which a device may be writing to.
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length, UNIT_BYTES).expect("a buffer is smaller than the address space")
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `length` initialised bytes that this value owns.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start` points to `length` initialised bytes that this value owns, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with the same layout.
        unsafe { dealloc(self.start, Self::layout(self.length)) }
    }
}

/// Memory that outlives the process: a shared file mapping, or the simulator's stand-in for one.
///
/// The engine has exactly one owner for each mapping (the open batch that lies in it), so access is through `&mut`.
pub struct Mapping {
    start: *mut u8,
    length: usize,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the mapping is used by one owner at a time; the memory itself is not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: shared access is read-only (`Deref`).
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Wraps memory that lives as long as `owner`.
    ///
    /// # Safety
    /// `start .. start + length` must stay mapped, readable and writable while `owner` lives, be aligned to
    /// [`UNIT_BYTES`], and be accessed by this process through this value alone.
    pub unsafe fn new(start: *mut u8, length: usize, owner: Arc<dyn Any + Send + Sync>) -> Mapping {
        assert!(start.addr().is_multiple_of(UNIT_BYTES), "a mapping starts on a unit");
        Mapping { start, length, _owner: owner }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: promised by the caller of `new`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: promised by the caller of `new`; the value is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}
