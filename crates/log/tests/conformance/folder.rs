//! The suite over files in a folder of the operating system, with processes that are killed:
//! everything written survives, nothing else does.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use tempfile::TempDir;
use wellspring_log::storage::{DiskStorage, Storage, StorageFile};
use wellspring_log::{Log, OpenError, Options};
use wellspring_log_conformance::{Harness, JournalUnderTest};

struct Folders;

impl JournalUnderTest for Folders {
    fn begin(&self, _seed: u64) -> Box<dyn Harness> {
        let dir = tempfile::tempdir().unwrap();
        Box::new(Folder { dir, process: Mutex::default() })
    }

    /// Each barrier is one of the device.
    fn percent(&self) -> u64 {
        10
    }
}

struct Folder {
    dir: TempDir,
    process: Mutex<Option<Process>>,
}

impl Folder {
    fn path(&self) -> PathBuf {
        self.dir.path().join("log")
    }
}

impl Harness for Folder {
    fn open(&self, _node: usize, options: Options) -> Result<Log, OpenError> {
        let path = self.path();
        let disk = DiskStorage::create(&path).map_err(|error| OpenError::Io {
            doing: format!("making {}", path.display()),
            error,
        })?;
        let process = Process { disk: Arc::new(disk), alive: Arc::new(RwLock::new(true)) };
        *self.process.lock().unwrap() = Some(process.clone());
        Log::open_on(Arc::new(process), options)
    }

    fn kill(&self, _node: usize) {
        if let Some(process) = self.process.lock().unwrap().take() {
            *process.alive.write().unwrap() = false;
            process.disk.unlock();
        }
    }
}

/// The access of one process to its folder, until it is killed.
#[derive(Debug, Clone)]
struct Process {
    disk: Arc<DiskStorage>,
    alive: Arc<RwLock<bool>>,
}

impl Process {
    /// Held while something is done.
    fn alive(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let alive = self.alive.read().unwrap();
        if *alive { Ok(alive) } else { Err(io::Error::other("the process was killed")) }
    }

    fn file(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(OpenFile { process: self.clone(), file })
    }
}

impl Storage for Process {
    delegate!(disk: name lock unlock require_folder still_locked list file_bytes);

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.disk.open(name).map(|file| self.file(file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let _alive = self.alive()?;
        self.disk.create(name).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let _alive = self.alive()?;
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let _alive = self.alive()?;
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let _alive = self.alive()?;
        self.disk.sync_dir()
    }
}

#[derive(Debug)]
struct OpenFile {
    process: Process,
    file: Arc<dyn StorageFile>,
}

impl StorageFile for OpenFile {
    delegate!(file: read_at len);

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _alive = self.process.alive()?;
        self.file.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let _alive = self.process.alive()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let _alive = self.process.alive()?;
        self.file.sync_data()
    }
}

wellspring_log_conformance::conformance_tests! {
    journal: Folders,
    delayed_barriers: yes,
    disk_faults: no("a disk of the system's is not filled up; the simulated one is"),
    several_nodes: no("a log of files has one node"),
}
