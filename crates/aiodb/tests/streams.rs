//! Values written and read piece by piece.

mod support;

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Error, IndexKind, Options, Table};
use fastrand::Rng;
use support::{KINDS, assert_get, damage, open, quiet, refusal, role, say, scratch, small, upkeep, value};

/// What lies in one piece in a store of [`small`] segments.
const PIECE: usize = 256 << 10;

/// Segments that are not free.
fn segments(db: &Db) -> u64 {
    let stats = db.stats();
    stats.segments_in_use + stats.segments_retiring
}

/// Writes a value through `std::io::Write` in pieces of all sizes.
fn write_in_pieces(table: &Table, key: &[u8], value: &[u8], rng: &mut Rng) {
    let mut writer = table.write_stream(key).expect("a writer can be made");
    let mut rest = value;
    while !rest.is_empty() {
        let length = match rng.u8(..3) {
            0 => rng.usize(..100),
            1 => rng.usize(..100_000),
            _ => rng.usize(..2 * PIECE),
        };
        let (now, later) = rest.split_at(length.min(rest.len()));
        writer.write_all(now).expect("the writer takes it");
        rest = later;
        assert_eq!(writer.length(), (value.len() - rest.len()) as u64, "the writer counts");
    }
    writer.flush().expect("a flush does nothing");
    writer.finish_with(if rng.bool() { Durability::Sync } else { Durability::None }).expect("it can be finished");
}

/// Compares every way of reading a key with its value.
fn check(table: &Table, key: &[u8], wanted: &[u8], rng: &mut Rng, what: &str) {
    assert_get(table, key, Some(wanted), what);
    let mut reader = table.read_stream(key).expect("it can be read").expect("it is there");
    assert_eq!(reader.length(), wanted.len() as u64, "{what}");
    let mut all = Vec::new();
    reader.read_to_end(&mut all).expect("it can be read to its end");
    support::assert_value(Some(&all), Some(wanted), what);
    assert_eq!(reader.seek(SeekFrom::End(10)).expect("a position beyond the end"), wanted.len() as u64 + 10);
    assert_eq!(reader.read(&mut [0; 10]).expect("nothing is there"), 0);
    assert!(reader.seek(SeekFrom::Current(-(wanted.len() as i64) - 11)).is_err(), "{what}: before the beginning");
    for _ in 0..20 {
        let offset = if wanted.is_empty() { 0 } else { rng.usize(..wanted.len()) };
        let length = if rng.bool() { rng.usize(..1000) } else { rng.usize(..2 * PIECE) };
        let part = &wanted[offset..(offset + length).min(wanted.len())];
        let found = table.get_range(key, offset as u64, length).expect("it can be read").expect("it is there");
        support::assert_value(Some(&found), Some(part), &format!("{what}: {length} bytes from {offset}"));
        assert_eq!(reader.seek(SeekFrom::Start(offset as u64)).expect("it is in the value"), offset as u64);
        let mut found = vec![0; part.len()];
        reader.read_exact(&mut found).expect("the value goes on");
        support::assert_value(Some(&found), Some(part), &format!("{what}: reader from {offset}"));
    }
    let beyond = table.get_range(key, wanted.len() as u64 + 1, 5).expect("it can be read");
    assert_eq!(beyond, Some(Vec::new()), "{what}: beyond the end is nothing");
    assert_eq!(table.get_range(key, u64::MAX, usize::MAX).expect("it can be read"), Some(Vec::new()), "{what}");
}

#[test]
fn what_is_written_in_pieces_is_read_in_pieces() {
    for kind in KINDS {
        let directory = scratch();
        let mut rng = Rng::with_seed(1);
        let lengths = [0, 1, 1279, 1280, 4096, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 5 * PIECE + 7];
        {
            let (db, table) = open(directory.path(), kind, &small());
            for (seed, length) in lengths.into_iter().enumerate() {
                let value = value(seed as u64, length);
                let what = format!("{}, {length} bytes", kind.name());
                write_in_pieces(&table, &[seed as u8], &value, &mut rng);
                check(&table, &[seed as u8], &value, &mut rng, &what);
                table.put_stream(&[100 + seed as u8], &value[..]).expect("it can be stored");
                check(&table, &[100 + seed as u8], &value, &mut rng, &format!("{what}, from a source"));
                table.put(&[200 + seed as u8], &value).expect("a put works");
                check(&table, &[200 + seed as u8], &value, &mut rng, &format!("{what}, put at once"));
            }
            assert_eq!(table.get_range(b"absent", 0, 10).expect("it can be asked for"), None);
            assert!(table.read_stream(b"absent").expect("it can be asked for").is_none());
            db.close().expect("the store can be closed");
        }
        let (db, table) = open(directory.path(), kind, &small());
        for (seed, length) in lengths.into_iter().enumerate() {
            for first in [0, 100, 200] {
                check(&table, &[first + seed as u8], &value(seed as u64, length), &mut rng, "after a restart");
            }
        }
        assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
    }
}

/// Gives so many bytes and then fails.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the line is dead"));
        }
        let length = out.len().min(self.0);
        self.0 -= length;
        Ok(length)
    }
}

