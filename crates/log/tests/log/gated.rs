//! A disk whose barriers wait until they are released, to simulate a slow device.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::storage::{Storage, StorageFile};

/// Whether barriers pass.
#[derive(Debug, Default)]
pub struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
    /// Number of barriers that have arrived at the gate.
    arrived: Mutex<u64>,
    arrival: Condvar,
    panics: AtomicBool,
}

impl Gate {
    pub fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    pub fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }

    /// Makes the next barrier that passes panic.
    pub fn panic_once(&self) {
        self.panics.store(true, Ordering::SeqCst);
    }

    /// Number of barriers that have arrived at the gate.
    pub fn arrived(&self) -> u64 {
        *self.arrived.lock().unwrap()
    }

    /// Waits until more than `before` barriers have arrived at the gate.
    pub fn wait_for_arrival(&self, before: u64) {
        let arrived = self.arrived.lock().unwrap();
        drop(self.arrival.wait_while(arrived, |arrived| *arrived <= before).unwrap());
    }

    fn pass(&self) {
        *self.arrived.lock().unwrap() += 1;
        self.arrival.notify_all();
        let closed = self.closed.lock().unwrap();
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap());
        assert!(!self.panics.swap(false, Ordering::SeqCst), "as the test wants");
    }
}

/// A simulated folder behind a gate.
#[derive(Debug, Clone)]
pub struct GatedStorage {
    pub disk: SimulatedStorage,
    pub gate: Arc<Gate>,
    /// The next created file whose name ends with this panics.
    pub panic_at: Arc<Mutex<Option<&'static str>>>,
}

impl GatedStorage {
    pub fn new(seed: u64) -> GatedStorage {
        GatedStorage {
            disk: SimulatedStorage::new(seed),
            gate: Arc::default(),
            panic_at: Arc::default(),
        }
    }

    fn gated(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) })
    }
}

impl Storage for GatedStorage {
    delegate!(disk: name lock unlock list rename remove sync_dir);

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.disk.open(name).map(|file| self.gated(file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let ends = self.panic_at.lock().unwrap().take_if(|ends| name.ends_with(*ends));
        assert!(ends.is_none(), "as the test wants");
        self.disk.create(name).map(|file| self.gated(file))
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Arc<dyn StorageFile>,
    gate: Arc<Gate>,
}

impl StorageFile for GatedFile {
    delegate!(file: read_at write_all_at len set_len);

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync_data()
    }
}
