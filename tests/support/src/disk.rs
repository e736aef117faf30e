//! Folders on a real disk or on a small one, and the library that delays barriers and makes them
//! fail.

use crate::program::program_path;
use crate::server::Server;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder on the disk that the program was built on, where those of other tests may be in memory.
pub fn on_disk() -> tempfile::TempDir {
    let tmp = Path::new(program_path()).with_file_name("tmp");
    fs::create_dir_all(&tmp).expect("a folder");
    tempfile::tempdir_in(tmp).expect("a folder")
}

/// Lets a load go on for this long, and for some barriers more: over a slow disk there would be
/// none.
pub fn load_for(least_ms: u64) {
    let (mut file, begun) = (tempfile::tempfile().expect("a file"), Instant::now());
    file.write_all(b"x").and_then(|()| file.sync_all()).expect("it is written");
    std::thread::sleep(Duration::from_millis(least_ms) + 8 * begun.elapsed());
}

/// The library, built in `dir`.
pub fn library(dir: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/barriers.c");
    let library = dir.join("barriers.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", source, "-ldl", "-o"])
        .arg(&library)
        .status()
        .expect("a C compiler");
    assert!(built.success());
    library
}

/// Copies a folder with everything in it, owners and times included.
pub fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// A folder on a small file system of the server's own; `None` where the system does not permit
/// one.
pub struct SmallDisk {
    pub server: Server,
    /// The folder's path in the server's namespace.
    inside: PathBuf,
}

const MOUNT: [&str; 4] = ["unshare", "-rm", "sh", "-c"];
const THEN_BECOME: &str = r#"mount -t tmpfs -o size=24m tmpfs "$0" && exec "$@""#;

impl SmallDisk {
    pub fn start(dir: &Path, flags: &[&str]) -> Option<SmallDisk> {
        let command = [&MOUNT[..], &[THEN_BECOME, dir.to_str().unwrap()]].concat();
        let mut probe = Command::new(command[0]);
        let probe = probe.args(&command[1..]).arg("true").stderr(Stdio::null()).status();
        if !probe.is_ok_and(|status| status.success()) {
            return None;
        }
        let server = Server::start_under(&command, dir, flags);
        let inside = format!("/proc/{}/root{}", server.pid(), dir.display());
        Some(SmallDisk { server, inside: inside.into() })
    }

    pub fn filler(&self) -> PathBuf {
        self.inside.join("filler")
    }

    pub fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        for block in [65_536, 4096, 512] {
            while file.write_all(&vec![1; block]).is_ok() {}
        }
    }
}
