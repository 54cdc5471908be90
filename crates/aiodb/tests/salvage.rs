//! What can be taken out of damaged stores: everything that can be proved right, and word of the rest.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aiodb::{Db, Durability, Error, IndexKind, Options, SalvageReport, salvage, salvage_several};
use support::{KINDS, Known, Varied, copy_tree, merging, open, quiet, refusal, scratch, segment_files, upkeep, value};
use tempfile::TempDir;

const UNIT: usize = 4096;

type History = BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>;

/// A store as the death of its process leaves it, and every version that each key of its table `t` ever had.
struct Sample {
    directory: TempDir,
    history: History,
}

impl Sample {
    fn new(kind: IndexKind) -> Sample {
        let live = scratch();
        let (db, table) = open(live.path(), kind, &quiet());
        let mut history = History::new();
        let mut change = |key: &[u8], value: Option<Vec<u8>>, durability| {
            match &value {
                Some(value) => table.put_with(key, value, durability),
                None => table.delete_with(key, durability),
            }
            .expect("a write works");
            history.entry(key.to_vec()).or_default().push(value);
        };
        let key = |number: u64| format!("key {number}").into_bytes();
        for round in 0..3u64 {
            for number in 0..120 {
                let length = match number % 10 {
                    0 => 2000 + number as usize,
                    1 => 5000,
                    _ => 30 + number as usize,
                };
                let durability = if number % 3 == 0 { Durability::Sync } else { Durability::None };
                if number >= 40 * round {
                    change(&key(number), Some(value(1000 * round + number, length)), durability);
                }
            }
            change(b"large", Some(value(5000 + round, 600_000)), Durability::None);
            (0..10).for_each(|number| change(&key(10 * number + 5), None, Durability::None));
            if round == 1 {
                db.checkpoint().expect("a checkpoint can be made");
            }
        }
        let gone = db.create_table("gone", kind).expect("a table can be made");
        gone.put(b"never", b"to be seen again").expect("a put works");
        db.drop_table("gone").expect("a table can be dropped");
        db.create_table("empty", kind).expect("a table can be made");
        db.sync().expect("everything can be flushed");
        // These are only in the pending batch.
        (0..5).for_each(|number| change(&key(200 + number), Some(value(200 + number, 50)), Durability::None));
        let directory = scratch();
        copy_tree(live.path(), directory.path());
        Sample { directory, history }
    }

    fn copy(&self) -> TempDir {
        let copy = scratch();
        copy_tree(self.directory.path(), copy.path());
        copy
    }

    fn newest(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.history[key].last().expect("a key has a version").as_ref()
    }

    /// Salvages a damaged copy. Whatever comes out must be what was once put, and what is not the newest must have been
    /// told. Returns the keys that are not as they should be.
    fn salvage(&self, store: &Path, what: &str) -> (SalvageReport, Vec<String>) {
        let before = snapshot(store);
        let out = scratch();
        let report = salvage(store, out.path(), &mut |done, total| assert!(done <= total));
        let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(before == snapshot(store), "{what}: the source is never changed");
        let db = Db::open(out.path(), quiet()).expect("the new store can be opened");
        let table = db.table("t").expect("the table is there");
        let mut wrong = Vec::new();
        for (key, versions) in &self.history {
            let found = table.get(key).expect("a get works");
            assert!(found.is_none() || versions.contains(&found), "{what}: {} was never put", support::name(key));
            if found.as_ref() == self.newest(key) {
                continue;
            }
            let told = report.doubtful.iter().any(|doubtful| doubtful.key == *key && doubtful.table == "t");
            let older = found.is_some() && report.older_than_damage > 0;
            let lost = report.lost_regions > 0 || !report.notes.is_empty();
            assert!(told || older || lost, "{what}: {} is not the newest, and nothing says so", support::name(key));
            wrong.push(String::from_utf8_lossy(key).into_owned());
        }
        assert!(support::damage(&db).is_empty(), "{what}: the new store is sound");
        (report, wrong)
    }
}