#[test]
fn what_is_not_finished_is_not_there_and_gives_its_space_back() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        table.put(b"k", b"before").expect("a put works");
        for round in 0..40 {
            let error = refusal(table.put_stream(b"k", Failing(3 * PIECE)), "a source that fails");
            let Error::Source { bytes, cause } = &error else { panic!("{error}") };
            assert_eq!((*bytes, cause.kind()), (3 * PIECE as u64, io::ErrorKind::ConnectionReset), "{error}");
            let mut writer = table.write_stream(b"new").expect("a writer can be made");
            writer.write_all(&vec![1; 2 * PIECE + 5]).expect("the writer takes it");
            assert_get(&table, b"new", None, "nothing is there before the end");
            drop(writer);
            assert_get(&table, b"k", Some(b"before"), "the old value stays");
            assert_get(&table, b"new", None, "what was given up is not there");
            if round % 5 == 4 {
                upkeep(&db);
            }
        }
        // 40 MiB were written for nothing, in segments of 1 MiB.
        let used = segments(&db);
        assert!(used < 25, "{}: {used} segments are in use for one small value", kind.name());
        assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
    }
}

#[test]
fn an_endless_source_is_refused() {
    for kind in KINDS {
        let directory = scratch();
        let options = Options { segment_bytes: 64 << 10, ..small() };
        let (_db, table) = open(directory.path(), kind, &options);
        table.put(b"k", b"before").expect("a put works");
        let error = refusal(table.put_stream(b"k", io::repeat(7)), "an endless source");
        let Error::ValueLength { max, .. } = error else { panic!("{error}") };
        assert_get(&table, b"k", Some(b"before"), "the old value stays");

        let mut writer = table.write_stream(b"k").expect("a writer can be made");
        io::copy(&mut io::repeat(7).take(max as u64), &mut writer).expect("the longest value fits");
        let error = writer.write(b"!").expect_err("a byte too many");
        let error = error.downcast::<Error>().expect("the store's error is inside");
        assert!(matches!(error, Error::ValueLength { .. }), "{error}");
        let error = refusal(writer.finish(), "finishing after a failure");
        assert!(matches!(error, Error::ValueLength { .. }), "{error}");
        assert_get(&table, b"k", Some(b"before"), "the old value stays");

        table.put_stream(b"k", io::repeat(7).take(max as u64)).expect("the longest value fits");
        let end = table.get_range(b"k", max as u64 - 3, 10).expect("it can be read");
        assert_eq!(end, Some(vec![7; 3]), "its end is there");
        let error = refusal(table.put_stream(b"", io::empty()), "an empty key");
        assert!(matches!(error, Error::KeyLength { .. }), "{error}");
    }
}

#[test]
fn a_reader_goes_on_with_its_value_whatever_happens_to_the_key() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let wanted = value(1, 3 * PIECE + 100);
        table.put(b"large", &wanted).expect("a put works");
        table.put(b"small", &wanted[..100]).expect("a put works");
        let mut readers: Vec<_> = [b"large", b"large", b"small"]
            .map(|key| table.read_stream(key).expect("it can be read").expect("it is there"))
            .into();
        let mut beginning = vec![0; PIECE / 2];
        readers[0].read_exact(&mut beginning).expect("the value goes on");
        for round in 2..40 {
            table.put_with(b"large", &value(round, 3 * PIECE), Durability::None).expect("a put works");
            table.put_with(b"small", &value(round, 50), Durability::None).expect("a put works");
            if round % 5 == 0 {
                upkeep(&db);
            }
        }
        let held = segments(&db);
        db.drop_table("t").expect("a table can be dropped");
        upkeep(&db);
        for (reader, wanted) in readers.iter_mut().zip([&wanted[PIECE / 2..], &wanted, &wanted[..100]]) {
            let mut found = Vec::new();
            reader.read_to_end(&mut found).unwrap_or_else(|error| panic!("{}: {error}", kind.name()));
            support::assert_value(Some(&found), Some(wanted), &format!("{}: what the reader began with", kind.name()));
        }
        drop(readers);
        upkeep(&db);
        let used = segments(&db);
        assert!(used < 12 && used < held, "{}: {held} segments while readers held them, then {used}", kind.name());

        let other = db.create_table("other", kind).expect("a table can be made");
        other.put(b"k", &wanted).expect("a put works");
        let mut reader = other.read_stream(b"k").expect("it can be read").expect("it is there");
        db.close().expect("the store can be closed");
        let error = reader.read(&mut [0; 10]).expect_err("the store was closed");
        assert!(matches!(error.downcast::<Error>(), Ok(Error::Closed)), "the store's error is inside");
    }
}

