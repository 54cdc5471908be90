use std::io::ErrorKind;

use super::*;
use crate::error::Error;
use crate::io::File;

fn disk_in_memory() -> Option<(tempfile::TempDir, Disk)> {
    let dir = tempfile::tempdir_in("/dev/shm").ok()?;
    let disk = Disk::open(dir.path(), Backend::Threads, true).unwrap();
    Some((dir, disk))
}

/// Makes the kernel refuse system calls to this thread and to the threads that it starts.
fn refuse(calls: &[libc::c_long]) {
    let instruction = |code: u32, jt: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (index, call) in calls.iter().enumerate() {
        // Over the remaining comparisons and the permission that follows them.
        let to_refusal = (calls.len() - index) as u8;
        program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, to_refusal, *call as u32));
    }
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives during the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
}

fn opened_without(calls: &'static [libc::c_long], backend: Backend, direct: bool) -> Result<Report> {
    let open = move || {
        refuse(calls);
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path(), backend, direct)?;
        drop(disk.queue(64).unwrap());
        Ok(disk.report())
    };
    std::thread::spawn(open).join().unwrap()
}

#[test]
fn refused_backends_are_passed_over_and_named() {
    let report = opened_without(&[libc::SYS_io_uring_setup], Backend::Auto, true).unwrap();
    if !report.direct {
        return println!("skipped: there is no O_DIRECT here");
    }
    assert_eq!(report.backend, "libaio");
    assert_eq!(report.fallbacks, ["uring was refused: Operation not permitted (os error 1)"]);
    let report = opened_without(&[libc::SYS_io_uring_setup, libc::SYS_io_setup], Backend::Auto, true).unwrap();
    assert_eq!(report.backend, "threads");
    assert_eq!(report.fallbacks.len(), 2);
    assert!(report.fallbacks[1].starts_with("libaio was refused"));
    // Through the page cache libaio has no use, and is not tried.
    let report = opened_without(&[libc::SYS_io_uring_setup], Backend::Auto, false).unwrap();
    assert_eq!((report.backend, report.fallbacks.len()), ("threads", 1));
}

#[test]
fn a_forced_backend_that_is_refused_is_an_error() {
    for (backend, name, call) in
        [(Backend::Uring, "uring", &[libc::SYS_io_uring_setup]), (Backend::Libaio, "libaio", &[libc::SYS_io_setup])]
    {
        let error = opened_without(call, backend, true).unwrap_err();
        assert!(matches!(&error, Error::Backend { backend, .. } if *backend == name), "{error}");
        assert!(error.to_string().contains("Operation not permitted"), "{error}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let error = Disk::open(Path::new("/proc/self"), Backend::Auto, true).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path == Path::new("/proc/self")), "{error}");
    let error = Disk::open(Path::new("/missing/directory"), Backend::Auto, true).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Io { kind: ErrorKind::NotFound, .. }), "{error}");
}

#[test]
fn a_reservation_beyond_the_disk_is_refused_and_given_back() {
    let Some((dir, disk)) = disk_in_memory() else { return println!("skipped: there is no /dev/shm here") };
    let shared_memory = c"/dev/shm";
    // SAFETY: all bytes zero are a value of this structure of numbers.
    let mut space: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero and the structure is written to.
    assert_eq!(unsafe { libc::statvfs(shared_memory.as_ptr(), &mut space) }, 0);
    if space.f_blocks == 0 {
        return println!("skipped: /dev/shm has no limit");
    }
    let file = disk.open(&dir.path().join("file"), Access::NEW_SEGMENT).unwrap();
    file.reserve(8192).unwrap();
    let too_much = (space.f_blocks + 1) * space.f_frsize;
    assert_eq!(file.reserve(too_much).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.length().unwrap(), 8192);
    let error = disk.map(&dir.path().join("mapped"), too_much as usize).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

/// Runs as a process of its own, see below: takes the lock, says so, and waits for its input to end.
#[test]
#[ignore = "is started by the test of the lock"]
fn lock_holder() {
    let Ok(path) = std::env::var("AIODB_TEST_LOCK") else { return println!("skipped: no lock was named") };
    let disk = Disk::open(Path::new(&path).parent().unwrap(), Backend::Threads, false).unwrap();
    let _held = disk.lock(Path::new(&path)).unwrap().unwrap_or_else(|holder| panic!("held by {holder}"));
    eprintln!("locked");
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_lock_is_exclusive_between_processes_and_names_its_holder() {
    use std::process::{Command, Stdio};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "io::disk::tests::lock_holder", "--ignored", "--nocapture"]);
    command.env("AIODB_TEST_LOCK", &path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = [0; 6];
    child.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"locked");
    let disk = Disk::open(dir.path(), Backend::Threads, false).unwrap();
    let holder = disk.lock(&path).unwrap().err().expect("another process has the lock");
    assert!(holder.starts_with(&format!("process {} (", child.id())), "{holder}");
    // The lock goes with its process, however that ends.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(disk.lock(&path).unwrap().is_ok());
}

#[test]
fn what_works_in_all_directories_is_used() {
    let one = tempfile::tempdir().unwrap();
    let Ok(two) = tempfile::tempdir_in("/dev/shm") else { return println!("skipped: there is no /dev/shm") };
    let report = |dirs: &[&Path]| Disk::open_several(dirs, Backend::Auto, true).unwrap().report();
    let (first, second, both) = (report(&[one.path()]), report(&[two.path()]), report(&[one.path(), two.path()]));
    assert_eq!(both.direct, first.direct && second.direct);
    assert_eq!(both.block_bytes, first.block_bytes.max(second.block_bytes));
    assert_eq!(both.fallbacks.len(), first.fallbacks.len() + second.fallbacks.len());
    assert!(both.fallbacks.iter().all(|fallback| fallback.starts_with("in /")), "{:?}", both.fallbacks);
}

#[test]
fn a_store_that_is_only_read_gets_no_trial_file() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    std::fs::create_dir(&log).unwrap();
    let read = || Disk::open_to_read(&[dir.path()], Backend::Auto, true).unwrap().report();
    let without = read();
    assert!(!without.direct && without.fallbacks.len() == 1, "there is nothing to try: {without:?}");
    std::fs::write(log.join("00000000.seg"), vec![7; 1 << 16]).unwrap();
    let tried = Disk::open(dir.path(), Backend::Auto, true).unwrap().report();
    assert_eq!(read(), tried, "a segment does as well as a file made for it");
    let names = |path: &Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!((names(dir.path()), names(&log)), (1, 1), "no file was made");
}

/// A user who may write needs no room for that.
#[test]
fn a_lock_is_had_where_the_holders_name_cannot_be_written() {
    let held = Disk::plain().lock("/dev/full".as_ref()).unwrap();
    assert!(held.is_ok());
    assert!(Disk::plain().lock("/dev/full".as_ref()).unwrap().is_err(), "it is held");
}
