//! The conformance suite over a real server: one node and three.

use crate::reader::Reader;
use crate::server::{Server, new_log, server};
use std::time::Duration;
use wellspring_log_conformance::{Harness, JournalUnderTest, SharedNodes};

const LEAD_TIMEOUT: Duration = Duration::from_millis(500);

struct Postgres {
    server: &'static Server,
    nodes: usize,
    logs: &'static str,
}

impl JournalUnderTest for Postgres {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        let log = new_log(self.logs);
        let nodes: Vec<_> = (0..self.nodes).map(|_| self.server.node()).collect();
        let connect = move |node: usize| Box::new(nodes[node].shared_log(&log)) as _;
        Box::new(SharedNodes::new(self.nodes, seed, LEAD_TIMEOUT, connect))
    }

    /// Each commit is a barrier of the server.
    fn percent(&self) -> u64 {
        2
    }
}

#[test]
fn the_rows_are_what_counts_after_the_lead_went_round() {
    let Some(server) = server("conformance::the_rows_are_what_counts_after_the_lead_went_round")
    else {
        return;
    };
    let journal = Postgres { server, nodes: 3, logs: "round" };
    wellspring_log_conformance::leadership::one_wins_each_key_while_the_lead_goes_round(&journal);
    wellspring_log_conformance::leadership::of_offers_lost_doubled_and_late_each_counts_once_or_never(
        &journal,
    );
    let names = "SELECT log FROM wellspring.ws_end WHERE log LIKE 'round-%' AND rows_head > 0";
    let names = server.sql(names);
    assert!(names.lines().count() >= 2, "{names}");
    // A node that writes rows adds missing ones.
    let node = server.node();
    let readers: Vec<_> = names.lines().map(|log| Reader::of(&node, log)).collect();
    let behind =
        "SELECT count(*) FROM wellspring.ws_end WHERE log LIKE 'round-%' AND rows_place <> place";
    server.wait_for(behind, "0");
    let other = "SELECT log, rows_head FROM wellspring.ws_end e WHERE log LIKE 'round-%' AND NOT EXISTS \
         (SELECT FROM (SELECT count(*) AS count, coalesce(max(position), 0) AS head \
                       FROM wellspring.ws_event v WHERE v.log = e.log) x \
          WHERE x.count = e.rows_head AND x.head = e.rows_head)";
    assert_eq!(server.sql(other), "", "every event that counts, and no other");
    drop(readers);
}

/// The journal; ends the test if there is none.
macro_rules! over {
    ($nodes:literal) => {
        match server(module_path!()) {
            Some(server) => Postgres { server, nodes: $nodes, logs: "conformance" },
            None => return,
        }
    };
}

mod one_node {
    use super::{Postgres, server};

    wellspring_log_conformance::conformance_tests! {
        journal: over!(1),
        delayed_barriers: no("when a batch is durable is the server's to say"),
        disk_faults: yes,
        several_nodes: no("these are those of three nodes, below"),
    }
}

mod three_nodes {
    use super::{Postgres, server};

    wellspring_log_conformance::conformance_tests! {
        journal: over!(3),
        delayed_barriers: no("when a batch is durable is the server's to say"),
        disk_faults: yes,
        several_nodes: yes,
    }
}
