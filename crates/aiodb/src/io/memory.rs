//! How much memory there is for this process.

use std::fs;
use std::path::{Path, PathBuf};

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

/// The least memory that a control group above this process allows it, in bytes, page cache included; `None` without such a limit.
pub fn control_group_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = memory_groups(&groups).into_iter().flat_map(|(directory, file)| {
        let groups: Vec<PathBuf> = directory.ancestors().map(Path::to_owned).collect();
        groups.into_iter().filter_map(move |group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok())
    });
    // Without a limit the first version of the control groups names one beyond any memory.
    limits.min().filter(|bytes| *bytes < 1 << 50)
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
    fn a_machine_has_memory() {
        assert!(machine_bytes() > 64 << 20, "{} bytes", machine_bytes());
    }
}
