//! The facts that a damaged store still tells about itself. Nothing here writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reading::{FileBytes, is_of_device, read_around, read_first};
use super::scan::seed_without_header;
use super::{LostRegion, SalvageReport};
use crate::format::batch::BatchView;
use crate::format::location::Location;
use crate::format::manifest::{Identity, MANIFEST_NAMES, Manifest, damage_error};
use crate::format::record::{Chunk, Record};
use crate::format::run::manifest::RunManifest;
use crate::format::segment::{Damage, HEADER_BYTES, PendingHeader, Seed, SegmentHeader};
use crate::io::{Access, Device, File, UNIT_BYTES};
use crate::log::commit::PENDING_BUFFERS;
use crate::{DirectoryFault, Error, Result};

/// A segment that may hold records that count.
pub(super) struct SourceSegment {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) seed: Seed,
    /// The number of its activation; `None` where nothing says it.
    pub(super) life: Option<u64>,
    /// The end that the manifest knows; 0 if none.
    pub(super) known_end: u64,
}

/// A batch that may not have come into the log.
pub(super) struct Pending {
    pub(super) header: PendingHeader,
    bytes: Vec<u8>,
}

impl Pending {
    pub(super) fn view(&self) -> BatchView<'_> {
        let PendingHeader { segment, offset, life, number, .. } = self.header;
        let seed = Seed::new(&self.header.store, segment, life);
        BatchView { bytes: &self.bytes[UNIT_BYTES..], seed, segment, offset, number }
    }
}

/// A value, if these bytes at its location are right.
fn sound_value(seed: Seed, location: Location, bytes: &[u8], checksum: Option<u32>) -> Option<Vec<u8>> {
    match checksum {
        Some(checksum) => {
            let sound = bytes.len() == location.length as usize && seed.checksum_at(location.offset, bytes) == checksum;
            sound.then(|| bytes.to_vec())
        }
        None => Record::decode(bytes, seed, location.offset).map(|record| record.value.to_vec()),
    }
}

/// A damaged store.
pub(super) struct Source<D: Device> {
    device: D,
    directories: Vec<PathBuf>,
    /// The files of all segments.
    paths: BTreeMap<u32, PathBuf>,
    pub(super) manifest: Option<Manifest>,
    /// The store's id, if a file tells it.
    pub(super) store: Option<[u8; 16]>,
    pub(super) segment_bytes: Option<u64>,
    pub(super) segments: Vec<SourceSegment>,
    pub(super) pending: Arc<Vec<Pending>>,
    /// Whether the manifest lists a segment that is not there, or a directory is missing.
    pub(super) lacks_segments: bool,
    /// The lives of segments that the manifest lists and that are not there.
    pub(super) lost_lives: Vec<u64>,
    /// Whether there may be other segments that are not there.
    pub(super) lacks_directories: bool,
    /// Whether batches that had not come into the log may be missing.
    pub(super) lacks_pending: bool,
}

