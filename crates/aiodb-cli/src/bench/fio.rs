//! Runs `fio`, the usual measure of a disk, and reads its report.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use super::raw::{RawReads, ReadSample};
use crate::CliError;

/// An installed `fio`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fio {
    /// What it calls itself, such as `fio-3.33`.
    pub version: String,
}

impl Fio {
    /// `None` where it is not installed.
    pub(crate) fn find() -> Option<Fio> {
        let output = Command::new("fio").arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(Fio { version })
    }

    /// Random direct reads of the same files, size, threads and depth as our own loop.
    pub(crate) fn read(&self, engine: FioEngine, reads: &RawReads, duration: Duration) -> Result<ReadSample, CliError> {
        let output = Links::to(reads)
            .and_then(|links| {
                let arguments = arguments(engine, reads, duration);
                Command::new("fio").args(arguments).current_dir(links.directory.path()).output()
            })
            .map_err(|error| CliError::failed(format!("cannot start fio: {error}")))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(CliError::failed(format!("fio with {} failed: {}", engine.name(), reason.trim())));
        }
        parse_report(&output.stdout).map_err(|reason| CliError::failed(format!("cannot read fio's report: {reason}")))
    }
}

/// A directory with a short name for each directory that is read: `fio` takes no more than 4096 bytes of file names.
struct Links {
    directory: TempDir,
}

impl Links {
    fn to(reads: &RawReads) -> io::Result<Links> {
        let directory = tempfile::tempdir()?;
        for (number, target) in reads.area.directories().into_iter().enumerate() {
            std::os::unix::fs::symlink(target.canonicalize()?, directory.path().join(number.to_string()))?;
        }
        Ok(Links { directory })
    }
}

/// How `fio` hands its reads to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FioEngine {
    IoUring,
    Libaio,
}

impl FioEngine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            FioEngine::IoUring => "io_uring",
            FioEngine::Libaio => "libaio",
        }
    }
}

fn arguments(engine: FioEngine, reads: &RawReads, duration: Duration) -> Vec<String> {
    let files = reads.area.files();
    let directories = reads.area.directories();
    let name = |path: &Path| {
        let number = directories.iter().position(|directory| path.parent() == Some(directory));
        let number = number.expect("every file lies in one of the directories");
        Path::new(&number.to_string()).join(path.file_name().expect("a segment file has a name"))
    };
    let names: Vec<String> = files.iter().map(|file| escaped(&name(&file.path))).collect();
    let mut arguments: Vec<String> =
        ["--name=ceiling", "--rw=randread", "--direct=1", "--norandommap", "--randrepeat=0"]
            .into_iter()
            .chain(["--gtod_reduce=1", "--time_based", "--readonly", "--allow_file_create=0", "--invalidate=0"])
            .map(str::to_owned)
            .collect();
    arguments.push(format!("--ioengine={}", engine.name()));
    // Several disks get their reads as they come, like the engine; in turn would be a load of another kind.
    if directories.len() > 1 {
        arguments.push("--file_service_type=random".to_owned());
    }
    if engine == FioEngine::IoUring {
        arguments.extend(["--fixedbufs=1".to_owned(), "--registerfiles=1".to_owned()]);
    }
    arguments.push(format!("--bs={}", reads.read_bytes));
    arguments.push(format!("--blockalign={}", reads.alignment_bytes()));
    arguments.push(format!("--iodepth={}", reads.depth));
    arguments.push(format!("--numjobs={}", reads.threads));
    arguments.push(format!("--runtime={}ms", duration.as_millis()));
    arguments.push(format!("--filename={}", names.join(":")));
    // Only a store smaller than a segment has a file that is not full; fio must then stay inside its data.
    if files.len() == 1 {
        arguments.push(format!("--size={}", files[0].data_bytes));
    }
    arguments.push("--output-format=json".to_owned());
    arguments
}

/// `fio` separates file names by colons.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:")
}

#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    error: i32,
    read: JobReads,
    /// Milliseconds.
    job_runtime: f64,
    /// Per cent of the job's run time.
    usr_cpu: f64,
    sys_cpu: f64,
}

#[derive(Deserialize)]
struct JobReads {
    iops: f64,
    total_ios: u64,
}

/// The sum over all jobs. Warnings that `fio` prints before its JSON are skipped.
fn parse_report(output: &[u8]) -> Result<ReadSample, String> {
    let start = output.iter().position(|byte| *byte == b'{').ok_or("it holds no JSON")?;
    let report: Report = serde_json::from_slice(&output[start..]).map_err(|error| error.to_string())?;
    if let Some(job) = report.jobs.iter().find(|job| job.error != 0) {
        return Err(format!("a job ended with error {}", job.error));
    }
    let reads: u64 = report.jobs.iter().map(|job| job.read.total_ios).sum();
    if reads == 0 {
        return Err("no read was made".to_owned());
    }
    let cpu_us: f64 =
        report.jobs.iter().map(|job| (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime * 1000.0).sum();
    Ok(ReadSample {
        reads_per_s: report.jobs.iter().map(|job| job.read.iops).sum(),
        cpu_us_per_read: cpu_us / reads as f64,
    })
}

#[cfg(test)]
mod tests;
