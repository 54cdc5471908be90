//! How much memory there is for this process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::disk::with_descriptors;
use crate::error::is_passing;

/// Memory that this process may have, in bytes: that of the machine, or what its control group or its limit of address space allow.
pub fn memory_bytes() -> u64 {
    let own = machine_bytes().min(address_space_bytes());
    control_group_bytes().map_or(own, |group| group.min(own))
}

/// Memory of the machine in bytes.
fn machine_bytes() -> u64 {
    // SAFETY: the call takes a number and returns one.
    let of_system = |name| unsafe { libc::sysconf(name) };
    let (pages, page_bytes) = (of_system(libc::_SC_PHYS_PAGES), of_system(libc::_SC_PAGESIZE));
    // Negative where the system does not say.
    u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page_bytes).unwrap_or(0))
}

/// Address space that this process may have, in bytes, as `ulimit -v` sets it; the highest number without a limit.
fn address_space_bytes() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer refers to a live `rlimit` that the call fills. If it fails, that stays as it is.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    limit.rlim_cur
}

/// The least memory that a control group above this process allows it, in bytes, page cache included; `None` without such a limit. Where
/// the system has no descriptor or no memory to look, it is what it was when it was asked last.
pub fn control_group_bytes() -> Option<u64> {
    /// The highest number without a limit. Relaxed: it publishes nothing.
    static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
    let read = |path: &Path| with_descriptors(|| fs::read_to_string(path), |error| Some(error));
    match least_limit(&read) {
        Ok(limit) => LAST.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed),
        Err(shortage) => debug_assert!(is_passing(&shortage), "{shortage}"),
    }
    Some(LAST.load(Ordering::Relaxed)).filter(|bytes| *bytes < u64::MAX)
}

/// The least limit that files name which `read` reads. Fails where one could not be read for now; one that is not there names no limit.
fn least_limit(read: &dyn Fn(&Path) -> io::Result<String>) -> io::Result<Option<u64>> {
    let read_any = |path: &Path| match read(path) {
        Err(error) if is_passing(&error) => Err(error),
        text => Ok(text.unwrap_or_default()),
    };
    let groups = read_any(Path::new("/proc/self/cgroup"))?;
    let mut least = None;
    for (directory, file) in memory_groups(&groups) {
        for group in directory.ancestors() {
            let limit = read_any(&group.join(file))?.trim().parse::<u64>().ok();
            // Without a limit the first version of the control groups names one beyond any memory.
            least = least.into_iter().chain(limit.filter(|bytes| *bytes < 1 << 50)).min();
        }
    }
    Ok(least)
}

/// The directory of the process's control group for memory in each version of them, and the file there that has the limit.
fn memory_groups(text: &str) -> Vec<(PathBuf, &'static str)> {
    let group = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        if controllers.is_empty() {
            return Some((Path::new("/sys/fs/cgroup").join(path), "memory.max"));
        }
        let has_memory = controllers.split(',').any(|controller| controller == "memory");
        has_memory.then(|| (Path::new("/sys/fs/cgroup/memory").join(path), "memory.limit_in_bytes"))
    };
    text.lines().filter_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_control_groups_are_found() {
        let text = "12:cpu,memory:/docker/a:b\n1:name=systemd:/init\n0::/user.slice/session\n";
        let found = memory_groups(text);
        assert_eq!(
            found,
            [
                (PathBuf::from("/sys/fs/cgroup/memory/docker/a:b"), "memory.limit_in_bytes"),
                (PathBuf::from("/sys/fs/cgroup/user.slice/session"), "memory.max"),
            ]
        );
    }

    #[test]
    fn a_limit_that_cannot_be_read_for_now_is_none_that_is_not_there() {
        let files = |path: &Path, of_group: io::Result<&str>| match path.to_str().expect("it is text") {
            "/proc/self/cgroup" => Ok("0::/outer/inner\n".to_string()),
            "/sys/fs/cgroup/outer/inner/memory.max" => Ok("max\n".to_string()),
            "/sys/fs/cgroup/outer/memory.max" => of_group.map(str::to_string),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        assert_eq!(least_limit(&|path| files(path, Ok("1073741824\n"))).expect("it is read"), Some(1 << 30));
        assert_eq!(least_limit(&|path| files(path, Ok("max\n"))).expect("it is read"), None);
        assert_eq!(least_limit(&|path| files(path, Err(io::ErrorKind::NotFound.into()))).expect("it is read"), None);
        for number in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            let refused = || Err(io::Error::from_raw_os_error(number));
            let error = least_limit(&|path| files(path, refused())).expect_err("nobody knows");
            assert_eq!(error.raw_os_error(), Some(number));
        }
    }

    #[test]
    fn a_machine_has_memory() {
        assert!(machine_bytes() > 64 << 20, "{} bytes", machine_bytes());
    }
}
