//! The suite over files on a simulated disk with power losses.

use std::sync::{Arc, Mutex, MutexGuard};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Log, OpenError, Options};
use wellspring_log_conformance::{Harness, JournalUnderTest};

struct Files;

impl JournalUnderTest for Files {
    fn begin(&self, seed: u64) -> Box<dyn Harness> {
        Box::new(Disk(Mutex::new(SimulatedStorage::new(seed))))
    }
}

struct Disk(Mutex<SimulatedStorage>);

impl Disk {
    fn now(&self) -> MutexGuard<'_, SimulatedStorage> {
        self.0.lock().unwrap()
    }
}

impl Harness for Disk {
    fn open(&self, _node: usize, options: Options) -> Result<Log, OpenError> {
        Log::open_on(Arc::new(self.now().clone()), options)
    }

    fn kill(&self, _node: usize) {
        let mut disk = self.now();
        *disk = disk.crash();
    }

    fn disk(&self, _node: usize) -> Option<SimulatedStorage> {
        Some(self.now().clone())
    }
}

wellspring_log_conformance::conformance_tests! {
    journal: Files,
    delayed_barriers: yes,
    disk_faults: yes,
    several_nodes: no("a log of files has one node"),
}
