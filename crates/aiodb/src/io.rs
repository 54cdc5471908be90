//! The boundary between the engine and everything outside it: files, the asynchronous read queue, the clock and
//! randomness.
//!
//! The engine is generic over [`Device`]. [`Disk`] is the kernel; [`sim::SimDevice`] is a simulated machine with seeded
//! faults, on which the same engine runs in tests. Nothing else in the engine may touch a file, the time or a random
//! number, with one stated exception: LMDB maps its own file.
//!
//! The room of I/O. It owns devices, files, read queues and their buffers, and small files that are replaced as a whole. It promises what
//! [`Device`], [`File`] and [`Queue`] say, on every backend. It never knows the meaning of the bytes that it reads or writes.

#[cfg(not(target_os = "linux"))]
compile_error!("aiodb reads through interfaces of the Linux kernel and is not available for other systems");

pub mod buffer;
mod device;
pub mod disk;
mod libaio;
pub mod memory;
mod notifications;
pub mod reads;
pub mod sim;
pub(crate) mod small_file;
mod threads;
mod uring;

pub use buffer::{AlignedBuffer, Mapping};
pub(crate) use device::InPhase;
pub use device::{
    Access, Device, File, MAX_QUEUE_DEPTH, OpenFiles, Phase, Queue, Reaped, Report, SECTOR_BYTES, UNIT_BYTES, WriteSync,
};
pub use disk::Disk;
pub use notifications::Notifications;