/// All files of a directory.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("the directory can be listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            let bytes = fs::read(&path).expect("the file can be read");
            files.insert(path, bytes);
        }
    }
    files
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("the file can be read");
    change(&mut bytes);
    fs::write(path, bytes).expect("the file can be written");
}

fn remove(path: PathBuf) {
    if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.expect("it can be removed");
}

#[test]
fn without_damage_everything_comes_out() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let (report, wrong) = sample.salvage(sample.copy().path(), "no damage");
        assert!(wrong.is_empty() && report.is_complete(), "{}: {wrong:?} {report:?}", kind.name());
        let tables: Vec<_> = report.tables.keys().map(String::as_str).collect();
        assert_eq!(tables, ["empty", "t"]);
        let copy = sample.copy();
        remove(copy.path().join("index"));
        let (report, wrong) = sample.salvage(copy.path(), "no index");
        assert!(wrong.is_empty() && report.is_complete(), "{}: {wrong:?} {report:?}", kind.name());
    }
}

#[test]
fn identity_manifest_and_headers_can_be_done_without() {
    type Harm = fn(&Path);
    let manifests: Harm = |store| ["MANIFEST", "MANIFEST.copy"].iter().for_each(|name| remove(store.join(name)));
    let flipped: Harm = |store| {
        ["MANIFEST", "MANIFEST.copy", "STORE"].iter().for_each(|name| edit(&store.join(name), |bytes| bytes[40] ^= 4));
    };
    let identity: Harm = |store| remove(store.join("STORE"));
    let one_header: Harm = |store| edit(&segment_files(store)[0], |bytes| bytes[50] ^= 1);
    let all_headers: Harm = |store| segment_files(store).iter().for_each(|path| edit(path, |bytes| bytes[20] ^= 1));
    let harms: [(&str, &[Harm]); 7] = [
        ("no manifest", &[manifests]),
        ("no identity", &[identity]),
        ("no identity, no manifest", &[identity, manifests]),
        ("damaged identity and manifest", &[flipped]),
        ("one header", &[one_header]),
        ("no identity, no manifest, one header", &[identity, manifests, one_header]),
        ("no identity, no headers", &[identity, all_headers]),
    ];
    for kind in KINDS {
        let sample = Sample::new(kind);
        for (what, harm) in &harms {
            let copy = sample.copy();
            harm.iter().for_each(|harm| harm(copy.path()));
            let kept = || {
                let log = snapshot(&copy.path().join("log"));
                (log, ["MANIFEST", "STORE"].map(|name| fs::read(copy.path().join(name)).ok()))
            };
            let before = kept();
            refusal(Db::open(copy.path(), quiet()), what);
            assert!(before == kept(), "{what}: a refused opening changes nothing that counts");
            let (report, wrong) = sample.salvage(copy.path(), what);
            println!("{}: {what}: {} records, {:?} {:?}", kind.name(), report.records, report.notes, report.lost);
            assert!(wrong.is_empty(), "{}: {what}: {wrong:?} {report:?}", kind.name());
            assert!(!report.is_complete(), "{what}: it is told");
        }
    }
}

#[test]
fn a_flipped_bit_takes_at_most_one_key() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let mut harmed = 0;
        for seed in 0..60u64 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let copy = sample.copy();
            let files = segment_files(copy.path());
            let path = &files[rng.usize(..files.len())];
            let mut offset = 0;
            edit(path, |bytes| {
                // Somewhere in what was written.
                let end = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(UNIT);
                offset = rng.usize(..=end);
                bytes[offset] ^= 1 << rng.u8(..8);
            });
            let what = format!("{}: seed {seed}: byte {offset} of {}", kind.name(), path.display());
            let (_, wrong) = sample.salvage(copy.path(), &what);
            assert!(wrong.len() <= 1, "{what}: {wrong:?}");
            harmed += wrong.len();
        }
        assert!(harmed > 5, "{}: {harmed} flipped bits hit a newest version", kind.name());
    }
}

