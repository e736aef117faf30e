//! Brokers started by the tests through test-servers/kafka.sh. For tests only: failures panic.

use crate::connection::ConnectionSettings;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const NOT_INSTALLED: i32 = 3;

/// A broker that ends when it is dropped, or with the tests' process.
pub struct Broker {
    dir: PathBuf,
    /// Its plain-text `host:port`.
    pub address: String,
    /// Its `host:port` with TLS and SASL.
    pub secure: Option<String>,
    /// The CA file for that.
    pub ca: Option<PathBuf>,
}

fn run(arguments: &[&str]) -> Result<String, (i32, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-servers/kafka.sh");
    let output = Command::new(script).args(arguments).output().expect("the script runs");
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).expect("UTF-8"));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err((output.status.code().unwrap_or(-1), said))
}

/// Starts a broker, with additional options of the script; `Err` says why there is none.
///
/// # Errors
/// Java or Maven is not installed, or Kafka cannot be fetched.
///
/// # Panics
/// If the broker does not start.
pub fn start(options: &[&str]) -> Result<Broker, String> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("ws-kafka-{}-{number}", std::process::id()));
    let (path, pid) = (dir.display().to_string(), std::process::id().to_string());
    let mut arguments = vec!["up", &path, "--while", &pid];
    arguments.extend(options);
    match run(&arguments) {
        Ok(printed) => {
            let value = |name: &str| {
                let line = printed.lines().find_map(|line| line.strip_prefix(name));
                line.map(str::to_owned)
            };
            Ok(Broker {
                address: value("address=").expect("the script prints an address"),
                secure: value("secure="),
                ca: value("ca=").map(PathBuf::from),
                dir,
            })
        }
        Err((NOT_INSTALLED, said)) => Err(said),
        Err((_, said)) => panic!("the broker does not start: {said}"),
    }
}

impl Broker {
    /// Its folder, for `test-servers/kafka.sh`.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A plain-text connection.
    #[must_use]
    pub fn connection(&self) -> ConnectionSettings {
        ConnectionSettings {
            brokers: vec![self.address.clone()],
            tls: None,
            sasl: None,
            client_id: "wellspring-test".into(),
        }
    }

    fn script(&self, command: &str, more: &[&str]) {
        let path = self.dir.display().to_string();
        let mut arguments = vec![command, &path];
        arguments.extend(more);
        run(&arguments).unwrap_or_else(|(_, said)| panic!("{command}: {said}"));
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&self) {
        self.script("kill", &[]);
    }

    /// Restarts it on the same port, and waits until it responds.
    pub fn start_again(&self) {
        self.script("start", &[]);
    }

    /// Runs Kafka's own topic tool.
    pub fn topics(&self, arguments: &[&str]) {
        let mut more =
            vec!["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", &self.address];
        more.extend(arguments);
        self.script("tool", &more);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.script("down", &[]);
    }
}

/// Reports visibly that a test is skipped.
///
/// # Panics
/// With `WELLSPRING_TEST_ENGINES=required`, which forbids skipping.
pub fn skip(test: &str, why: &str) {
    let required = std::env::var("WELLSPRING_TEST_ENGINES").is_ok_and(|value| value == "required");
    assert!(!required, "WELLSPRING_TEST_ENGINES=required, but {test} cannot run: {why}");
    // Bypasses the capture of the tests' output.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}

/// The broker shared by tests, each of which has its own topics. `None`: the test is skipped.
pub fn broker(test: &str) -> Option<&'static Broker> {
    static SHARED: OnceLock<Result<Broker, String>> = OnceLock::new();
    match SHARED.get_or_init(|| start(&[])) {
        Ok(broker) => Some(broker),
        Err(why) => {
            skip(test, why);
            None
        }
    }
}

/// A separate broker for one test. `None`: the test is skipped.
pub fn own(test: &str, options: &[&str]) -> Option<Broker> {
    match start(options) {
        Ok(broker) => Some(broker),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}
