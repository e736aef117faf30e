//! The PostgreSQL server of a demo: on loopback, with a generated password, stopped with the demo.

use super::nodes::free_port;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::process::getuid;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use wellspring_types::hex;

/// The user that PostgreSQL runs as if the demo runs as root: it refuses root.
const USER: &str = "postgres";
/// Folders in which distributions install its programs, one for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Attempts to find a port that no other process takes first.
const TRIES: u32 = 5;

/// A running server. Dropping it stops the server.
pub(super) struct DemoPostgres {
    programs: PathBuf,
    data: PathBuf,
    port: u16,
    password: String,
}

impl DemoPostgres {
    /// Starts it in a folder, with the database that is in it from an earlier time.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(super) fn start(dir: &Path, interrupts: &Interrupts) -> Result<DemoPostgres, Failure> {
        let programs = programs().ok_or_else(|| {
            let message = "PostgreSQL is not installed (there is no initdb in PATH nor in /usr/lib/postgresql): \
                           apt-get install postgresql, or name a database with --journal postgres://…";
            Failure::new(Code::Unavailable, message)
        })?;
        let mut server =
            DemoPostgres { programs, data: dir.join("data"), port: 0, password: String::new() };
        let secret = dir.join("password");
        if server.data.exists() {
            let read = fs::read_to_string(&secret);
            server.password = read.map_err(|error| io_failure("reading", &secret, &error))?;
        } else {
            server.make(dir, &secret)?;
        }
        for _ in 0..TRIES {
            if interrupts.came() {
                return Err(Failure::new(Code::Interrupted, ""));
            }
            server.port = free_port()?;
            if server.pg_ctl_start(&dir.join("log"))? {
                return Ok(server);
            }
        }
        let log = fs::read(dir.join("log")).unwrap_or_default();
        let last = String::from_utf8_lossy(&log).lines().last().unwrap_or_default().to_owned();
        Err(Failure::new(Code::Unavailable, format!("PostgreSQL does not start: {last}")))
    }

    /// Its URL, with its password.
    pub(super) fn url(&self) -> String {
        format!("postgres://{USER}:{}@{}/postgres", self.password, self.address())
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn make(&mut self, dir: &Path, secret: &Path) -> Result<(), Failure> {
        let failed = |error: io::Error| io_failure("making", dir, &error);
        DirBuilder::new().mode(0o700).create(dir).map_err(failed)?;
        self.password = password()?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(secret)
            .map_err(failed)?;
        file.write_all(self.password.as_bytes()).map_err(failed)?;
        if getuid().is_root() {
            let given = Command::new("chown").arg("-R").arg(USER).arg(dir).output();
            succeeded("giving its folder to the user postgres", given)?;
        }
        let mut initdb = self.command("initdb");
        initdb.args(["-A", "scram-sha-256", "-U", USER, "-E", "UTF8", "--locale=C", "-D"]);
        initdb.arg(&self.data).arg(format!("--pwfile={}", secret.display()));
        succeeded("initdb", initdb.output()).map(drop)
    }

    /// Whether it has started; if not, another process may have its port.
    fn pg_ctl_start(&self, log: &Path) -> Result<bool, Failure> {
        let settings =
            format!("-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''", self.port);
        let mut start = self.command("pg_ctl");
        start.args(["-w", "-t", "60", "-s", "-D"]).arg(&self.data).arg("-l").arg(log);
        start.args(["-o", &settings, "start"]).stdout(Stdio::null()).stderr(Stdio::null());
        let started = start.status();
        let started =
            started.map_err(|error| io_failure("running", Path::new("pg_ctl"), &error))?;
        Ok(started.success())
    }

    /// One of its programs, as the user that it runs as.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = if getuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", USER, "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        // The folder that the demo was started in may be closed to that user.
        command.current_dir("/").stdin(Stdio::null());
        // The terminal's Ctrl-C is for the demo.
        command.process_group(0);
        command
    }
}

impl Drop for DemoPostgres {
    fn drop(&mut self) {
        let mut stop = self.command("pg_ctl");
        stop.args(["-m", "fast", "-w", "-t", "30", "-s", "-D"]).arg(&self.data).arg("stop");
        let stopped = stop.output();
        if self.port != 0
            && let Err(failure) = succeeded("stopping PostgreSQL", stopped)
        {
            eprintln!("wellspring: {}", failure.message);
        }
    }
}

/// The folder of its programs: in PATH, or the newest installed version.
fn programs() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = env::split_paths(&path).collect();
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
    versions.sort_by_key(|path| {
        let name = path.file_name().and_then(OsStr::to_str);
        std::cmp::Reverse(name.and_then(|name| name.parse::<u32>().ok()))
    });
    found.extend(versions.into_iter().map(|version| version.join("bin")));
    let has_all = |dir: &PathBuf| ["initdb", "pg_ctl"].iter().all(|name| dir.join(name).is_file());
    found.into_iter().find(has_all)
}

/// 128 random bits as hexadecimal digits.
fn password() -> Result<String, Failure> {
    let mut bits = [0; 16];
    let drawn = SystemRandom::new().fill(&mut bits);
    drawn.map_err(|_| Failure::new(Code::Io, "the system gives no random bits"))?;
    Ok(hex::digits(&bits))
}

fn succeeded(what: &str, output: io::Result<Output>) -> Result<Output, Failure> {
    let output =
        output.map_err(|error| Failure::new(Code::Unavailable, format!("{what}: {error}")))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(Code::Unavailable, format!("{what}: {}", said.trim())))
}

fn io_failure(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(Code::Io, format!("{doing} {}: {error}", path.display()))
}