impl<D: Device> Source<D> {
    /// Reads identity, manifest and segment headers, and notes which of them are lost.
    pub(super) fn open(device: D, directories: &[&Path], report: &mut SalvageReport) -> Result<Source<D>> {
        let mut paths = BTreeMap::new();
        for directory in directories {
            let log = directory.join("log");
            let names = device.list(&log).map_err(|_| Error::NoStore { path: directory.to_path_buf() })?;
            for name in names {
                let Some(number) = name.strip_suffix(".seg").and_then(|number| number.parse().ok()) else { continue };
                if let Some(other) = paths.insert(number, log.join(name)) {
                    let fault = DirectoryFault::Twice { other };
                    return Err(Error::Directory { path: directory.to_path_buf(), fault });
                }
            }
        }
        let numbers: Vec<u32> = paths.keys().copied().collect();
        let mut source = Source {
            device,
            directories: directories.iter().map(|directory| directory.to_path_buf()).collect(),
            paths,
            manifest: None,
            store: None,
            segment_bytes: None,
            segments: Vec::new(),
            pending: Arc::default(),
            lacks_segments: false,
            lost_lives: Vec::new(),
            lacks_directories: false,
            lacks_pending: false,
        };
        let (mut headers, mut newer) = (BTreeMap::new(), None);
        for number in numbers {
            let path = source.segment_path(number);
            let Some(unit) = source.read_start(&path)? else {
                headers.insert(number, None);
                continue;
            };
            match SegmentHeader::decode(&unit) {
                Ok(header) if header.segment == number => drop(headers.insert(number, Some(header))),
                Err(damage @ Damage::Newer { .. }) => {
                    newer = Some(damage_error(&path, 0, damage, ""));
                    headers.insert(number, None);
                }
                // An emptied segment that is being filled again has no header.
                _ if unit.iter().all(|byte| *byte == 0) => {}
                _ => drop(headers.insert(number, None)),
            }
        }
        source.read_identity(&headers, report)?;
        source.read_manifest(report)?;
        // One file of a newer version among older ones is damaged; if there is no older one, a newer program is needed.
        if let Some(newer) = newer
            && source.manifest.is_none()
            && headers.values().flatten().next().is_none()
        {
            return Err(newer);
        }
        source.choose_segments(headers, report)?;
        source.pending = Arc::new(source.read_pending(report));
        Ok(source)
    }

    /// A segment's file, or where it should be if it is missing.
    fn segment_path(&self, number: u32) -> PathBuf {
        let missing = || self.directories[0].join("log").join(format!("{number:08}.seg"));
        self.paths.get(&number).cloned().unwrap_or_else(missing)
    }

    /// A file by its name in whichever directory has it, as `decode` sees it.
    fn find_file<T>(&self, name: &str, decode: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        self.directories.iter().find_map(|directory| {
            let read = read_around(&self.device, &directory.join(name)).ok()??;
            decode(&read.bytes)
        })
    }

    /// The bytes of a segment's header, fewer if the file is shorter; `None` if the device does not give them.
    fn read_start(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        let file = match self.device.open(path, Access::READ) {
            Err(error) if is_of_device(&error) => return Ok(None),
            opened => opened.map_err(|e| Error::io("open", path, &e))?,
        };
        let read = read_first(&file, path, HEADER_BYTES)?;
        Ok(read.unread.is_empty().then_some(read.bytes))
    }

    /// Bytes of all segments that are read.
    pub(super) fn bytes(&self) -> u64 {
        let length = |segment: &SourceSegment| self.device.open(&segment.path, Access::READ)?.length();
        self.segments.iter().map(|segment| length(segment).unwrap_or(0)).sum()
    }

    /// The bytes of a segment file, as many as there are.
    pub(super) fn read(&self, segment: &SourceSegment) -> Result<FileBytes> {
        Ok(read_around(&self.device, &segment.path)?.unwrap_or_default())
    }

    /// The batches that lay ready to be written, or had been, when the process died.
    fn read_pending(&mut self, report: &mut SalvageReport) -> Vec<Pending> {
        let mut pending = Vec::new();
        let names = (0..PENDING_BUFFERS).map(|number| format!("pending/{number}"));
        let paths: Vec<PathBuf> =
            names.flat_map(|name| self.directories.iter().map(move |directory| directory.join(&name))).collect();
        for path in paths {
            let Ok(Some(FileBytes { bytes, unread })) = read_around(&self.device, &path) else { continue };
            if let Some(first) = unread.first() {
                self.lacks_pending = true;
                report.notes.push(format!(
                    "{} cannot be read in part ({}): writes of the last moments may be lost",
                    path.display(),
                    first.reason
                ));
            }
            let Some(Ok(header)) = bytes.get(..HEADER_BYTES).map(PendingHeader::decode) else { continue };
            let ours = self.store.is_none_or(|store| store == header.store) && bytes.len() > UNIT_BYTES;
            if ours {
                pending.push(Pending { header, bytes });
            }
        }
        pending
    }

