//! What the server's process uses while the measured part goes on.
//!
//! Before it lies the warm-up, after it the waiting for the last answers; what the
//! server does then is not the work of the measured part. So its processor time is read
//! at each sign of progress (ten a second) and the part between first and last taken for the whole.

use crate::engine::{Observer, Progress};
use crate::machine::process_cpu_ns;

/// Time between first and last reading below which they say too little, in nanoseconds:
/// processor time is told in ticks of 10 ms.
const SHORTEST_NS: u64 = 500_000_000;

/// Where the readings were made: nanoseconds since the measured part began, and processor time.
type Reading = (u64, u64);

/// Passes on what an observer is told, and reads the server's processor time meanwhile.
pub(super) struct ServerWatch<'a> {
    inner: &'a mut dyn Observer,
    pid: Option<u32>,
    span: Option<(Reading, Reading)>,
}

impl<'a> ServerWatch<'a> {
    pub(super) fn new(inner: &'a mut dyn Observer, pid: Option<u32>) -> Self {
        ServerWatch { inner, pid, span: None }
    }

    /// Processor time of the whole measured part, in nanoseconds; `None` if it was too short to
    /// tell.
    pub(super) fn cpu_ns(&self, measured_ns: u64) -> Option<u64> {
        whole(self.span?, measured_ns)
    }
}

/// What lies between two readings, stretched to the whole.
fn whole((first, last): (Reading, Reading), measured_ns: u64) -> Option<u64> {
    let span_ns = last.0.saturating_sub(first.0);
    if span_ns < SHORTEST_NS {
        return None;
    }
    let used_ns = last.1.saturating_sub(first.1) as f64;
    Some((used_ns * (measured_ns as f64 / span_ns as f64)).round() as u64)
}

impl Observer for ServerWatch<'_> {
    fn progress(&mut self, progress: &Progress<'_>) {
        let going_on = !progress.warming_up && progress.done_share < 1.0;
        if let (Some(pid), true) = (self.pid, going_on)
            && let Some(cpu_ns) = process_cpu_ns(pid)
        {
            let now = (progress.elapsed_ns, cpu_ns);
            self.span = Some((self.span.map_or(now, |(first, _)| first), now));
        }
        self.inner.progress(progress);
    }

    fn begin(&mut self, what: &str) {
        self.inner.begin(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Unobserved;

    #[test]
    fn only_the_measured_part_counts() {
        let mut nobody = Unobserved;
        let mut watch = ServerWatch::new(&mut nobody, Some(std::process::id()));
        let mut progress = Progress {
            elapsed_ns: 0,
            warming_up: true,
            successes: 0,
            failures: 0,
            slices: &[],
            done_share: 0.0,
        };
        watch.progress(&progress);
        assert_eq!(watch.span, None);
        (progress.warming_up, progress.elapsed_ns) = (false, 100_000_000);
        watch.progress(&progress);
        assert_eq!(watch.cpu_ns(1_000_000_000), None);
        (progress.elapsed_ns, progress.done_share) = (5_000_000_000, 1.0);
        watch.progress(&progress);
        assert_eq!(
            watch.span.map(|(first, last)| (first.0, last.0)),
            Some((100_000_000, 100_000_000))
        );
    }

    #[test]
    fn what_was_read_stands_for_the_whole() {
        let span = ((100_000_000, 5_000_000_000), (900_000_000, 5_400_000_000));
        assert_eq!(whole(span, 1_000_000_000), Some(500_000_000));
    }
}