#[test]
fn a_table_that_changes_under_a_writer_takes_nothing() {
    for kind in KINDS {
        for length in [10, 2 * PIECE] {
            let directory = scratch();
            let (db, table) = open(directory.path(), kind, &quiet());
            let begin = || {
                let mut writer = table.write_stream(b"k").expect("a writer can be made");
                writer.write_all(&vec![1; length]).expect("the writer takes it");
                writer
            };
            let writer = begin();
            db.truncate_table("t").expect("a table can be emptied");
            let error = refusal(writer.finish(), "a value for a table that was emptied");
            assert!(matches!(error, Error::TableEmptied { .. }), "{error}");
            assert_get(&table, b"k", None, "nothing was stored");
            let writer = begin();
            db.drop_table("t").expect("a table can be dropped");
            let error = refusal(writer.finish(), "a value for a table that was dropped");
            assert!(matches!(error, Error::NoSuchTable { .. }), "{error}");
            let again = db.create_table("t", kind).expect("a table can be made");
            let mut writer = again.write_stream(b"k").expect("a writer can be made");
            db.close().expect("the store can be closed");
            let error = writer.write(b"x").expect_err("the store was closed").downcast::<Error>();
            assert!(matches!(error, Ok(Error::Closed)), "the store's error is inside");
            assert!(matches!(refusal(writer.finish(), "a value for a closed store"), Error::Closed));
        }
    }
}

#[test]
fn damage_in_one_part_is_reported_by_what_reads_it() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let wanted = value(3, 4 * PIECE);
        table.put_stream(b"k", &wanted[..]).expect("it can be stored");
        db.close().expect("the store can be closed");
        drop((db, table));
        // A byte in the middle of the second part.
        let bytes = &wanted[PIECE + 1000..PIECE + 1064];
        let hit = support::segment_files(directory.path()).into_iter().find_map(|path| {
            let mut content = std::fs::read(&path).expect("the segment can be read");
            let at = content.windows(bytes.len()).position(|window| window == bytes)?;
            content[at] ^= 1;
            std::fs::write(&path, content).expect("the segment can be written");
            Some(path)
        });
        let hit = hit.expect("the part lies in some segment");
        let (_db, table) = open(directory.path(), kind, &quiet());
        for (offset, sound) in [(0, true), (PIECE - 1, true), (PIECE, false), (2 * PIECE - 1, false), (2 * PIECE, true)]
        {
            let found = table.get_range(b"k", offset as u64, 1);
            match found {
                Ok(Some(found)) => assert!(sound && found == wanted[offset..=offset], "the byte at {offset}"),
                Err(Error::Corruption { path, .. }) => assert!(!sound && path == hit, "damage at {offset}"),
                other => panic!("the byte at {offset}: {other:?}"),
            }
        }
        let mut reader = table.read_stream(b"k").expect("it can be read").expect("it is there");
        let error = io::copy(&mut reader, &mut io::sink()).expect_err("the second part is damaged");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        reader.seek(SeekFrom::Start(2 * PIECE as u64)).expect("it is in the value");
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).expect("the other parts are sound");
        support::assert_value(Some(&rest), Some(&wanted[2 * PIECE..]), "the other parts");
    }
}

#[test]
fn a_crash_in_the_middle_of_a_value_leaves_nothing_of_it() {
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let device = SimDevice::with_block_bytes(seed, 512);
        device.create_dir(Path::new("/store")).expect("a directory can be made");
        let options = Options { segment_bytes: 64 << 10, ..quiet() };
        let db = Db::open_on(device.clone(), "/store", options.clone()).expect("a store can be made");
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        let (old, new) = (value(1, 50_000), value(2, 150_000));
        table.put(b"k", &old).expect("a put works");
        device.crash_after(rng.u64(1..40));
        let stored = table.put_stream_with(b"k", &new[..], Durability::Sync);
        let acknowledged = stored.is_ok() && !device.has_crashed();
        let after = if rng.bool() { device.power_cut() } else { device.process_death() };
        let again = Db::open_on(after, "/store", options).expect("the store can be opened again");
        let table = again.table("t").expect("the table is there");
        let found = table.get(b"k").expect("the key can be read").expect("one of the values is there");
        assert!(found == new || (found == old && !acknowledged), "seed {seed}: neither the old nor the new value");
    }
}

#[test]
fn child() {
    let Some(role) = role() else { return };
    let bytes: u64 = role[1].parse().expect("the role says how many bytes");
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &Options::default());
    table.put_stream_with(b"k", io::repeat(7).take(bytes), Durability::None).expect("it can be stored");
    let mut reader = table.read_stream(b"k").expect("it can be read").expect("it is there");
    let copied = io::copy(&mut reader, &mut io::sink()).expect("it can be read");
    assert_eq!(copied, bytes, "all of it was read");
    db.close().expect("the store can be closed");
    let status = std::fs::read_to_string("/proc/self/status").expect("the process can be asked");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it knows its memory");
    say(peak.split_whitespace().next().expect("it is a number"));
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_value() {
    let peak_kib = |bytes: u64| -> u64 {
        let mut child = support::Role::start(&["stream", &bytes.to_string()]);
        let line = child.line().expect("the child says what it took");
        line.parse().expect("it says a number")
    };
    let (little, much) = (peak_kib(8 << 20), peak_kib(200 << 20));
    // What waits for the disk grows where it is slow, by the pieces under way; a value that is held whole adds 192 MiB.
    assert!(much < little + (64 << 10), "{little} KiB at most for 8 MiB, but {much} KiB for 200 MiB");
}
