//! Handles on simulated files.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::SimDevice;
use super::machine::{Call, Effect, State, crashed, stale};
use super::tree::Inode;
use crate::io::{Access, File, SECTOR_BYTES, UNIT_BYTES, WriteSync};

/// An open file of a [`SimDevice`]; of no use after the process that opened it died.
#[derive(Clone)]
pub struct SimFile {
    pub(super) device: SimDevice,
    pub(super) inode: Inode,
    /// The name at opening, by which faults are chosen.
    pub(super) path: Arc<Path>,
    pub(super) access: Access,
}

impl SimFile {
    /// What the kernel demands of direct I/O.
    pub(super) fn check_alignment(
        &self,
        block_bytes: usize,
        address: usize,
        length: usize,
        offset: u64,
    ) -> io::Result<()> {
        let aligned =
            [address as u64, length as u64, offset].iter().all(|value| value.is_multiple_of(block_bytes as u64));
        if self.access.direct && !aligned { Err(io::Error::from_raw_os_error(libc::EINVAL)) } else { Ok(()) }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.access.write { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBADF)) }
    }
}

impl File for SimFile {
    const READS_AHEAD: bool = false;

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.device.machine.lock().call(self.device.process, |state| {
            self.check_alignment(state.block_bytes, buffer.as_ptr().addr(), buffer.len(), offset)?;
            state.read(self, buffer, offset)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64, sync: WriteSync) -> io::Result<()> {
        let mut state = self.device.machine.lock();
        let dies = state.step(self.device.process)?;
        let outcome = state.write(self, bytes, offset, sync, dies);
        if dies { Err(crashed()) } else { outcome }
    }

    fn sync(&self) -> io::Result<()> {
        self.device.machine.lock().call(self.device.process, |state| {
            state.counters.syncs += 1;
            let effect = state.disturbance(Call::Sync, &self.path);
            let mut content = self.inode.lock();
            content.absorb();
            match effect {
                Some(Effect::Fail) => {
                    if self.access.direct {
                        // Reads go past the kernel: they see the bytes that reached the drive.
                        content.lose_unflushed(&mut state.random);
                    } else {
                        content.flush_failing(&mut state.random);
                    }
                    Err(io::Error::from_raw_os_error(libc::EIO))
                }
                Some(Effect::Lose) => Ok(()),
                _ => {
                    content.flush();
                    Ok(())
                }
            }
        })
    }

    fn reserve(&self, length: u64) -> io::Result<bool> {
        self.device.machine.lock().call(self.device.process, |state| {
            self.check_writable()?;
            state.check_space(&self.inode, length)?;
            self.inode.lock().grow(length, WriteSync::Later);
            Ok(true)
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.device.machine.lock().call(self.device.process, |_| Ok(self.inode.lock().length()))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.device.machine.lock().call(self.device.process, |_| {
            self.check_writable()?;
            self.inode.lock().truncate(length);
            Ok(())
        })
    }
}

impl State {
    /// Reads what the kernel shows, mapped memory included.
    pub(super) fn read(&mut self, file: &SimFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if file.device.process != self.process {
            return Err(stale());
        }
        match self.disturbance(Call::Read, &file.path) {
            Some(Effect::Fail) => return Err(io::Error::from_raw_os_error(libc::EIO)),
            Some(Effect::Shortage) => return Err(io::Error::from_raw_os_error(libc::ENOMEM)),
            _ => {}
        }
        if self.is_unreadable(&file.inode, offset..offset + buffer.len() as u64) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let mut content = file.inode.lock();
        content.absorb();
        let bytes = content.read(buffer, offset);
        self.counters.read_bytes += bytes as u64;
        Ok(bytes)
    }

    /// Writes everything, or, if the process dies meanwhile or the write is to fail, some of the sectors.
    fn write(&mut self, file: &SimFile, bytes: &[u8], offset: u64, sync: WriteSync, dies: bool) -> io::Result<()> {
        self.counters.writes += 1;
        file.check_writable()?;
        file.check_alignment(self.block_bytes, bytes.as_ptr().addr(), bytes.len(), offset)?;
        let end = offset.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        self.check_space(&file.inode, end)?;
        let effect = self.disturbance(Call::Write, &file.path);
        let mut content = file.inode.lock();
        content.unmap();
        if !dies && effect != Some(Effect::Fail) {
            match effect {
                Some(Effect::Lose) => {}
                Some(Effect::Misdirect(units)) => {
                    let file_bytes = content.length().max(end);
                    let most = file_bytes - bytes.len() as u64 + 1;
                    content.write(
                        bytes,
                        (offset + units * UNIT_BYTES as u64) % most / SECTOR_BYTES as u64 * SECTOR_BYTES as u64,
                        sync,
                    );
                }
                _ => content.write(bytes, offset, sync),
            }
            return Ok(());
        }
        let chosen = tear(&mut self.random, bytes.len() / SECTOR_BYTES + 2);
        let (written, total) = content.write_some(bytes, offset, WriteSync::Later, |position| chosen[position]);
        self.counters.torn_writes += u64::from(written > 0 && written < total);
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    /// Refuses to let a file grow to `length` bytes if the disk is too small. Holes take space like written bytes.
    pub(super) fn check_space(&mut self, inode: &Inode, length: u64) -> io::Result<()> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let unit_bytes = UNIT_BYTES as u64;
        let has = inode.lock().length().next_multiple_of(unit_bytes);
        let wants = length.next_multiple_of(unit_bytes);
        if wants <= has || self.tree.used_bytes(unit_bytes) + (wants - has) <= capacity {
            return Ok(());
        }
        self.counters.refused_for_space += 1;
        Err(io::Error::from_raw_os_error(libc::ENOSPC))
    }
}

/// Which of a write's sectors take effect: a prefix, as when a copy is interrupted, or any subset, as a drive orders
/// them.
fn tear(random: &mut Rng, sectors: usize) -> Vec<bool> {
    if random.bool() {
        let prefix = random.usize(0..=sectors);
        return (0..sectors).map(|position| position < prefix).collect();
    }
    let survive_of_8 = random.u32(0..=8);
    (0..sectors).map(|_| random.u32(0..8) < survive_of_8).collect()
}