#[test]
fn a_damaged_newest_version_is_doubtful_and_the_one_before_is_delivered() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        // Small beside others, on blocks of its own, and in parts.
        for key in ["key 117", "key 110", "large"] {
            let newest = sample.newest(key.as_bytes()).expect("it is there").clone();
            let copy = sample.copy();
            for path in segment_files(copy.path()) {
                edit(&path, |bytes| {
                    let pattern = &newest[..newest.len().min(64)];
                    if let Some(at) = bytes.windows(pattern.len()).position(|window| window == pattern) {
                        bytes[at + 9] ^= 0x20;
                    }
                });
            }
            let (report, wrong) = sample.salvage(copy.path(), key);
            assert_eq!(wrong, [key], "{}: the others are not concerned", kind.name());
            let doubtful: Vec<_> =
                report.doubtful.iter().map(|doubtful| (&doubtful.key[..], doubtful.delivered)).collect();
            assert_eq!(doubtful, [(key.as_bytes(), true)], "{}: {report:?}", kind.name());
            assert!(report.lost_regions >= 1, "{report:?}");
        }
    }
}

#[test]
fn cut_and_lost_segments_are_told_and_the_others_come_out() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        for position in 0..segment_files(sample.directory.path()).len() {
            for length in [None, Some(0), Some(100), Some(UNIT), Some(200_000), Some(200_001)] {
                let copy = sample.copy();
                let path = &segment_files(copy.path())[position];
                match length {
                    None => remove(path.clone()),
                    Some(length) => edit(path, |bytes| bytes.truncate(length)),
                }
                let what = format!("{}: segment {position} cut to {length:?}", kind.name());
                let (report, wrong) = sample.salvage(copy.path(), &what);
                println!("{what}: {} wrong, {} places lost, {:?}", wrong.len(), report.lost_regions, report.notes);
                assert!(wrong.len() < sample.history.len() * 2 / 3, "{what}: the other segments come out: {wrong:?}");
            }
        }
    }
}

#[test]
fn what_was_deleted_and_reclaimed_stays_away() {
    for kind in KINDS {
        let directory = scratch();
        let db = Db::open(directory.path(), aiodb::Options { segment_bytes: 256 << 10, ..quiet() });
        let db = db.expect("a store can be made");
        let mut rng = fastrand::Rng::with_seed(5);
        let mut known = Known::new(db.create_table("t", kind).expect("a table can be made"));
        for round in 0..8 {
            known.change(&mut rng, 900);
            upkeep(&db);
            if round == 3 {
                db.truncate_table("t").expect("a table can be emptied");
                known.contents.clear();
            }
        }
        assert!(db.stats().bytes_moved_by_reclaim > 0, "segments were emptied");
        let copy = scratch();
        copy_tree(directory.path(), copy.path());
        let out = scratch();
        let report = salvage(copy.path(), out.path(), &mut |_, _| {}).expect("it can be salvaged");
        assert!(report.is_complete(), "{report:?}");
        known.check(&Db::open(out.path(), quiet()).expect("the new store can be opened"), kind.name());
    }
}

#[test]
fn operands_expiry_and_deleted_ranges_come_out() {
    for kind in KINDS {
        for with_reclaim in [false, true] {
            let directory = scratch();
            let options = Options { segment_bytes: 256 << 10, ..merging() };
            let db = Db::open(directory.path(), options).expect("a store can be made");
            let mut rng = fastrand::Rng::with_seed(29);
            let mut varied = Varied::new(&db, "t", kind);
            for _ in 0..6 {
                varied.change(&mut rng, 300);
                if with_reclaim {
                    upkeep(&db);
                }
            }
            varied.change(&mut rng, 50);
            let what = format!("{}, reclaim: {with_reclaim}", kind.name());
            assert_eq!(db.stats().bytes_moved_by_reclaim > 0, with_reclaim, "{what}");
            let copy = scratch();
            copy_tree(directory.path(), copy.path());
            let check = |out: &Path, what: &str| {
                // A salvage need not know the operator; a reader must.
                let db = Db::open(out, merging()).expect("the new store can be opened");
                varied.check(&db, what);
                assert!(support::damage(&db).is_empty(), "{what}: the new store is sound");
            };
            let out = scratch();
            let report = salvage(copy.path(), out.path(), &mut |_, _| {}).expect("it can be salvaged");
            assert!(report.is_complete(), "{what}: {report:?}");
            check(out.path(), &what);
            if !with_reclaim {
                ["MANIFEST", "MANIFEST.copy"].iter().for_each(|name| remove(copy.path().join(name)));
                let out = scratch();
                salvage(copy.path(), out.path(), &mut |_, _| {}).expect("it can be salvaged");
                check(out.path(), &format!("{what}, no manifest"));
            }
        }
    }
}

