//! The suite of every journal, over a real server: one node and three.

use crate::server::{Server, new_log, server};
use std::time::Duration;
use wellspring_log::conformance::{Harness, JournalUnderTest, SharedNodes};

const LEAD_TIMEOUT: Duration = Duration::from_millis(500);

struct Postgres {
    server: &'static Server,
    nodes: usize,
}

impl JournalUnderTest for Postgres {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        let log = new_log("conformance");
        let nodes: Vec<_> = (0..self.nodes).map(|_| self.server.node()).collect();
        let connect = move |node: usize| Box::new(nodes[node].shared_log(&log)) as _;
        Box::new(SharedNodes::new(self.nodes, seed, LEAD_TIMEOUT, connect))
    }

    /// Each commit is a barrier of the server's.
    fn percent(&self) -> u64 {
        2
    }
}

/// The journal, or the end of the test where there is none.
macro_rules! over {
    ($nodes:literal) => {
        match server(module_path!()) {
            Some(server) => Postgres { server, nodes: $nodes },
            None => return,
        }
    };
}

mod one_node {
    use super::{Postgres, server};

    wellspring_log::conformance_tests! {
        journal: over!(1),
        delayed_barriers: no("when a batch is durable is the server's to say"),
        disk_faults: yes,
        several_nodes: no("these are those of three nodes, below"),
    }
}

mod three_nodes {
    use super::{Postgres, server};

    wellspring_log::conformance_tests! {
        journal: over!(3),
        delayed_barriers: no("when a batch is durable is the server's to say"),
        disk_faults: yes,
        several_nodes: yes,
    }
}
