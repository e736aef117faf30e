//! Runs a trial.

use crate::arguments::Arguments;
use crate::checks::{self, Finding};
use crate::clients::{self, World, add_items};
use crate::cluster::Cluster;
use crate::faults::{self, FaultRecord};
use crate::history::{History, Kind, Operation, Outcome};
use crate::node::{LifeEnd, Node};
use crate::outages;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All checks hold; or the planted bug was found.
    Holds,
    /// A check is violated; or the planted bug was not found.
    Broken,
}

/// Runs a trial.
pub(crate) fn run(arguments: &Arguments) -> io::Result<Verdict> {
    fs::create_dir_all(&arguments.folder)?;
    // PostgreSQL runs as another user, which needs access to its folder.
    fs::set_permissions(&arguments.folder, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    println!("seed {}, in {}", arguments.seed, arguments.folder.display());
    let cluster = Cluster::start(arguments)?;
    let items = add_items(&cluster).map_err(io::Error::other)?;
    let history = History::new(&arguments.folder.join("history.jsonl"))?;
    let ended = AtomicBool::new(false);
    let arguments_kept = arguments.clone();
    let stalls = Mutex::default();
    let world = World { arguments: arguments_kept, cluster, history, items, ended, stalls };
    let faults = std::thread::scope(|scope| {
        clients::start(scope, &world);
        // Its thread starts the nodes.
        let faults = faults::run(&world);
        world.ended.store(true, Ordering::SeqCst);
        faults
    })?;
    let mut found = at_rest(&world, &faults);
    let operations = world.history.all();
    found.extend(judge(arguments, &world));
    let stalls = world.stalls.lock().expect("stalls").clone();
    if let Some(longest) = stalls.iter().map(|(from, to)| (to - from) / 1_000_000).max() {
        println!("this machine stood still {} times, for {longest} ms at most", stalls.len());
    }
    report(arguments, &operations, &faults, &stalls, &found)
}

/// The checks after all clients have ended, with all nodes running.
fn at_rest(world: &World, faults: &[FaultRecord]) -> Vec<Finding> {
    let nodes = &world.cluster.nodes;
    let mut found = Vec::new();
    for fault in faults.iter().filter(|fault| !fault.trouble.is_empty()) {
        found
            .push(Finding { check: "faults", told: format!("{}: {}", fault.fault, fault.trouble) });
    }
    if let Err(told) = world.cluster.writable(Duration::from_secs(30)) {
        found.push(Finding { check: "faults", told });
    }
    for node in nodes {
        found.extend(checks::accounts(&node.name, &account_at_rest(world, node)));
    }
    found.extend(checks::panics(nodes));
    let operations = world.history.all();
    println!("{}", world.cluster.leads());
    for log in &world.cluster.logs {
        found.extend(log_at_rest(world, log, &operations));
    }
    for node in nodes {
        let sold = |item| sold(world, node, item);
        found.extend(checks::stock(&operations, &world.items, &sold));
    }
    if let Some(late) = late(world, faults, &operations) {
        found.push(late);
    }
    found
}

/// The checks of one log.
fn log_at_rest(world: &World, log: &str, operations: &[Operation]) -> Vec<Finding> {
    let (nodes, mut found) = (&world.cluster.nodes, Vec::new());
    // One copy after the other: half an hour leaves gigabytes.
    let mut first: Option<(&str, Vec<u8>)> = None;
    for node in nodes {
        match (checks::fetch(node, log), &first) {
            (Ok(bytes), None) => first = Some((&node.name, bytes)),
            (Ok(bytes), Some((name, log))) => {
                found.extend(checks::copies((name, log), (&node.name, &bytes)));
            }
            (Err(told), _) => {
                found.push(Finding { check: "copies", told: format!("{log}: {told}") });
            }
        }
    }
    let Some((name, bytes)) = first else { return found };
    let events = match checks::events(&bytes) {
        Ok(events) => events,
        Err(told) => {
            found.push(Finding { check: "copies", told: format!("{log}: node {name}: {told}") });
            return found;
        }
    };
    drop(bytes);
    println!("{} events in the log {log}", events.len());
    let end_of = |name: &str, life| {
        let node = nodes.iter().find(|node| node.name == name);
        node.map_or(LifeEnd::Killed, |node| node.end_of(life))
    };
    let of_log = operations.iter().filter(|operation| operation.log == log).cloned();
    found.extend(checks::history(&of_log.collect::<Vec<_>>(), &events, &end_of));
    if let Some(primary) = world.cluster.primary() {
        found.extend(rows(&primary, log, &events));
    }
    found
}

/// A node's account once nothing is in progress, or after a timeout.
fn account_at_rest(world: &World, node: &Node) -> Value {
    let begun = Instant::now();
    loop {
        let account = world.cluster.look(node, "/v1/ingest").map(|answer| answer.json());
        let account = account.unwrap_or_default();
        if account["in_flight"]["events"] == 0 || begun.elapsed() > Duration::from_secs(20) {
            return account;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Compares the rows of a log in SQL with the log; waits for the latest ones.
fn rows(primary: &crate::postgres::Postgres, log: &str, events: &[checks::Event]) -> Vec<Finding> {
    let select = format!(
        "SELECT position, type, array_to_string(tags, ' ') FROM wellspring.ws_event \
         WHERE log = '{log}' OR log LIKE '{log}.%' ORDER BY position"
    );
    let begun = Instant::now();
    loop {
        let found = match primary.rows(&select) {
            Ok(rows) => checks::sql(&rows, events),
            Err(error) => vec![Finding { check: "sql", told: error.to_string() }],
        };
        if found.is_empty() || begun.elapsed() > Duration::from_secs(15) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn sold(world: &World, node: &Node, item: u64) -> Option<(u64, u64)> {
    let target = format!("/v1/catalogue/items/{item}?consistency=linearizable&wait_ms=10000");
    let json = world.cluster.look(node, &target)?.json();
    Some((json["stock"].as_u64()?, json["sold"].as_u64()?))
}

/// Detects an outage after a leader's death that is too long.
fn late(world: &World, faults: &[FaultRecord], operations: &[Operation]) -> Option<Finding> {
    if world.cluster.nodes.len() < 2 {
        return None;
    }
    let most = world.arguments.lead_timeout * world.arguments.patience;
    let stalls = world.stalls.lock().expect("stalls");
    let outages = outages::outages_ms("kill-leader", faults, operations, &stalls);
    let longest = outages.last().copied()?;
    let told = format!("no writes for {longest} ms after a leader's death, {most:?} at most");
    (u128::from(longest) > most.as_millis()).then_some(Finding { check: "outages", told })
}

/// The checker's verdict on the registers.
fn judge(arguments: &Arguments, world: &World) -> Option<Finding> {
    let finding = |told: String| Some(Finding { check: "judge", told });
    let Some(judge) = &arguments.judge else {
        println!("NOT JUDGED: there is no judge (tests/cluster/run builds it if Go is installed)");
        return None;
    };
    drop(world.history.all());
    let output = Command::new(judge)
        .arg("-out")
        .arg(&arguments.folder)
        .arg(arguments.folder.join("history.jsonl"))
        .output();
    match output {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            print!("{told}{}", String::from_utf8_lossy(&output.stderr));
            if output.status.success() {
                return None;
            }
            finding(told.lines().last().unwrap_or("no verdict").to_owned())
        }
        Err(error) => finding(format!("{}: {error}", judge.display())),
    }
}

/// Prints the first few findings of each check.
fn print_findings(found: &[Finding]) {
    const MOST: u64 = 5;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for finding in found {
        let count = counts.entry(finding.check).or_default();
        *count += 1;
        if *count <= MOST {
            println!("FOUND by {}: {}", finding.check, finding.told);
        }
    }
    for (check, count) in counts.into_iter().filter(|(_, count)| *count > MOST) {
        println!("FOUND by {check}: {} more", count - MOST);
    }
}

fn report(
    arguments: &Arguments,
    operations: &[Operation],
    faults: &[FaultRecord],
    stalls: &[(u64, u64)],
    found: &[Finding],
) -> io::Result<Verdict> {
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for operation in operations {
        let of = counts.entry(format!("{:?}", operation.kind)).or_default();
        *of.entry(format!("{:?}", operation.outcome)).or_default() += 1;
    }
    for (kind, outcomes) in &counts {
        let told: Vec<_> = outcomes.iter().map(|(outcome, n)| format!("{outcome} {n}")).collect();
        println!("{kind:7} {}", told.join(", "));
    }
    for name in
        ["kill-leader", "pause-leader", "transfer", "pin", "restart", "drop-link", "stall-link"]
    {
        let outages = outages::outages_ms(name, faults, operations, stalls);
        if !outages.is_empty() {
            println!("without a write after {name}, {}", outages::words(&outages));
        }
    }
    print_findings(found);
    let silent = {
        use Kind::{Append, Bulk, Cas, Ingest, Lease, Order, Read, Statement};
        [Read, Cas, Append, Ingest, Order, Bulk, Statement, Lease]
    }
    .into_iter()
    .find(|kind| !operations.iter().any(|o| o.kind == *kind && o.outcome == Outcome::Done));
    if let Some(kind) = silent {
        println!("FOUND: not one {kind:?} was done, so nothing is known of them");
        return Ok(Verdict::Broken);
    }
    let (holds, told) = match arguments.plant {
        Some(plant) => {
            let is_found = found.iter().any(|finding| finding.check == plant.found_by());
            let word = if is_found { "found" } else { "NOT FOUND" };
            (is_found, format!("the planted bug {} was {word}", plant.name()))
        }
        None if found.is_empty() => (true, "everything holds".to_owned()),
        None => (false, format!("{} findings", found.len())),
    };
    println!("{told}; seed {}, kept in {}", arguments.seed, arguments.folder.display());
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}
