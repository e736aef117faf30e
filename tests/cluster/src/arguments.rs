//! The command line.

use crate::faults::Fault;
use crate::plant::Plant;
use std::path::PathBuf;
use std::time::Duration;

/// The parsed arguments.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    /// Duration of faults and clients.
    pub(crate) length: Duration,
    pub(crate) seed: u64,
    pub(crate) plant: Option<Plant>,
    /// The enabled faults.
    pub(crate) faults: Vec<Fault>,
    /// Number of nodes; one with `files`.
    pub(crate) nodes: usize,
    /// Number of logs.
    pub(crate) logs: u64,
    /// A single node on files, without anything that needs several nodes: for trying the test
    /// itself.
    pub(crate) files: bool,
    /// The nodes order their logs themselves, without PostgreSQL.
    pub(crate) raft: bool,
    /// A synchronous standby; required by the faults `cancel-wait` and `promote`.
    pub(crate) standby: bool,
    pub(crate) lead_timeout: Duration,
    /// Writes must resume within this many lead timeouts after the leader was killed.
    pub(crate) patience: u32,
    /// Approximate pause of a client between two operations.
    pub(crate) pace: Duration,
    /// The program `wellspring`.
    pub(crate) program: PathBuf,
    /// The built checker of registers; without it registers are not checked.
    pub(crate) judge: Option<PathBuf>,
    /// The folder for logs, data and histories; created if necessary.
    pub(crate) folder: PathBuf,
}

const USAGE: &str = "\
usage: tests/cluster/run [--minutes N | --seconds N] [--seed S] [--plant NAME] [--faults NAME,…] [--nodes N] [--logs N]
    [--journal raft|postgres] [--files] [--standby] [--lead-timeout-ms N] [--patience N] [--pace-ms N] [--out FOLDER]

  --minutes, --seconds  how long (1 minute)
  --seed                which faults, when, and what clients ask for (drawn)
  --plant               a bug in the trial that has to be found: the exit status is 0 if it is
  --faults              only these, each as often as it is named
  --logs                that registers and appends use (3): a leader is that of a drawn one
  --journal             over PostgreSQL, or raft: the nodes by themselves (postgres)
  --files               a single node on files, to try the trial itself
  --standby             PostgreSQL commits with a synchronous standby; adds the faults cancel-wait and promote
  --lead-timeout-ms     of the nodes (2000)
  --patience            writes must go on within so many lead timeouts after a leader's death (2)
  --pace-ms             the pause of a client between two operations, about (10)
  --out                 a new folder for logs, data and histories (drawn, below $TMPDIR)";

/// Parses the arguments; the error is for display.
pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut words = words;
    let mut read = Arguments {
        length: Duration::from_secs(60),
        seed: drawn(),
        plant: None,
        faults: Vec::new(),
        nodes: 3,
        logs: 3,
        files: false,
        raft: false,
        standby: false,
        lead_timeout: Duration::from_millis(2000),
        patience: 2,
        pace: Duration::from_millis(10),
        program: PathBuf::from("wellspring"),
        judge: None,
        folder: std::env::temp_dir().join(format!("wellspring-cluster-{}", std::process::id())),
    };
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            return Err(help());
        }
        if word == "--files" {
            (read.files, read.nodes) = (true, 1);
            continue;
        }
        if word == "--standby" {
            read.standby = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value\n{}", help()))?;
        let number = || value.parse().map_err(|_| format!("{word}: {value} is no number"));
        match word.as_str() {
            "--journal" => read.raft = is_raft(&value)?,
            "--minutes" => read.length = Duration::from_secs(60 * number()?),
            "--seconds" => read.length = Duration::from_secs(number()?),
            "--seed" => read.seed = number()?,
            "--nodes" => read.nodes = number()?.clamp(1, 9) as usize,
            "--logs" => read.logs = number()?.clamp(1, 9),
            "--lead-timeout-ms" => read.lead_timeout = Duration::from_millis(number()?),
            "--patience" => read.patience = number()? as u32,
            "--pace-ms" => read.pace = Duration::from_millis(number()?),
            "--plant" => read.plant = Some(plant(&value)?),
            "--faults" => read.faults = value.split(',').map(fault).collect::<Result<_, _>>()?,
            "--program" => read.program = PathBuf::from(value),
            "--judge" => read.judge = Some(PathBuf::from(value)),
            "--out" => read.folder = PathBuf::from(value),
            _ => return Err(format!("{word} is not known\n{}", help())),
        }
    }
    if read.faults.is_empty() {
        read.faults = Fault::usual(read.files, read.raft, read.standby);
    }
    if let Some(needy) = read.faults.iter().find(|fault| fault.needs_standby() && !read.standby) {
        return Err(format!("--faults {}: needs --standby", needy.name()));
    }
    Ok(read)
}

fn is_raft(journal: &str) -> Result<bool, String> {
    match journal {
        "raft" => Ok(true),
        "postgres" => Ok(false),
        _ => Err(format!("--journal: {journal} is neither raft nor postgres")),
    }
}

fn help() -> String {
    let faults: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    let plants: Vec<_> = Plant::ALL.iter().map(|plant| plant.name()).collect();
    format!("{USAGE}\n\nfaults: {}\nplants: {}", faults.join(" "), plants.join(" "))
}

fn plant(name: &str) -> Result<Plant, String> {
    let found = Plant::ALL.into_iter().find(|plant| plant.name() == name);
    found.ok_or_else(|| format!("no plant is called {name}\n{}", help()))
}

fn fault(name: &str) -> Result<Fault, String> {
    let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    found.ok_or_else(|| format!("no fault is called {name}\n{}", help()))
}

/// A seed from the current time.
fn drawn() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
