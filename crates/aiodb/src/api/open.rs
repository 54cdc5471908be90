//! How users open a store.

use std::path::Path;
use std::sync::Arc;

use crate::api::db::Db;
use crate::flow::directories::{check_count, prepare};
use crate::flow::lifecycle::Handle;
use crate::flow::upkeep::background;
use crate::io::{Device, Disk};
use crate::store::engine::Engine;
use crate::{Options, Result};

impl Db<Disk> {
    /// Opens a store that lies in several directories, each on a disk of its own, or makes one there (see
    /// [`Options::create`]). Reads and writes are spread over them; the first one also has the indexes.
    ///
    /// The number of directories is fixed when the store is made, at most 64. All of them are needed to open it, in any
    /// order; otherwise it fails with [`crate::Error::Directory`]. A full disk is passed over while others have room. Else like
    /// [`Db::open`].
    pub fn open_several<P: AsRef<Path>>(paths: &[P], options: Options) -> Result<Db> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        check_count(&paths)?;
        prepare(&paths, &options)?;
        let device = if options.read_only {
            Disk::open_to_read(&paths, options.backend, options.direct)?
        } else {
            Disk::open_several(&paths, options.backend, options.direct)?
        };
        let device = device.with_max_open_files(options.max_open_files);
        Db::open_several_on(device, &paths, options)
    }
}

impl<D: Device> Db<D> {
    /// Like [`Db::open_several`] on another device; the directories must exist.
    pub fn open_several_on<P: AsRef<Path>>(device: D, paths: &[P], options: Options) -> Result<Db<D>> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        check_count(&paths)?;
        let run_background = options.background && !options.read_only;
        let engine = Arc::new(Engine::open(device, &paths, options)?);
        if run_background {
            background::start(&engine)?;
        }
        Ok(Db { engine: Arc::new(Handle::new(engine)) })
    }
}
