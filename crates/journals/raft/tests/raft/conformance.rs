//! The conformance suite over one node, three and five.

use crate::group::Group;
use std::sync::Mutex;
use std::time::Duration;
use wellspring_log_conformance::{Harness, JournalUnderTest, SharedNodes};

/// A group of so many nodes.
struct OverRaft(usize);

const PATIENCE: Duration = Duration::from_millis(50);
const LEAD_TIMEOUT: Duration = Duration::from_millis(300);

impl JournalUnderTest for OverRaft {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        let group = Group::new(self.0, seed, PATIENCE);
        let was_opened = Mutex::new(vec![false; self.0]);
        Box::new(SharedNodes::new(self.0, seed, LEAD_TIMEOUT, move |number| {
            // Opened again: its process was killed.
            if std::mem::replace(&mut was_opened.lock().unwrap()[number], true) {
                group.kill(number);
                group.start(number);
            }
            Box::new(group.connect(number, "main"))
        }))
    }

    /// Who is killed is waited for: an election each.
    fn percent(&self) -> u64 {
        2
    }
}

mod one {
    use super::*;
    wellspring_log_conformance::conformance_tests! {
        journal: OverRaft(1),
        delayed_barriers: no("the group says when a batch is durable"),
        disk_faults: yes,
        several_nodes: no("there is one"),
    }
}

mod three {
    use super::*;
    wellspring_log_conformance::conformance_tests! {
        journal: OverRaft(3),
        delayed_barriers: no("the group says when a batch is durable"),
        disk_faults: yes,
        several_nodes: yes,
    }
}

mod five {
    use super::*;
    wellspring_log_conformance::conformance_tests! {
        journal: OverRaft(5),
        delayed_barriers: no("the group says when a batch is durable"),
        disk_faults: yes,
        several_nodes: yes,
    }
}
