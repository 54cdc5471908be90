//! Small files, which are read and replaced as a whole.

use std::path::{Path, PathBuf};

use super::{Access, Device, File, WriteSync};
use crate::planted::{self, Bug};
use crate::{Error, Result};

/// Reads a whole small file; `None` if it is not there.
pub(crate) fn read_file<D: Device>(device: &D, path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match device.open(path, Access::READ) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path, &error)),
    };
    let length = file.length().map_err(|e| Error::io("look at", path, &e))?;
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&mut bytes, 0).map_err(|e| Error::io("read", path, &e))?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Puts a durable file in the place of another, or of none: after a crash either the old bytes are there or the new.
pub(crate) fn replace_file<D: Device>(device: &D, path: &Path, bytes: &[u8]) -> Result<()> {
    let new_path = write_new(device, path, bytes)?;
    rename_durably(device, &new_path, path)
}

/// Writes the durable file that is to have this path, under the name that it has until then, and returns that. After an error
/// nothing has changed.
pub(crate) fn write_new<D: Device>(device: &D, path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let new_path = new_name(path);
    let file = device.open(&new_path, Access::CREATE).map_err(|e| Error::io("create", &new_path, &e))?;
    let flush = || if planted::is_on(Bug::ManifestUnflushed) { Ok(()) } else { file.sync() };
    let written = file.truncate(0).and_then(|()| file.write_at(bytes, 0, WriteSync::Later)).and_then(|()| flush());
    written.map_err(|e| remove_failed(device, &new_path, &e))?;
    Ok(new_path)
}

/// Gives back the space of a file that could not be finished.
pub(crate) fn remove_failed<D: Device>(device: &D, new_path: &Path, error: &std::io::Error) -> Error {
    // If this fails as well, the next opening removes it.
    let _ = device.remove(new_path);
    Error::io("write", new_path, error)
}

/// Gives a finished file its name.
pub(crate) fn rename_durably<D: Device>(device: &D, from: &Path, to: &Path) -> Result<()> {
    let directory = to.parent().expect("a file lies in a directory");
    device.rename(from, to).map_err(|e| Error::io("name", to, &e))?;
    if planted::is_on(Bug::ManifestNameUnflushed) {
        return Ok(());
    }
    device.sync_dir(directory).map_err(|e| Error::io("flush", directory, &e))
}

/// The name of a file while it is written.
pub(crate) fn new_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
