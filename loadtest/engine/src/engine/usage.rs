//! What a thread has used of its processor.

use rustix::time::{ClockId, clock_gettime};

/// Running totals of the calling thread, or the difference of two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUse {
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
    /// Time it was ready to run but had no processor.
    pub(crate) run_delay_ns: u64,
}

impl ThreadUse {
    /// The calling thread's totals.
    pub(crate) fn now(now_ns: u64) -> Self {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu_ns = u64::try_from(cpu.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(cpu.tv_nsec).unwrap_or(0);
        // `schedstat`: time on the processor, time waiting for it, number of slices
        // (Linux, Documentation/scheduler/sched-stats.rst). Absent in some containers.
        let run_delay_ns = std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
            .unwrap_or(0);
        ThreadUse { wall_ns: now_ns, cpu_ns, run_delay_ns }
    }

    /// What was used from `self` to `later`.
    pub(crate) fn until(self, later: ThreadUse) -> ThreadUse {
        ThreadUse {
            wall_ns: later.wall_ns.saturating_sub(self.wall_ns),
            cpu_ns: later.cpu_ns.saturating_sub(self.cpu_ns),
            run_delay_ns: later.run_delay_ns.saturating_sub(self.run_delay_ns),
        }
    }
}
