//! Figures of the process, from the operating system, under Prometheus's customary names.

use crate::stats::family::{Family, Kind, Value};
use std::fs;

/// From `/proc/self/stat`; times in ticks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stat {
    /// Of all threads, in user and system mode.
    cpu_ticks: u64,
    threads: u64,
    /// Since the system started.
    start_ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The second field is a name in brackets, which may contain anything.
        let (_, rest) = text.rsplit_once(')')?;
        // The first of these is the third field of the line.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Stat {
            cpu_ticks: number(14)? + number(15)?,
            threads: number(20)?,
            start_ticks: number(22)?,
        })
    }
}

/// A line of `/proc/self/status` in kB, in bytes.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

/// When the system started, seconds since 1970 UTC.
fn boot_time_s(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Open file descriptors.
fn open_fds() -> Option<u64> {
    // The listing itself uses one.
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    Some((entries.count() as u64).saturating_sub(1))
}

fn max_fds() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// The figures that this system provides; few without `/proc`.
pub(super) fn families() -> Vec<Family> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
    let (stat, status) = (Stat::parse(&read("/proc/self/stat")), read("/proc/self/status"));
    let bytes = |name: &str| status_bytes(&status, name).map(Value::from);
    let cpu_s = stat.as_ref().map(|stat| Value::from(stat.cpu_ticks as f64 / ticks));
    let start_s = stat.as_ref().zip(boot_time_s(&read("/proc/stat")));
    let start_s = start_s.map(|(stat, boot_s)| boot_s as f64 + stat.start_ticks as f64 / ticks);
    use Kind::{Counter, Gauge};
    [
        (Counter, "process_cpu_seconds_total", "CPU time of all threads, user and system.", cpu_s),
        (Gauge, "process_threads", "Threads.", stat.map(|stat| stat.threads.into())),
        (
            Gauge,
            "process_start_time_seconds",
            "Start time of the process since 1970 UTC.",
            start_s.map(Value::from),
        ),
        (Gauge, "process_resident_memory_bytes", "Resident memory.", bytes("VmRSS")),
        (Gauge, "process_resident_memory_peak_bytes", "Peak resident memory.", bytes("VmHWM")),
        (Gauge, "process_virtual_memory_bytes", "Virtual memory.", bytes("VmSize")),
        (Gauge, "process_open_fds", "Open file descriptors.", open_fds().map(Value::from)),
        (Gauge, "process_max_fds", "Maximum of open file descriptors.", max_fds().map(Value::from)),
    ]
    .into_iter()
    .filter_map(|(kind, name, help, value)| {
        Some(Family::new(kind, name, help).with(Vec::new(), value?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_writes_is_read() {
        let stat = "4242 (well) spring) S 1 4242 4242 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 \
                    123456 1000000 500 18446744073709551615 1 1\n";
        let parsed = Stat { cpu_ticks: 300, threads: 9, start_ticks: 123_456 };
        assert_eq!(Stat::parse(stat), Some(parsed));
        assert_eq!(Stat::parse("4242 (x) S 1 2"), None);
        let status = "Name:\tVmRSS: 1 kB\nVmHWM:\t   20 kB\nVmRSS:\t   16 kB\nThreads:\t9\n";
        assert_eq!(status_bytes(status, "VmRSS"), Some(16 << 10));
        assert_eq!(status_bytes(status, "VmHWM"), Some(20 << 10));
        assert_eq!(status_bytes(status, "Threads"), None);
        assert_eq!(boot_time_s("cpu 1 2\nbtime 1790000000\nprocesses 5\n"), Some(1_790_000_000));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_told_whole() {
        let families = families();
        assert_eq!(families.len(), 8);
        for family in &families {
            let [series] = &family.series[..] else { panic!("{}", family.name) };
            let value = match &series.value {
                Value::Whole(value) => *value as f64,
                Value::Real(value) => *value,
                Value::Distribution(_) => panic!("{}", family.name),
            };
            // CPU time is counted in ticks of some ms.
            assert!(value > 0.0 || family.name == "process_cpu_seconds_total", "{}", family.name);
        }
    }
}
