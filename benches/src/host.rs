//! The machine that a run was made on, in words.

use std::fs;
use std::time::Duration;

/// The processor, its number of cores, the kernel, and the load of the last minute.
#[must_use]
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{cores} x {}, Linux {}, load {}",
        processor(),
        kernel.trim(),
        load()
    )
}

/// The load of the last minute, as `uptime` shows it first.
#[must_use]
pub fn load() -> String {
    let load = read("/proc/loadavg");
    load.split(' ').next().unwrap_or_default().to_owned()
}

/// Bytes of memory that this process holds now.
#[must_use]
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// The most that this process has held so far.
#[must_use]
pub fn resident_bytes_at_most() -> u64 {
    status_bytes("VmHWM:")
}

fn status_bytes(field: &str) -> u64 {
    let status = read("/proc/self/status");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1_024)
}

/// How long others kept this process from running, so far: the time for which its threads, together, were ready and no core
/// was free for them (more threads of ours than cores count too), and what the hypervisor took from the whole machine.
/// Zero where the kernel does not tell.
#[must_use]
pub fn kept_from_running() -> Duration {
    waited_for_a_core() + stolen()
}

fn waited_for_a_core() -> Duration {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Duration::ZERO;
    };
    let waited = threads.filter_map(|thread| {
        let times = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        times.split(' ').nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waited.sum())
}

/// The eighth number of the first line, in hundredths of a second.
fn stolen() -> Duration {
    let stat = read("/proc/stat");
    let hundredths = stat
        .split_whitespace()
        .nth(8)
        .and_then(|text| text.parse::<u64>().ok());
    Duration::from_millis(hundredths.unwrap_or(0).saturating_mul(10))
}

fn processor() -> String {
    let table = read("/proc/cpuinfo");
    let model = table.lines().find(|line| line.starts_with("model name"));
    let name = model.and_then(|line| line.split_once(": "));
    name.map_or_else(|| "processor".to_owned(), |(_, name)| name.to_owned())
}

/// What cannot be read is left out of the description.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
