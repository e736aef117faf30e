//! PostgreSQL servers for the tests, managed by `test-servers/postgres.sh`: one that most tests
//! share, each with a schema of its own, and one for each test that breaks it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The script's exit code where PostgreSQL is not installed.
const NOT_INSTALLED: i32 = 3;

/// A server. Stopped when dropped or when the tests' process ends.
pub struct Postgres {
    dir: PathBuf,
    /// `postgres://…`, of a superuser.
    pub url: String,
}

fn run(arguments: &[&str]) -> Result<String, (i32, String)> {
    run_with(&[], arguments)
}

fn run_with(variables: &[(&str, &str)], arguments: &[&str]) -> Result<String, (i32, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-servers/postgres.sh");
    let variables = variables.iter().copied();
    let output = Command::new(script).args(arguments).envs(variables).output();
    let output = output.expect("the script runs");
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).expect("UTF-8"));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err((output.status.code().unwrap_or(-1), said))
}

fn url_in(printed: &str) -> String {
    let url = printed.lines().find_map(|line| line.strip_prefix("url="));
    url.expect("the script prints a URL").to_owned()
}

/// A name that is unique in this process.
fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{prefix}_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn new_dir() -> PathBuf {
    std::env::temp_dir().join(format!("ws-bb-{}-{}", std::process::id(), unique("pg")))
}

fn start(settings: &[&str]) -> Result<Postgres, String> {
    start_in(new_dir(), &[], settings)
}

fn start_in(
    dir: PathBuf,
    variables: &[(&str, &str)],
    settings: &[&str],
) -> Result<Postgres, String> {
    let (path, pid) = (dir.display().to_string(), std::process::id().to_string());
    let mut arguments = vec!["up", &path, "--while", &pid];
    for setting in settings {
        arguments.extend(["-c", setting]);
    }
    match run_with(variables, &arguments) {
        Ok(printed) => Ok(Postgres { url: url_in(&printed), dir }),
        Err((NOT_INSTALLED, said)) => Err(said),
        Err((_, said)) => panic!("PostgreSQL does not start: {said}"),
    }
}

/// The server, or `None`: the test is then skipped with a message.
fn or_skip<T>(test: &str, server: Result<T, &str>) -> Option<T> {
    let why = match server {
        Ok(server) => return Some(server),
        Err(why) => why,
    };
    let required = std::env::var("WELLSPRING_TEST_ENGINES").is_ok_and(|value| value == "required");
    assert!(!required, "WELLSPRING_TEST_ENGINES=required, but {test} cannot run: {why}");
    // Bypasses the capture of the tests' output.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
    None
}

/// The server that tests share. No test of it simulates a loss of power, so fsync is off.
pub fn shared(test: &str) -> Option<&'static Postgres> {
    static SHARED: OnceLock<Result<Postgres, String>> = OnceLock::new();
    let server = SHARED.get_or_init(|| start(&["max_connections=400", "fsync=off"]));
    or_skip(test, server.as_ref().map_err(String::as_str))
}

/// A server for one test alone.
pub fn own(test: &str) -> Option<Postgres> {
    let server = start(&["fsync=off"]);
    or_skip(test, server.as_ref().map(|_| ()).map_err(String::as_str))?;
    server.ok()
}

/// A server for one test alone, over a disk whose barriers, and so whose commits, take this much
/// longer.
pub fn own_slow(test: &str, commit_ms: u64) -> Option<Postgres> {
    let dir = new_dir();
    std::fs::create_dir(&dir).expect("a new folder");
    let (library, delay) = (crate::disk::library(&dir), commit_ms.to_string());
    let preload = library.to_str().expect("UTF-8");
    let variables = [("LD_PRELOAD", preload), ("DELAY_BARRIERS_MS", &delay)];
    let server = start_in(dir, &variables, &[]);
    or_skip(test, server.as_ref().map(|_| ()).map_err(String::as_str))?;
    server.ok()
}

impl Postgres {
    /// A URL for nodes with a schema, and so with logs, of their own.
    pub fn new_journal(&self) -> String {
        format!("{}?schema={}", self.url, unique("t"))
    }

    /// The result of a statement, a row per line, columns separated by `|`.
    pub fn sql(&self, sql: &str) -> String {
        sql_at(&self.url, sql)
    }

    /// Stops it as a loss of power would.
    pub fn stop(&self) {
        run(&["stop", self.dir.to_str().unwrap()]).expect("PostgreSQL stops");
    }

    /// Restarts it.
    pub fn start(&self) {
        run(&["start", self.dir.to_str().unwrap()]).expect("PostgreSQL starts");
    }

    /// An asynchronous standby.
    pub fn standby(&self) -> Postgres {
        let dir = new_dir();
        let (own, new) = (self.dir.to_str().unwrap(), dir.to_str().unwrap());
        let printed = run(&["standby", own, new, "--while", &std::process::id().to_string()])
            .expect("a standby");
        self.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
        self.sql("SELECT pg_reload_conf()");
        Postgres { url: url_in(&printed), dir }
    }

    /// Promotes a standby to primary.
    pub fn promote(&self) {
        run(&["promote", self.dir.to_str().unwrap()]).expect("the standby becomes a primary");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = run(&["down", self.dir.to_str().unwrap()]);
    }
}

fn sql_at(url: &str, sql: &str) -> String {
    let output = Command::new("psql")
        .args(["-qAtX", "-v", "ON_ERROR_STOP=1", url, "-c", sql])
        .output()
        .expect("psql runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{sql}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
}

/// The schema of a journal, which its URL names.
pub fn schema_of(journal: &str) -> &str {
    journal.split_once("schema=").expect("a URL of `new_journal`").1
}
