//! Files that the device does not give all of: what can be read of them, and which bytes cannot.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::io::{Access, Device, File, UNIT_BYTES};
use crate::{Error, Result};

/// Bytes that are read at a time. Where the device fails, halves of them are tried, down to a unit.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of a file that the device does not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) range: Range<u64>,
    /// The system's message.
    pub(super) reason: String,
}

/// The bytes of a file, as many as there are. Those that the device does not give are zeros.
#[derive(Default)]
pub(super) struct FileBytes {
    pub(super) bytes: Vec<u8>,
    /// From front to back, in whole units but for the end of the file.
    pub(super) unread: Vec<Unread>,
}

/// Reads a whole file; `None` if it is not there. What the device does not give is no failure: of a file that cannot be opened for that there are
/// no bytes.
pub(super) fn read_around<D: Device>(device: &D, path: &Path) -> Result<Option<FileBytes>> {
    let file = match device.open(path, Access::READ) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if is_of_device(&error) => {
            let unread = vec![Unread { range: 0..0, reason: error.to_string() }];
            return Ok(Some(FileBytes { bytes: Vec::new(), unread }));
        }
        Err(error) => return Err(Error::io("open", path, &error)),
    };
    let length = file.length().map_err(|e| Error::io("look at", path, &e))?;
    read_first(&file, path, length as usize).map(Some)
}

/// Reads so many bytes of a file, or as many as there are.
pub(super) fn read_first<F: File>(file: &F, path: &Path, length: usize) -> Result<FileBytes> {
    let mut read = FileBytes { bytes: vec![0; length], unread: Vec::new() };
    let mut at = 0;
    while at < length {
        let piece = at..length.min(at + PIECE_BYTES);
        let wanted = piece.len();
        let got = read_piece(file, &mut read.bytes[piece], at as u64, &mut read.unread);
        let got = got.map_err(|e| Error::io("read", path, &e))?;
        at += got;
        if got < wanted {
            read.bytes.truncate(at);
            break;
        }
    }
    Ok(read)
}

/// Reads a piece, or two halves of it. Returns how many bytes there are of it: fewer at the end of the file.
fn read_piece<F: File>(file: &F, piece: &mut [u8], offset: u64, unread: &mut Vec<Unread>) -> io::Result<usize> {
    let error = match file.read_at(piece, offset) {
        Err(error) if is_of_device(&error) => error,
        read => return read,
    };
    if piece.len() > UNIT_BYTES {
        let (first, second) = piece.split_at_mut((piece.len() / 2).next_multiple_of(UNIT_BYTES));
        let read = read_piece(file, first, offset, unread)?;
        if read < first.len() {
            return Ok(read);
        }
        return Ok(read + read_piece(file, second, offset + first.len() as u64, unread)?);
    }
    piece.fill(0);
    let end = offset + piece.len() as u64;
    match unread.last_mut() {
        Some(last) if last.range.end == offset => last.range.end = end,
        _ => unread.push(Unread { range: offset..end, reason: error.to_string() }),
    }
    Ok(piece.len())
}

/// Whether an error is one of the device, or of a file system that does not find its way on it. Others, such as a want of descriptors or of
/// memory, say nothing of the bytes.
pub(super) fn is_of_device(error: &io::Error) -> bool {
    let of_device = [libc::EIO, libc::ENODATA, libc::EILSEQ, libc::EREMOTEIO, libc::EUCLEAN, libc::EBADMSG];
    error.raw_os_error().is_some_and(|number| of_device.contains(&number))
}