    /// A part of a large value, if it checks out.
    pub(super) fn read_chunk(&self, chunk: &Chunk) -> Option<Vec<u8>> {
        self.read_value(chunk.location, Some(chunk.checksum))
    }

    /// The value at a location, in the log or in a pending batch: with a checksum it is the bytes at the location, else it is in
    /// the record there. `None` if it does not check out.
    pub(super) fn read_value(&self, location: Location, checksum: Option<u32>) -> Option<Vec<u8>> {
        self.read_logged(location, checksum).or_else(|| {
            self.pending.iter().map(Pending::view).filter(|view| view.segment == location.segment).find_map(|view| {
                let bytes = view.slice(location)?;
                sound_value(view.seed, location, bytes, checksum)
            })
        })
    }

    fn read_logged(&self, location: Location, checksum: Option<u32>) -> Option<Vec<u8>> {
        let segment = self.segments.iter().find(|found| found.number == location.segment)?;
        let file = self.device.open(&segment.path, Access::READ).ok()?;
        let mut bytes = vec![0; location.length as usize];
        let read = file.read_at(&mut bytes, u64::from(location.offset)).ok()?;
        sound_value(segment.seed, location, &bytes[..read], checksum)
    }

    /// This machine's clock, in milliseconds since 1970.
    pub(super) fn device_ms(&self) -> u64 {
        self.device.wall_ms()
    }

    /// The identity, or that of most segment headers.
    fn read_identity(
        &mut self,
        headers: &BTreeMap<u32, Option<SegmentHeader>>,
        report: &mut SalvageReport,
    ) -> Result<()> {
        let mut identity: Option<Identity> = None;
        for directory in &self.directories {
            let path = directory.join("STORE");
            let bytes = read_around(&self.device, &path)?.unwrap_or_default().bytes;
            match (Identity::decode(&bytes), identity) {
                (Ok(other), Some(first)) if other.store != first.store => {
                    return Err(Error::Directory { path: directory.clone(), fault: DirectoryFault::Foreign });
                }
                (Ok(found), _) => identity = Some(found),
                (Err(_), _) => {
                    let path = path.display();
                    report.notes.push(format!("{path} is lost or damaged: what it says is taken from other files"));
                }
            }
        }
        let mut count = headers.values().flatten().map(|header| usize::from(header.directories)).max().unwrap_or(1);
        match identity {
            Some(identity) => {
                (self.store, self.segment_bytes) = (Some(identity.store), Some(identity.segment_bytes));
                count = usize::from(identity.count);
            }
            None => {
                let mut votes: BTreeMap<([u8; 16], u64), usize> = BTreeMap::new();
                for header in headers.values().flatten() {
                    *votes.entry((header.store, header.segment_bytes)).or_default() += 1;
                }
                let most = votes.into_iter().max_by_key(|(_, count)| *count);
                (self.store, self.segment_bytes) = most.map(|(key, _)| key).unzip();
                self.store = self.store.or_else(|| self.store_of_manifest());
            }
        }
        let given = self.directories.len();
        if given < count {
            report.notes.push(format!("the store lies in {count} directories, of which {given} were given"));
            (self.lacks_segments, self.lacks_directories) = (true, true);
        }
        Ok(())
    }

    /// A manifest that checks out says which store it is of.
    fn store_of_manifest(&self) -> Option<[u8; 16]> {
        MANIFEST_NAMES.into_iter().find_map(|name| {
            self.find_file(name, |bytes| {
                let store = bytes.get(16..32)?.try_into().ok()?;
                Manifest::decode(bytes, &store).is_ok().then_some(store)
            })
        })
    }

    /// The manifest of the sorted runs, and the store's id, as far as they are there.
    pub(super) fn runs(&self) -> Option<(RunManifest, [u8; 16])> {
        let store = self.store?;
        let read = |name: &&str| {
            let name = format!("index/runs/{name}");
            self.find_file(&name, |bytes| RunManifest::decode(bytes, &store).ok())
        };
        let latest = MANIFEST_NAMES.iter().filter_map(read).max_by_key(|manifest| manifest.edit);
        latest.map(|manifest| (manifest, store))
    }

