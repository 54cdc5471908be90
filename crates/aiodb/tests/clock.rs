//! Records expire by a clock that may be wrong by years, and is put right.

mod support;

use std::num::NonZeroU64;
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Db, IndexKind, Options, Step, Table, WriteOptions};
use support::{KINDS, scratch, small};

const MINUTE_MS: u64 = 60 * 1000;
const TEN_YEARS_MS: u64 = 10 * 365 * 24 * 60 * MINUTE_MS;

/// A store with one table on a simulated machine.
struct Store {
    device: SimDevice,
    _directory: tempfile::TempDir,
    open: Option<(Db<SimDevice>, Table<SimDevice>)>,
}

impl Store {
    fn new(kind: IndexKind) -> Store {
        let (directory, device) = (scratch(), SimDevice::new(26));
        device.set_real_directory(directory.path());
        device.create_dir(Path::new("/store")).expect("a directory");
        let mut store = Store { device, _directory: directory, open: None };
        let db = store.db();
        let table = db.create_table("t", kind).expect("a table");
        store.open = Some((db, table));
        store
    }

    fn db(&self) -> Db<SimDevice> {
        let options = Options { background: false, ..small() };
        Db::open_on(self.device.clone(), Path::new("/store"), options).expect("the store opens")
    }

    fn table(&self) -> &Table<SimDevice> {
        &self.open.as_ref().expect("the store is open").1
    }

    fn opened(&mut self) {
        let db = self.db();
        let table = db.table("t").expect("the table");
        self.open = Some((db, table));
    }

    fn reopen(&mut self) {
        self.close();
        self.opened();
    }

    /// Opens the store again, with the system's clock so many milliseconds behind.
    fn reopen_behind(&mut self, behind_ms: u64) {
        self.close();
        self.device.set_wall_clock(-(behind_ms as i64));
        self.opened();
    }

    fn close(&mut self) {
        self.open.as_ref().expect("the store is open").0.close().expect("the store closes");
        self.open = None;
    }

    fn die(&mut self) {
        self.device = self.device.process_death();
        self.open = None;
        self.opened();
    }

    /// Puts a value that lives so long by the system's clock, and fills a batch with it.
    fn put(&self, key: &[u8], lives_ms: u64) {
        let expires_ms = NonZeroU64::new(self.device.wall_ms() + lives_ms);
        self.table().put_with(key, b"v", WriteOptions { expires_ms, ..WriteOptions::default() }).expect("a put");
    }

    fn has(&self, key: &[u8]) -> bool {
        self.table().get(key).expect("a get").is_some()
    }

    /// Lets time pass as the threads of a store do: they look at the clock all the time.
    fn pass(&self, minutes: u64) {
        for _ in 0..minutes {
            self.device.advance_clock(MINUTE_MS);
            self.step(Step::WriteBehind);
        }
    }

    fn step(&self, step: Step) {
        self.open.as_ref().expect("the store is open").0.step(step).expect("background work");
    }

    /// The system's clock is set to so many milliseconds after what it should show.
    fn set_clock(&self, ahead_ms: u64) {
        self.device.set_wall_clock(ahead_ms as i64);
        self.step(Step::WriteBehind);
    }

    fn clock_ahead_ms(&self) -> i64 {
        self.open.as_ref().expect("the store is open").0.stats().clock_ahead_ms
    }
}

#[test]
fn a_reading_ten_years_ahead_hides_nothing() {
    for kind in KINDS {
        let store = Store::new(kind);
        store.put(b"soon", 60 * MINUTE_MS);
        store.set_clock(TEN_YEARS_MS);
        assert!(store.has(b"soon"), "{}: one reading is not believed", kind.name());
        assert!(store.clock_ahead_ms() as u64 > TEN_YEARS_MS / 2, "statistics say that the clock is doubted");
        store.pass(5);
        assert!(store.has(b"soon"), "{}", kind.name());
        store.set_clock(0);
        assert!(store.has(b"soon") && store.clock_ahead_ms() == 0, "{}", kind.name());
        store.pass(60);
        assert!(!store.has(b"soon"), "{}: its time is over", kind.name());
    }
}

