//! `wellspring cluster recover`: when the majority of a cluster is lost for good, a node that is
//! left goes on alone.

use crate::exit::{Code, Failure, say};
use crate::folder_owner::keeping_owner;
use crate::table::table;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellspring_host::random;
use wellspring_journal_raft::recover::{RecoverError, WalReport, inspect, recover};
use wellspring_journal_raft::wal::WalFault;
use wellspring_log::inspect::{CopyFound, Holding, holding};
use wellspring_log::storage::DiskStorage;

/// A generation is greater than the one before by a random number up to this one, so that two nodes
/// that both go on alone, by mistake, are not of the same.
const STEP: u64 = 1 << 16;

/// What `wellspring cluster recover` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
For the loss of a majority of the voters that will not come back; while they may, start them instead. \
Stop all nodes that are left, inspect each, and take the one whose last term and entry are greatest. \
It goes on alone with what it has. What only lost nodes had is gone, acknowledged or not. So each log \
gets another history: cursors of readers and consumers that may have seen more are refused with 409. \
Start the node, and have others join it on empty folders.

Examples:
  wellspring cluster recover --data ./data --inspect
  wellspring cluster recover --data ./data --i-may-lose-acknowledged-events")]
pub(super) struct RecoverArgs {
    /// The data folder of a stopped node
    #[arg(long, env = "WELLSPRING_DATA", value_name = "DIR")]
    data: PathBuf,
    /// Only show what the node has
    #[arg(long)]
    inspect: bool,
    /// Print one JSON document
    #[arg(long, requires = "inspect")]
    json: bool,
    /// Make the node the only one of its cluster
    #[arg(long, conflicts_with = "inspect", required_unless_present = "inspect")]
    i_may_lose_acknowledged_events: bool,
}

pub(super) fn run(args: &RecoverArgs) -> Result<(), Failure> {
    keeping_owner(&args.data, || {
        let dir = args.data.join("raft");
        let storage = DiskStorage::existing(&dir).map_err(|error| {
            let message =
                format!("{} is not the folder of a node (--data): {error}", dir.display());
            Failure::new(Code::NoInput, message)
        })?;
        let storage = Arc::new(storage);
        let report = inspect(Arc::clone(&storage) as _).map_err(|error| failed(&dir, &error))?;
        let copies = copies(&args.data)?;
        let lacks = lacks(&report, &copies);
        if args.json {
            return say(&document(&report, &copies, &lacks).to_string());
        }
        say(&lines(&report, &copies, &lacks).join("\n"))?;
        if args.inspect {
            return Ok(());
        }
        let node = &report.identity.node;
        if !lacks.is_empty() {
            let message = format!("{node} cannot go on alone; nothing was changed");
            return Err(Failure::new(Code::Refused, message));
        }
        say(
            "\nWhat only other nodes had is lost, also if it was acknowledged; what this one has counts. Each log \
             gets another history, and cursors into the old one are refused.",
        )?;
        let drawn =
            random::bytes::<8>().map_err(|error| Failure::new(Code::Io, error.to_string()))?;
        let generation = report.identity.generation + 1 + u64::from_le_bytes(drawn) % STEP;
        let after = recover(storage, generation).map_err(|error| failed(&dir, &error))?;
        say(&format!(
            "{node} is the only node of generation {} of the cluster, with everything up to entry {}. Start it, \
             and have others join on empty folders.",
            after.identity.generation, after.last.index
        ))
    })
}

fn failed(dir: &Path, error: &RecoverError) -> Failure {
    let (code, why) = match error {
        RecoverError::Wal(WalFault::Io { error, .. }) if error.kind() == ErrorKind::WouldBlock => {
            (Code::Unavailable, "it is in use; stop the server first".to_owned())
        }
        RecoverError::Wal(WalFault::Io { .. }) => (Code::Io, error.to_string()),
        _ => (Code::Refused, error.to_string()),
    };
    Failure::new(code, format!("{}: {why}", dir.display()))
}

/// The copies in a data folder, by the names of their logs.
fn copies(data: &Path) -> Result<BTreeMap<String, CopyFound>, Failure> {
    let mut copies = BTreeMap::new();
    for folder in std::fs::read_dir(data.join("logs")).into_iter().flatten().flatten() {
        if let Holding::Copy(copy @ CopyFound { of: Some(_), .. }) = holding(&folder.path())? {
            copies.extend(copy.of.clone().map(|of| (of.log, copy)));
        }
    }
    Ok(copies)
}

/// Why the node cannot go on alone.
fn lacks(report: &WalReport, copies: &BTreeMap<String, CopyFound>) -> Vec<String> {
    let mut lacks = Vec::new();
    for (log, CopyFound { head, .. }) in copies {
        if let Some(dropped) = report.dropped_heads.get(&**log).filter(|dropped| *dropped > head) {
            lacks.push(format!(
                "the copy of {log} ends at position {head}, and lacks events up to {dropped} that only other \
                 nodes have"
            ));
        }
    }
    let places = copies.values().map(|copy| copy.place).chain([report.copied]);
    if !places.into_iter().all(|place| report.reaches(place)) {
        lacks.push("its copies are ahead of its WAL: it was still fetching entries".to_owned());
    }
    if !report.members.contains_key(&report.identity.node_id) {
        lacks.push("it has not become a member of the cluster".to_owned());
    }
    lacks
}

fn voters(report: &WalReport) -> BTreeSet<&str> {
    report.members.values().filter(|(_, votes)| *votes).map(|(at, _)| &*at.name).collect()
}

fn document(report: &WalReport, copies: &BTreeMap<String, CopyFound>, lacks: &[String]) -> Value {
    let log = |(log, copy): (&String, &CopyFound)| json!({"log": log, "head": copy.head, "epoch": copy.epoch});
    json!({
        "cluster": report.identity.cluster.to_string(),
        "generation": report.identity.generation,
        "node": report.identity.node,
        "voters": voters(report),
        "term": report.term,
        "last_term": report.last.term,
        "last_index": report.last.index,
        "dropped_index": report.purged.index,
        "logs": copies.iter().map(log).collect::<Vec<_>>(),
        "lacks": lacks,
    })
}

fn lines(
    report: &WalReport,
    copies: &BTreeMap<String, CopyFound>,
    lacks: &[String],
) -> Vec<String> {
    let WalReport { identity, last, term, purged, .. } = report;
    let voters = voters(report).into_iter().collect::<Vec<_>>().join(", ");
    let mut lines = vec![
        format!("cluster {}, generation {}", identity.cluster, identity.generation),
        format!("node {}; the voters: {voters}", identity.node),
        format!("last entry {} of term {}, in term {term}", last.index, last.term),
        format!("entries up to {} dropped, because copies hold them", purged.index),
        String::new(),
    ];
    let row = |(log, copy): (&String, &CopyFound)| {
        vec![log.clone(), copy.head.to_string(), copy.epoch.to_string()]
    };
    lines.extend(table(&["LOG", "HEAD", "EPOCH"], copies.iter().map(row)));
    lines.extend(lacks.iter().map(|lack| format!("cannot go on alone: {lack}")));
    lines
}
