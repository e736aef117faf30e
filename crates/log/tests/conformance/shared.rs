//! The suite over the simulated shared log: one node and three, and three over an engine at its
//! worst.

use std::time::Duration;
use wellspring_log::shared::simulated::{Faults, Settings, SimulatedLog};
use wellspring_log::shared::{Retention, SharedLimits};
use wellspring_log_conformance::{Harness, JournalUnderTest, SharedNodes};

/// Long enough that a busy machine is rarely mistaken for a silent leader.
const LEAD_TIMEOUT: Duration = Duration::from_millis(500);

struct Simulated {
    nodes: usize,
}

impl JournalUnderTest for Simulated {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        over(self.nodes, seed, LEAD_TIMEOUT, SimulatedLog::immediate())
    }
}

fn over(nodes: usize, seed: u64, lead: Duration, log: SimulatedLog) -> Box<dyn Harness> {
    let connect = move |node| Box::new(log.connect(node as u64)) as _;
    Box::new(SharedNodes::new(nodes, seed, lead, connect))
}

/// Loses, repeats, reorders and delays, accepts only the smallest entries, so that most batches are
/// sent in parts, and one at a time or many.
struct Faulty {
    window: usize,
    compares: bool,
}

impl JournalUnderTest for Faulty {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        let faults = Faults {
            lose_permille: 10,
            duplicate_permille: 50,
            reorder_permille: 50,
            delay_us: 200,
        };
        let lead_timeout_min = Duration::from_millis(10);
        let limits = SharedLimits {
            entry_bytes: 4 << 10,
            window: self.window,
            lead_timeout_min,
            retention: Retention::Everything,
        };
        let settings = Settings { limits, compares: self.compares, elects: false };
        // Lost offers are repeated after half of this.
        over(3, seed, LEAD_TIMEOUT / 2, SimulatedLog::faulty(seed, faults).with(settings))
    }

    fn percent(&self) -> u64 {
        2
    }
}

mod one_node {
    use super::Simulated;

    wellspring_log_conformance::conformance_tests! {
        journal: Simulated { nodes: 1 },
        delayed_barriers: no("when a batch is durable is the shared log's to say"),
        disk_faults: yes,
        several_nodes: no("these are those of three nodes, below"),
    }
}

mod three_nodes {
    use super::Simulated;

    wellspring_log_conformance::conformance_tests! {
        journal: Simulated { nodes: 3 },
        delayed_barriers: no("when a batch is durable is the shared log's to say"),
        disk_faults: yes,
        several_nodes: yes,
    }
}

mod three_nodes_faulty_engine {
    use super::Faulty;

    wellspring_log_conformance::conformance_tests! {
        journal: Faulty { window: 5, compares: false },
        delayed_barriers: no("when a batch is durable is the shared log's to say"),
        disk_faults: yes,
        several_nodes: yes,
    }
}

mod three_nodes_faulty_engine_that_compares {
    use super::Faulty;

    wellspring_log_conformance::conformance_tests! {
        journal: Faulty { window: 1, compares: true },
        delayed_barriers: no("when a batch is durable is the shared log's to say"),
        disk_faults: yes,
        several_nodes: yes,
    }
}
