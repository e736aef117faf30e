//! The suite of every journal over a log whose entries are sealed: to the log above it, it is a log
//! like any other.

use std::time::Duration;
use wellspring_host::cluster::ClusterKey;
use wellspring_host::cluster::sealed_log::{OVERHEAD_BYTES, SealedLog};
use wellspring_log::shared::simulated::{Settings, SimulatedLog};
use wellspring_log::shared::{Retention, SharedLimits, SharedLog};
use wellspring_log_conformance::{Harness, JournalUnderTest, SharedNodes};

/// Long enough that a busy machine does not pass for a silent leader too often.
const LEAD_TIMEOUT: Duration = Duration::from_millis(500);

/// Three nodes over an engine that takes the smallest entries there may be.
struct Sealed;

impl JournalUnderTest for Sealed {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        let dir = tempfile::tempdir().expect("a folder");
        let key = ClusterKey::draw_to(&dir.path().join("key")).expect("a key");
        let limits = SharedLimits {
            entry_bytes: (4 << 10) + OVERHEAD_BYTES,
            window: 4,
            lead_timeout_min: Duration::from_millis(10),
            retention: Retention::Everything,
        };
        let log = SimulatedLog::immediate().with(Settings { limits, ..Settings::default() });
        let connect = move |node| {
            let inner: Box<dyn SharedLog> = Box::new(log.connect(node as u64));
            Box::new(SealedLog::new(inner, &key, "system")) as _
        };
        Box::new(SharedNodes::new(3, seed, LEAD_TIMEOUT, connect))
    }

    fn percent(&self) -> u64 {
        5
    }
}

wellspring_log_conformance::conformance_tests! {
    journal: Sealed,
    delayed_barriers: no("when a batch is durable is the shared log's to say"),
    disk_faults: yes,
    several_nodes: yes,
}