#[test]
fn time_comes_back_after_a_clock_that_stood_ten_years_ahead() {
    for kind in KINDS {
        let mut store = Store::new(kind);
        store.put(b"before", 60 * MINUTE_MS);
        store.set_clock(TEN_YEARS_MS);
        store.pass(15);
        assert!(!store.has(b"before"), "{}: a clock that stands there is believed", kind.name());
        store.put(b"there", MINUTE_MS);
        store.set_clock(0);
        store.put(b"after", 60 * MINUTE_MS);
        for _ in 0..8 {
            // What a doubtful time hides must not be given up.
            for step in [Step::Settle, Step::Reclaim, Step::Checkpoint, Step::Prepare] {
                store.step(step);
            }
        }
        store.pass(15);
        assert!(store.has(b"after") && store.clock_ahead_ms() == 0, "{}: time has come back", kind.name());
        store.put(b"later", 60 * MINUTE_MS);
        assert!(store.has(b"later"), "{}", kind.name());
        store.reopen();
        assert!(store.has(b"after") && store.has(b"later"), "{}: after opening again", kind.name());
        store.die();
        assert!(store.has(b"after") && store.has(b"later"), "{}: after a death", kind.name());
        store.pass(60);
        assert!(!store.has(b"after") && !store.has(b"later"), "{}: their time is over", kind.name());
    }
}

/// A store may never be open for long.
#[test]
fn time_comes_back_over_short_openings() {
    for (kind, dies) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut store = Store::new(kind);
        store.set_clock(TEN_YEARS_MS);
        store.pass(15);
        store.put(b"wrong", MINUTE_MS);
        if dies {
            store.die();
        } else {
            store.reopen();
        }
        store.device.set_wall_clock(0);
        store.reopen();
        store.put(b"right", 60 * MINUTE_MS);
        store.reopen();
        assert!(store.has(b"right"), "{}: the time that was wrong is not written down again", kind.name());
    }
}

#[test]
fn a_clock_that_is_set_back_brings_nothing_back_for_a_while() {
    for kind in KINDS {
        let store = Store::new(kind);
        store.put(b"soon", MINUTE_MS);
        store.pass(2);
        assert!(!store.has(b"soon"), "{}", kind.name());
        store.device.set_wall_clock(-(TEN_YEARS_MS as i64));
        store.pass(5);
        assert!(!store.has(b"soon"), "{}: the clock may be put right yet", kind.name());
        store.set_clock(0);
        assert!(!store.has(b"soon") && store.clock_ahead_ms() == 0, "{}", kind.name());
    }
}

/// A doubt ends with the next opening: a clock that is years behind at the second one, too, is believed there, and brings back what
/// was over. Put right, it hides that again, and nothing was given up that lives.
#[test]
fn a_clock_that_is_behind_at_two_openings_is_believed_at_the_second() {
    for kind in KINDS {
        let mut store = Store::new(kind);
        store.put(b"over", MINUTE_MS);
        store.put(b"lives", 60 * MINUTE_MS);
        store.pass(2);
        let sees = |store: &Store| (store.has(b"over"), store.has(b"lives"));
        assert_eq!(sees(&store), (false, true), "{}", kind.name());
        store.reopen_behind(TEN_YEARS_MS);
        assert_eq!(sees(&store), (false, true), "{}: it is doubted", kind.name());
        assert!(store.clock_ahead_ms() < 0);
        store.reopen_behind(TEN_YEARS_MS);
        assert_eq!(sees(&store), (true, true), "{}: it is believed", kind.name());
        for step in [Step::Settle, Step::Reclaim, Step::Checkpoint, Step::Prepare, Step::Reclaim] {
            store.step(step);
        }
        store.reopen_behind(0);
        assert_eq!(sees(&store), (false, true), "{}: it was put right", kind.name());
        assert_eq!(store.clock_ahead_ms(), 0);
    }
}
