//! The machine that the threads run on, and values that tell where they belong.

use std::path::{Path, PathBuf};

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::merge::Append;
use aiodb::{Batch, Db, Durability, IndexKind, MergeOperators, Options, Sequence, Step, Table, TableOptions};
use shuttle::thread;
use tempfile::TempDir;

pub fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        cache_bytes: 128 << 10,
        block_cache_bytes: Some(128 << 10),
        merge_operators: MergeOperators::default().with(Append),
        background: false,
        ..Options::default()
    }
}

/// A simulated machine with a real directory for the file that LMDB maps.
pub struct Machine {
    pub device: SimDevice,
    kind: IndexKind,
    root: TempDir,
    processes: u32,
}

impl Machine {
    pub fn new(seed: u64, kind: IndexKind) -> Machine {
        // In memory where there is such a file system: no test here cuts the power of a real disk.
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let root = root.expect("a directory for the test can be made");
        let machine = Machine { device: SimDevice::new(seed), kind, root, processes: 0 };
        machine.device.set_real_directory(machine.directory());
        machine
    }

    pub fn open(&self) -> (Db<SimDevice>, Table<SimDevice>) {
        self.open_with(options())
    }

    pub fn open_with(&self, options: Options) -> (Db<SimDevice>, Table<SimDevice>) {
        self.device.create_dir(Path::new("/store")).expect("the machine runs");
        let db = Db::open_on(self.device.clone(), "/store", options).expect("the store can be opened");
        let options = TableOptions { merge: Some("append".into()), ..self.kind.into() };
        let table =
            db.table("t").or_else(|_| db.create_table_with("t", options)).expect("the table is there or can be made");
        (db, table)
    }

    pub fn process_death(self) -> Machine {
        let device = self.device.process_death();
        self.next_process(device)
    }

    /// LMDB's file keeps what was committed: a commit is durable when it returns.
    pub fn power_cut(self) -> Machine {
        let device = self.device.power_cut();
        self.next_process(device)
    }

    /// The dead process has the file mapped still: the next one finds a copy.
    fn next_process(self, device: SimDevice) -> Machine {
        let before = self.directory();
        let machine = Machine { device, processes: self.processes + 1, ..self };
        let file = |directory: &Path| directory.join(Path::new("store/index/lmdb/data.mdb"));
        if file(&before).exists() {
            let to = file(&machine.directory());
            std::fs::create_dir_all(to.parent().expect("it lies in a directory")).expect("directories can be made");
            std::fs::copy(file(&before), to).expect("LMDB's file can be copied");
        }
        machine.device.set_real_directory(machine.directory());
        machine
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join(self.processes.to_string())
    }
}

pub fn value(key: u64, version: u64, length: usize) -> Vec<u8> {
    let mut value = [key.to_le_bytes(), version.to_le_bytes()].concat();
    value.resize(length, version as u8);
    value
}

pub fn version(key: u64, found: &[u8]) -> u64 {
    let version = u64::from_le_bytes(found[8..16].try_into().expect("a value has a version"));
    assert!(found == value(key, version, found.len()), "key {key} has a mixture of values");
    version
}

/// A thread that writes a batch which takes a while from the log to the index, with this at its end, and then writes what
/// is open to the log.
pub fn write_slowly(
    db: &Db<SimDevice>,
    table: &Table<SimDevice>,
    last: fn(&mut Batch<SimDevice>, &Table<SimDevice>) -> aiodb::Result<()>,
) -> thread::JoinHandle<Sequence> {
    let (db, table) = (db.clone(), table.clone());
    thread::spawn(move || {
        let mut batch = Batch::new();
        for number in 0..4_u64 {
            batch.put(&table, &number.to_le_bytes(), b"other").expect("it is short");
        }
        last(&mut batch, &table).expect("it is short");
        let sequence = db.write_with(&batch, Durability::None).expect("the machine runs");
        db.step(Step::Write).expect("the machine runs");
        sequence
    })
}

/// What the key holds, before and after everything is settled, and after the death of the process.
pub fn check_key(
    (db, table): (&Db<SimDevice>, &Table<SimDevice>),
    (machine, options): (Machine, Options),
    wanted: Option<&[u8]>,
) {
    let found = |table: &Table<SimDevice>| table.get(b"key").expect("the machine runs");
    assert_eq!(found(table).as_deref(), wanted);
    db.step(Step::Settle).expect("the machine runs");
    assert_eq!(found(table).as_deref(), wanted);
    let machine = machine.process_death();
    let (_db, table) = machine.open_with(options);
    assert_eq!(found(&table).as_deref(), wanted);
}
