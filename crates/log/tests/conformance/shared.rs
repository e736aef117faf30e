//! Over the simulated shared log: one node and three.

use std::time::Duration;
use wellspring_log::conformance::{Harness, JournalUnderTest, SharedNodes};
use wellspring_log::shared::simulated::SimulatedLog;

/// Long enough that a busy machine does not pass for a silent leader too often.
const LEAD_TIMEOUT: Duration = Duration::from_millis(500);

struct Simulated {
    nodes: usize,
}

impl JournalUnderTest for Simulated {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        let log = SimulatedLog::immediate();
        let connect = move |node| Box::new(log.connect(node as u64)) as _;
        Box::new(SharedNodes::new(self.nodes, seed, LEAD_TIMEOUT, connect))
    }
}

mod one_node {
    use super::Simulated;

    wellspring_log::conformance_tests! {
        journal: Simulated { nodes: 1 },
        delayed_barriers: no("when a batch is durable is the shared log's to say"),
        disk_faults: yes,
        several_nodes: no("these are those of three nodes, below"),
    }
}

mod three_nodes {
    use super::Simulated;

    wellspring_log::conformance_tests! {
        journal: Simulated { nodes: 3 },
        delayed_barriers: no("when a batch is durable is the shared log's to say"),
        disk_faults: yes,
        several_nodes: yes,
    }
}
