//! What the rest of the machine does during a run (check C8).

use crate::clock::Clock;
use crate::result::Noise;
use std::collections::HashMap;
use std::hint::black_box;

/// Rounds of the fixed piece of work: about 1 ms.
const ROUNDS: u64 = 400_000;
/// How often it is timed; the fastest counts.
const TRIES: usize = 12;

/// Times a fixed piece of work, in nanoseconds: the best of several tries. Only
/// this sees a processor that has become slower without saying so.
#[must_use]
pub(crate) fn calibrate() -> u64 {
    let clock = Clock::start();
    let once = || {
        let begun_ns = clock.now_ns();
        let mut state = black_box(0x9E37_79B9_7F4A_7C15_u64);
        for _ in 0..ROUNDS {
            // A chain: each step waits for the one before.
            state = (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        }
        black_box(state);
        clock.now_ns() - begun_ns
    };
    (0..TRIES).map(|_| once()).min().unwrap_or(0)
}

/// Totals of the machine at one moment.
#[derive(Clone, Debug, Default)]
struct Totals {
    /// All processors' time in clock ticks: everything, stolen, idle.
    all: u64,
    steal: u64,
    idle: u64,
    pressure_us: Option<u64>,
    throttled_us: Option<u64>,
    own_ticks: u64,
    server_ticks: Option<u64>,
}

/// Watches the machine from its making until [`NoiseProbe::finish`].
#[derive(Debug)]
pub struct NoiseProbe {
    before: Totals,
    calibration_before_ns: u64,
    begun_ns: u64,
    clock: Clock,
    server_pid: Option<u32>,
    server_is_elsewhere: bool,
}

impl NoiseProbe {
    /// Begins to watch. `server_pid` keeps the server's own work from being called noise.
    #[must_use]
    pub fn start(server_pid: Option<u32>, server_is_elsewhere: bool) -> Self {
        let calibration_before_ns = calibrate();
        let clock = Clock::start();
        let before = totals(server_pid);
        let begun_ns = clock.now_ns();
        NoiseProbe {
            before,
            calibration_before_ns,
            begun_ns,
            clock,
            server_pid,
            server_is_elsewhere,
        }
    }

    /// What was seen.
    #[must_use]
    pub fn finish(self) -> Noise {
        let passed_ns = self.clock.now_ns() - self.begun_ns;
        let after = totals(self.server_pid);
        let all = after.all.saturating_sub(self.before.all);
        let share = |part: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
        let steal = after.steal.saturating_sub(self.before.steal);
        let idle = after.idle.saturating_sub(self.before.idle);
        let own = after.own_ticks.saturating_sub(self.before.own_ticks);
        let server = match (self.before.server_ticks, after.server_ticks) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            _ if self.server_is_elsewhere => Some(0),
            _ => None,
        };
        let other = server.map(|server| share(all.saturating_sub(idle + steal + own + server)));
        let since = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let pressure_us = since(self.before.pressure_us, after.pressure_us);
        Noise {
            calibration_before_ns: self.calibration_before_ns,
            calibration_after_ns: calibrate(),
            steal_share: share(steal),
            other_cpu_share: other,
            cpu_pressure_share: pressure_us.map(|us| us as f64 * 1000.0 / passed_ns.max(1) as f64),
            throttled_ns: since(self.before.throttled_us, after.throttled_us).map(|us| us * 1000),
        }
    }
}

fn totals(server_pid: Option<u32>) -> Totals {
    let mut totals = Totals::default();
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    if let Some(line) = stat.lines().find(|line| line.starts_with("cpu ")) {
        // user nice system idle iowait irq softirq steal (proc_stat(5)); guest time is within user.
        let fields: Vec<u64> =
            line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        totals.all = fields.iter().take(8).sum();
        totals.idle = at(3) + at(4);
        totals.steal = at(7);
    }
    totals.pressure_us = std::fs::read_to_string("/proc/pressure/cpu").ok().and_then(|text| {
        let some = text.lines().find(|line| line.starts_with("some"))?;
        some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
    });
    totals.throttled_us = cgroup_stat().get("throttled_usec").copied();
    totals.own_ticks = process_ticks("self").unwrap_or(0);
    totals.server_ticks = server_pid.and_then(|pid| process_ticks(&pid.to_string()));
    totals
}

/// User and system time of a process, in clock ticks.
fn process_ticks(process: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may hold spaces and parentheses; what follows the last one is regular
    // (proc_pid_stat(5)).
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Processor time a process has used so far, in nanoseconds; `None` if it is not there.
#[must_use]
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(process_ticks(&pid.to_string())? * (1_000_000_000 / per_second))
}

/// Resident memory of a process, in bytes; `None` if it is not there.
#[must_use]
pub(crate) fn process_rss_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// `cpu.stat` of this process's cgroup (version 2).
fn cgroup_stat() -> HashMap<String, u64> {
    let Some(folder) = cgroup_folder() else { return HashMap::new() };
    let text = std::fs::read_to_string(format!("{folder}/cpu.stat")).unwrap_or_default();
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The folder of this process's cgroup (version 2), if it can be seen.
pub(super) fn cgroup_folder() -> Option<String> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = format!("/sys/fs/cgroup{}", path.trim_end_matches('/'));
    std::path::Path::new(&folder).is_dir().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_can_be_watched() {
        let probe = NoiseProbe::start(Some(std::process::id()), false);
        let noise = probe.finish();
        assert!(noise.calibration_before_ns > 10_000, "{noise:?}");
        assert!((0.0..=1.0).contains(&noise.steal_share), "{noise:?}");
        assert!(noise.other_cpu_share.is_some_and(|share| (0.0..=1.0).contains(&share)));
    }
}
