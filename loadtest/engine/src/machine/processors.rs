//! Processors and timers of the calling thread.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use std::num::NonZeroU64;

/// The processors this process may run on (affinity; a cgroup's cpuset shows in it).
#[must_use]
pub fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect()
}

/// One processor a worker, the last ones first to be taken; empty when there
/// are not more processors than workers: then the scheduler does better.
#[must_use]
pub(crate) fn cpus_for(workers: u32) -> Vec<u32> {
    let allowed = allowed_cpus();
    let workers = workers as usize;
    if workers >= allowed.len() {
        return Vec::new();
    }
    allowed[allowed.len() - workers..].to_vec()
}

/// Binds the calling thread to one processor. Where that is not allowed it stays free.
pub fn pin_to(cpu: u32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    let _ = sched_setaffinity(None, &set);
}

/// Asks for timers of the calling thread to be as exact as they can (1 ns of
/// slack instead of the usual 50 µs).
pub(crate) fn fine_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Raises this process's soft limit on open files to `wanted`, as far as the hard one allows.
pub(crate) fn allow_open_files(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current else { return };
    if soft < wanted {
        let current = Some(limit.maximum.map_or(wanted, |hard| hard.min(wanted)));
        // Refused: opening connections will say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}

/// The largest resident memory of this process so far, in bytes; 0 if unknown.
#[must_use]
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
