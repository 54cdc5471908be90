"""On what and with what was measured: said with every result, since a figure without it says nothing."""

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from harness.sampling import disk_of

# Of a SHA-256, as many of its first letters as tell programs apart.
_DIGEST_LETTERS = 12


@dataclass(frozen=True)
class Identity:
    """What must stay the same for the runs of one campaign to belong together."""

    cpu: str
    cores: int
    memory_bytes: int
    kernel: str
    disk: str
    file_system: str
    # File name to the beginning of its SHA-256.
    programs: dict[str, str]


@dataclass(frozen=True)
class Origin:
    """Where a set of results comes from."""

    identity: Identity
    # With `+` where the checkout had changes that are in no commit; `unknown` outside a repository.
    commit: str
    began_utc: str
    command: str
    versions: dict[str, str]


def identity(folder: Path, programs: Iterable[Path], own_code: Mapping[str, Path]) -> Identity:
    """This machine as seen from a folder on the disk to be measured, and all that is measured with: programs, and the
    harness's own files by their names."""
    disk = disk_of(folder)
    own = "".join(f"{name} {_digest(file)}\n" for name, file in own_code.items()).encode()
    harness = hashlib.sha256(own).hexdigest()[:_DIGEST_LETTERS]
    return Identity(
        cpu=_cpu_model(),
        cores=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        kernel=f"{platform.system()} {platform.release()}",
        disk=f"{disk} ({_disk_model(disk)})" if disk else "none",
        file_system=_file_system(folder),
        programs={program.name: _digest(program) for program in programs} | {"harness": harness},
    )


def origin(of: Identity, checkout: Path, command: str) -> Origin:
    """The origin of results measured from now on."""
    return Origin(of, _commit(checkout), utc_now(), command, _versions())


def utc_now() -> str:
    """The time to the second, as in `2026-01-31T12:00:00Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _disk_model(disk: str) -> str:
    model = Path(f"/sys/class/block/{disk}/device/model")
    if model.exists():
        return model.read_text().strip()
    return "virtio block device" if disk.startswith("vd") else "model unknown"


def _file_system(folder: Path) -> str:
    """The type of the file system with the longest mount point above the folder."""
    absolute = folder.resolve()
    above = [of for of in psutil.disk_partitions(all=True) if absolute.is_relative_to(of.mountpoint)]
    return max(above, key=lambda of: len(of.mountpoint)).fstype if above else "unknown"


def _digest(program: Path) -> str:
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGEST_LETTERS]


def _commit(checkout: Path) -> str:
    commit = _output("git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD")
    if not commit:
        return "unknown"
    return commit + ("+" if _output("git", "-C", str(checkout), "status", "--porcelain") else "")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in ("psutil", "matplotlib")}
    commands = {"fio": "--version", "java": "-version", "redis-server": "--version"}
    for name, option in commands.items():
        if found := _output(name, option):
            versions[name] = found.splitlines()[0]
    return versions


def _output(*command: str) -> str:
    """What a command prints, on either stream; empty where it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout or done.stderr).strip()
