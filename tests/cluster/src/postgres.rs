//! The PostgreSQL of a trial, run by `test-servers/postgres.sh`.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server in its own folder.
#[derive(Debug, Clone)]
pub(crate) struct Postgres {
    folder: PathBuf,
    pub(crate) address: SocketAddr,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-servers/postgres.sh")
}

/// Runs the script and returns the address that it prints, if any.
fn run(arguments: &[&str]) -> io::Result<Option<SocketAddr>> {
    let output = Command::new(script()).args(arguments).output()?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("postgres.sh {}: {why}", arguments.join(" "))));
    }
    let address = told.lines().find_map(|line| line.strip_prefix("address="));
    Ok(address.and_then(|address| address.parse().ok()))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

impl Postgres {
    /// A new server that ends with this process.
    pub(crate) fn up(folder: PathBuf) -> io::Result<Postgres> {
        let own = std::process::id().to_string();
        let address = run(&["up", text(&folder), "--while", &own])?;
        let address = address.ok_or_else(|| io::Error::other("postgres.sh told no address"))?;
        Ok(Postgres { folder, address })
    }

    /// A standby that every commit waits for from now on.
    pub(crate) fn standby(&self, folder: PathBuf) -> io::Result<Postgres> {
        let own = std::process::id().to_string();
        let address = run(&["standby", text(&self.folder), text(&folder), "--while", &own])?;
        let address = address.ok_or_else(|| io::Error::other("postgres.sh told no address"))?;
        Ok(Postgres { folder, address })
    }

    /// Stops it like a power loss.
    pub(crate) fn crash(&self) -> io::Result<()> {
        run(&["stop", text(&self.folder)]).map(|_| ())
    }

    pub(crate) fn start(&self) -> io::Result<()> {
        run(&["start", text(&self.folder)]).map(|_| ())
    }

    /// Promotes a standby.
    pub(crate) fn promote(&self) -> io::Result<()> {
        run(&["promote", text(&self.folder)]).map(|_| ())
    }

    pub(crate) fn down(&self) {
        let _ = run(&["down", text(&self.folder)]);
    }

    /// The rows of a query, with columns separated by tabs.
    pub(crate) fn rows(&self, sql: &str) -> io::Result<Vec<String>> {
        let port = self.address.port().to_string();
        let output = Command::new("psql")
            .args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-c", sql])
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }
}
