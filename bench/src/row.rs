//! One measured value: a JSON line, from which figures.py makes every table.

use crate::flags::{Flags, Outcome};
use serde::Serialize;
use std::io::Write as _;

/// One value of one server in one round.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Row {
    /// The subcommand.
    pub(crate) measurement: String,
    /// What within it, for example a query shape.
    pub(crate) case: String,
    /// `wellspring`, `umadb`, `floor`, `null`.
    pub(crate) server: String,
    /// How the processes were pinned.
    pub(crate) pinning: String,
    /// Rounds of one run are numbered; servers are compared within a round.
    pub(crate) round: u32,
    /// Events in the log, where it matters.
    pub(crate) size: u64,
    /// The value.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: String,
    /// Latencies behind it, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// Likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// Share of one core the client used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_busy: Option<f64>,
    /// Cores the server used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_busy: Option<f64>,
    /// CPU time the server used for each request, in µs, user and system, all its threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_us: Option<f64>,
    /// How many single observations it rests on.
    pub(crate) samples: u64,
}

/// Where rows go and what is common to those of one invocation.
pub(crate) struct Sink {
    path: Option<String>,
    common: Row,
}

impl Sink {
    /// Takes `--out`, `--round`, `--pinning` and `--server-name`.
    pub(crate) fn from_flags(measurement: &str, server: &str, flags: &mut Flags) -> Outcome<Self> {
        let common = Row {
            measurement: measurement.into(),
            server: flags.or("server-name", server.to_owned())?,
            pinning: flags.or("pinning", "none".to_owned())?,
            round: flags.or("round", 0)?,
            ..Row::default()
        };
        Ok(Self { path: flags.optional("out")?, common })
    }

    /// A row with the common fields filled in.
    pub(crate) fn row(&self, case: &str, value: f64, unit: &str) -> Row {
        Row { case: case.into(), value, unit: unit.into(), ..self.common.clone() }
    }

    /// Says the row on stderr and appends it to the file.
    pub(crate) fn put(&self, row: &Row) -> Outcome<()> {
        let mut line = format!(
            "round {:>2}  {:<11} {:<28} {:>12.1} {}",
            row.round, row.server, row.case, row.value, row.unit
        );
        for (name, value) in [("p50", row.p50_us), ("p99", row.p99_us)] {
            if let Some(value) = value {
                line += &format!("  {name} {value:.0} µs");
            }
        }
        if let Some(value) = row.server_us {
            line += &format!("  server {value:.2} µs each");
        }
        for (name, value) in [("client", row.client_busy), ("server", row.server_busy)] {
            if let Some(value) = value {
                line += &format!("  {name} {value:.2} cores");
            }
        }
        eprintln!("{line}");
        if let Some(path) = &self.path {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            writeln!(file, "{}", serde_json::to_string(row)?)?;
        }
        Ok(())
    }
}