    /// The bytes of a file of a sorted run, as many as there are.
    pub(super) fn read_run(&self, number: u64) -> Vec<u8> {
        let name = format!("index/runs/{number:012}.run");
        self.find_file(&name, |bytes| Some(bytes.to_vec())).unwrap_or_default()
    }

    /// The tables that the sorted runs have keys of, as far as a manifest of these tells.
    pub(super) fn tables_of_runs(&self) -> BTreeSet<u32> {
        self.runs().iter().flat_map(|(manifest, _)| &manifest.keys).map(|count| count.table).collect()
    }

    fn read_manifest(&mut self, report: &mut SalvageReport) -> Result<()> {
        let Some(store) = self.store else { return Ok(()) };
        for name in MANIFEST_NAMES {
            self.manifest = self.find_file(name, |bytes| Manifest::decode(bytes, &store).ok());
            if self.manifest.is_some() {
                return Ok(());
            }
            report.notes.push(format!("{name} is lost or damaged"));
        }
        report.notes.push(
            "without a manifest nothing says which segments had been given up: deleted records may be back, \
             and tables whose creation is lost have made-up names"
                .into(),
        );
        Ok(())
    }

    /// With a manifest, segments count that it lists and those of later lives. Without, all that were ever used do.
    fn choose_segments(
        &mut self,
        headers: BTreeMap<u32, Option<SegmentHeader>>,
        report: &mut SalvageReport,
    ) -> Result<()> {
        let listed: BTreeMap<u32, (u64, u64)> = self
            .manifest
            .iter()
            .flat_map(|manifest| &manifest.segments)
            .map(|entry| (entry.number, (entry.life, entry.end)))
            .collect();
        let next_life = self.manifest.as_ref().map(|manifest| manifest.next_life);
        for (number, (life, end)) in listed.iter().filter(|(number, _)| !headers.contains_key(number)) {
            self.lacks_segments = true;
            self.lost_lives.push(*life);
            report.lose(LostRegion {
                path: self.segment_path(*number),
                offset: 0,
                length: *end,
                what: "the segment is missing".into(),
            });
        }
        for (number, header) in headers {
            let path = self.segment_path(number);
            let ours = header.filter(|header| Some(header.store) == self.store);
            let entry = listed.get(&number);
            let known_end = entry.map_or(0, |(_, end)| *end);
            let life = match (ours, entry) {
                // The file of another time: the life that the manifest knows is not there.
                (Some(header), Some((life, _))) if header.life < *life => {
                    let what = format!("the segment's life is {}, the manifest knows {life}", header.life);
                    self.lacks_segments = true;
                    self.lost_lives.push(*life);
                    report.lose(LostRegion { path, offset: 0, length: known_end, what });
                    continue;
                }
                (Some(header), _) => Some(header.life),
                (None, entry) => entry.map(|(life, _)| *life),
            };
            if ours.is_none() {
                let what = "the segment's header does not check out; its records are told by their own checksums";
                let length = UNIT_BYTES as u64;
                report.lose(LostRegion { path: path.clone(), offset: 0, length, what: what.into() });
            }
            let seed = match (self.store, life) {
                (Some(_), Some(life)) if !listed.contains_key(&number) && next_life.is_some_and(|next| life < next) => {
                    // Given up before the checkpoint.
                    continue;
                }
                (Some(_), Some(0)) => continue,
                (Some(store), Some(life)) => Some(Seed::new(&store, number, life)),
                _ => seed_without_header(&read_around(&self.device, &path)?.unwrap_or_default().bytes),
            };
            if let Some(seed) = seed {
                self.segments.push(SourceSegment { number, path, seed, life, known_end });
            }
        }
        Ok(())
    }
}