#[test]
fn a_store_of_several_directories_comes_out_as_far_as_they_are_there() {
    for kind in KINDS {
        let directories = support::scratches(3);
        let paths: Vec<_> = directories.iter().map(TempDir::path).collect();
        let (_db, table) = support::open_several(&paths, kind, &quiet());
        for number in 0..150u64 {
            let durability = if number % 20 == 0 { Durability::Sync } else { Durability::None };
            table.put_with(&number.to_be_bytes(), &value(number, 30_000), durability).expect("a put works");
        }
        let copies = support::scratches(3);
        paths.iter().zip(&copies).for_each(|(path, copy)| copy_tree(path, copy.path()));
        let [a, b, c] = [0, 1, 2].map(|ordinal: usize| copies[ordinal].path());
        let salvaged = |given: &[&Path]| {
            let out = scratch();
            let report = salvage_several(given, out.path(), &mut |_, _| {}).expect("it can be salvaged");
            let db = Db::open(out.path(), quiet()).expect("the new store lies in one directory");
            // Without the first directory and its manifest nothing says the name.
            let table = db.table(&db.tables()[0].0).expect("the table is there");
            let sound = |number: &u64| match table.get(&number.to_be_bytes()).expect("a get works") {
                Some(found) => {
                    support::assert_value(Some(&found), Some(&value(*number, 30_000)), "what comes out");
                    true
                }
                None => false,
            };
            ((0..150).filter(sound).count(), report)
        };
        let (found, report) = salvaged(&[b, c, a]);
        assert!(found == 150 && report.is_complete(), "{}: {found} {report:?}", kind.name());
        for given in [[a, b], [b, c], [a, c]] {
            let (found, report) = salvaged(&given);
            assert!((50..150).contains(&found), "{}: {found}", kind.name());
            assert!(report.notes.iter().any(|note| note.contains("3 directories, of which 2")), "{report:?}");
        }
        remove(c.join("STORE"));
        ["MANIFEST", "MANIFEST.copy", "STORE"].iter().for_each(|name| remove(a.join(name)));
        let (found, report) = salvaged(&[c, a, b]);
        assert!(found == 150 && !report.is_complete(), "{}: {found} {report:?}", kind.name());
        let other = scratch();
        drop(open(other.path(), kind, &quiet()));
        remove(other.path().join("log"));
        fs::create_dir(other.path().join("log")).expect("a directory can be made");
        for (given, what) in [([b, b], "a directory twice"), ([b, other.path()], "another store's directory")] {
            let error = refusal(salvage_several(&given, scratch().path(), &mut |_, _| {}), what);
            assert!(matches!(error, Error::Directory { .. }), "{what}: {error}");
        }
    }
}

#[test]
fn wrong_places_are_refused_with_advice() {
    let (directory, out) = (scratch(), scratch());
    let error = refusal(salvage(directory.path(), out.path(), &mut |_, _| {}), "no store");
    assert!(matches!(error, Error::NoStore { .. }), "{error}");
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    table.put(b"key", b"value").expect("a put works");
    let error = refusal(salvage(directory.path(), out.path(), &mut |_, _| {}), "a store in use");
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    db.close().expect("the store can be closed");
    fs::write(out.path().join("photo.jpg"), "mine").expect("a file can be written");
    let error = refusal(salvage(directory.path(), out.path(), &mut |_, _| {}), "a full directory");
    assert!(matches!(error, Error::Occupied { .. }), "{error}");
    let report = salvage(directory.path(), out.path().join("new"), &mut |_, _| {}).expect("it can be salvaged");
    assert!(report.is_complete() && report.tables["t"] == 1, "{report:?}");
}
