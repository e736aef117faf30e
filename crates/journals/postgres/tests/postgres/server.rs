//! Servers started by the tests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_journal_postgres::{ConnectOptions, PostgresNode};
use wellspring_patience::Patience;

const NOT_INSTALLED: i32 = 3;

/// A server that ends with the tests' process.
pub(crate) struct Server {
    dir: PathBuf,
    pub(crate) url: String,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../test-servers/postgres.sh")
}

fn run(arguments: &[&str]) -> Result<String, (i32, String)> {
    let output = Command::new(script()).args(arguments).output().expect("the script runs");
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

fn new_dir() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("ws-pg-{}-{number}", std::process::id()))
}

/// Starts a separate server for a test; `Err` says why there is none.
pub(crate) fn start(settings: &[&str]) -> Result<Server, String> {
    let dir = new_dir();
    let (path, pid) = (dir.display().to_string(), std::process::id().to_string());
    let mut arguments = vec!["up", &path, "--while", &pid];
    for setting in settings {
        arguments.extend(["-c", setting]);
    }
    match run(&arguments) {
        Ok(printed) => Ok(Server { dir, url: url_in(&printed) }),
        Err((NOT_INSTALLED, said)) => Err(said),
        Err((_, said)) => panic!("the server does not start: {said}"),
    }
}

static SHARED: OnceLock<Result<Server, String>> = OnceLock::new();

fn shared() -> &'static Result<Server, String> {
    SHARED.get_or_init(|| start(&["max_connections=400"]))
}

/// Skips a test that needs PostgreSQL, with a visible message.
fn skip(test: &str, why: &str) {
    let required = std::env::var("WELLSPRING_TEST_ENGINES").is_ok_and(|value| value == "required");
    assert!(!required, "WELLSPRING_TEST_ENGINES=required, but {test} cannot run: {why}");
    // Bypasses the capture of the tests' output.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}

/// The server shared by tests, each of which has its own logs. `None`: the test is skipped.
pub(crate) fn server(test: &str) -> Option<&'static Server> {
    match shared() {
        Ok(server) => Some(server),
        Err(why) => {
            skip(test, why);
            None
        }
    }
}

/// A separate server for one test. `None`: the test is skipped.
pub(crate) fn own_server(test: &str, settings: &[&str]) -> Option<Server> {
    match start(settings) {
        Ok(server) => Some(server),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

/// A log name unique to this test.
pub(crate) fn new_log(test: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{test}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Server {
    pub(crate) fn options(&self) -> ConnectOptions {
        ConnectOptions::parse(&self.url).expect("the script's URL is one")
    }

    pub(crate) fn node(&self) -> PostgresNode {
        PostgresNode::connect(self.options()).expect("the server takes connections")
    }

    /// A node with this name in `pg_stat_activity`.
    pub(crate) fn named_node(&self, name: &str) -> PostgresNode {
        let options = ConnectOptions { application_name: name.into(), ..self.options() };
        PostgresNode::connect(options).expect("the server takes connections")
    }

    /// Runs SQL; returns the result as text, with columns separated by `|`.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let output = Command::new("psql")
            .args(["-qAtX", "-v", "ON_ERROR_STOP=1", &self.url, "-c", sql])
            .output()
            .expect("psql runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    /// Waits until a query has this result; in vain if its result stays another.
    pub(crate) fn wait_for(&self, sql: &str, answer: &str) {
        let mut patience = Patience::new();
        loop {
            let now = self.sql(sql);
            if now == answer {
                return;
            }
            patience.saw(&now);
            patience.pause(format_args!("{sql} = {answer}; it is {now}"));
        }
    }

    /// A session that stays open and holds its locks.
    pub(crate) fn session(&self) -> PsqlSession {
        let mut child = Command::new("psql")
            .args(["-qAtX", &self.url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql runs");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        PsqlSession { child, stdin: Some(stdin), stdout }
    }

    /// Puts a file into the server's folder, owned by the server.
    pub(crate) fn put(&self, name: &str, text: &str) {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
        let data = self.dir.join("data");
        let path = data.join(name);
        std::fs::write(&path, text).expect("written");
        let owner = std::fs::metadata(&data).expect("there").uid();
        chown(&path, Some(owner), None).expect("given to the server");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
    }

    /// Simulates a power loss.
    pub(crate) fn stop(&self) {
        run(&["stop", &self.dir.display().to_string()]).expect("the server stops");
    }

    pub(crate) fn start_again(&self) {
        run(&["start", &self.dir.display().to_string()]).expect("the server starts");
    }

    /// A synchronous standby.
    pub(crate) fn standby(&self) -> Server {
        let dir = new_dir();
        let (own, new) = (self.dir.display().to_string(), dir.display().to_string());
        let pid = std::process::id().to_string();
        let printed = run(&["standby", &own, &new, "--while", &pid]).expect("a standby starts");
        Server { dir, url: url_in(&printed) }
    }

    pub(crate) fn promote(&self) {
        run(&["promote", &self.dir.display().to_string()]).expect("the standby is promoted");
    }

    /// Stops and removes it.
    pub(crate) fn down(self) {
        run(&["down", &self.dir.display().to_string()]).expect("the server goes");
    }
}

/// A session of psql.
pub(crate) struct PsqlSession {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl PsqlSession {
    /// Executes statements without a result.
    pub(crate) fn say(&mut self, sql: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        writeln!(stdin, "{sql}\n\\! echo done").expect("psql reads");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("psql answers");
        assert_eq!(line, "done\n", "{sql}");
    }
}

impl Drop for PsqlSession {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn postgresql_is_there_or_every_test_over_it_is_skipped() {
    if server("every test over PostgreSQL").is_none() {
        let _ = writeln!(std::io::stderr(), "nothing over PostgreSQL was tested");
    }
}
