//! Direct byte buffers: the memory in which Java and the engine meet.

use jni::JNIEnv;
use jni::objects::JByteBuffer;

use crate::failure::{Failure, Result};

/// The memory of a direct buffer, while a native method runs: the virtual machine keeps its arguments alive that long.
///
/// Bytes are copied in and out and never borrowed, because another Java thread might write them meanwhile: then they are
/// wrong bytes, which decoders must expect, and nothing worse.
pub(crate) struct Direct<'a> {
    start: *mut u8,
    length: usize,
    _argument: std::marker::PhantomData<&'a ()>,
}

impl<'a> Direct<'a> {
    /// A direct buffer; any other is refused.
    pub(crate) fn new(env: &JNIEnv<'_>, buffer: &'a JByteBuffer<'_>) -> Result<Direct<'a>> {
        if buffer.is_null() {
            return Err(Failure::Argument("a buffer is null"));
        }
        let start = env.get_direct_buffer_address(buffer).map_err(|_| Failure::Argument("a buffer is not direct"))?;
        let length = env.get_direct_buffer_capacity(buffer)?;
        Ok(Direct { start, length, _argument: std::marker::PhantomData })
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// A copy of some of its bytes.
    pub(crate) fn read(&self, start: usize, length: usize) -> Result<Vec<u8>> {
        if start.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(Failure::Argument("a length goes beyond its buffer"));
        }
        let mut bytes = Vec::with_capacity(length);
        // SAFETY: the source lies within the buffer, as was just checked, and the virtual machine keeps the buffer while
        // the method runs; the destination was allocated for `length` bytes, all of which are written before `set_len`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.add(start), bytes.as_mut_ptr(), length);
            bytes.set_len(length);
        }
        Ok(bytes)
    }

    /// Stores bytes at a place, which must lie in the buffer.
    pub(crate) fn write(&mut self, start: usize, bytes: &[u8]) {
        assert!(start <= self.length && bytes.len() <= self.length - start, "the caller has looked for room");
        // SAFETY: the destination lies within the buffer, as was just checked, and the virtual machine keeps the buffer
        // while the method runs; `bytes` is memory of the engine, which is never a buffer of Java's.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(start), bytes.len()) }
    }
}

/// A length from Java.
pub(crate) fn length(value: i32) -> Result<usize> {
    usize::try_from(value).map_err(|_| Failure::Argument("a length is negative"))
}
