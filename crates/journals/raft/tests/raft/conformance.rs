//! The conformance suite over one node, three and five.

use crate::group::{Group, Keeps};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Log, OpenError, Options};
use wellspring_log_conformance::{Harness, JournalUnderTest, Link, SharedNodes};

/// A group of so many nodes.
struct OverRaft(usize, Keeps);

/// Nodes whose copies others may read.
struct Copied(SharedNodes, Arc<Group>);

impl Harness for Copied {
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    fn open(&self, node: usize, options: Options) -> Result<Log, OpenError> {
        let log = self.0.open(node, options)?;
        self.1.copies.are(node, Some(&log));
        Ok(log)
    }

    fn kill(&self, node: usize) {
        self.1.copies.are(node, None);
        self.0.kill(node);
    }

    fn disk(&self, node: usize) -> Option<SimulatedStorage> {
        self.0.disk(node)
    }

    fn link(&self, node: usize) -> Option<Link> {
        self.0.link(node)
    }
}

const PATIENCE: Duration = Duration::from_millis(50);
const LEAD_TIMEOUT: Duration = Duration::from_millis(300);

impl JournalUnderTest for OverRaft {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        let group = Group::that_keeps(self.1, self.0, self.0, seed, PATIENCE);
        let copied = Arc::clone(&group);
        let was_opened = Mutex::new(vec![false; self.0]);
        let nodes = SharedNodes::new(self.0, seed, LEAD_TIMEOUT, move |number| {
            // Opened again: its process was killed.
            if std::mem::replace(&mut was_opened.lock().unwrap()[number], true) {
                group.kill(number);
                group.start(number);
            }
            Box::new(group.connect(number, "main"))
        });
        Box::new(Copied(nodes, copied))
    }

    /// Who is killed is waited for: an election each.
    fn percent(&self) -> u64 {
        2
    }
}

mod one {
    use super::*;
    wellspring_log_conformance::conformance_tests! {
        journal: OverRaft(1, Keeps::Everything),
        delayed_barriers: no("the group says when a batch is durable"),
        disk_faults: yes,
        several_nodes: no("there is one"),
    }
}

mod three {
    use super::*;
    wellspring_log_conformance::conformance_tests! {
        journal: OverRaft(3, Keeps::Everything),
        delayed_barriers: no("the group says when a batch is durable"),
        disk_faults: yes,
        several_nodes: yes,
    }
}

/// With files so small that most of what happens is dropped.
mod three_that_drop {
    use super::*;
    wellspring_log_conformance::conformance_tests! {
        journal: OverRaft(3, Keeps::File(64 << 10)),
        delayed_barriers: no("the group says when a batch is durable"),
        disk_faults: yes,
        several_nodes: yes,
    }
}

mod five {
    use super::*;
    wellspring_log_conformance::conformance_tests! {
        journal: OverRaft(5, Keeps::Everything),
        delayed_barriers: no("the group says when a batch is durable"),
        disk_faults: yes,
        several_nodes: yes,
    }
}
