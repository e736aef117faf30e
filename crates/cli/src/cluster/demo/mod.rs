//! `wellspring cluster demo`: three nodes of this program on this machine, which order their logs
//! themselves or over a PostgreSQL of their own, for as long as the command runs.

mod folder;
mod nodes;
mod postgres;

use crate::exit::{Code, Failure, say};
use crate::interrupt::Interrupts;
use folder::DemoFolder;
use nodes::{DemoNode, Journal, NodeEnd};
use postgres::DemoPostgres;
use std::path::PathBuf;
use std::time::Duration;
use wellspring_host::cluster::key::ClusterKey;

/// Their names.
const NODES: [&str; 3] = ["a", "b", "c"];
/// The journal of nodes that order their logs themselves.
const RAFT: &str = "raft";
/// Time between two looks at whether a node has ended.
const LOOK: Duration = Duration::from_millis(200);
/// Delay before an ended node is restarted: long enough to see that it is missing.
const AWAY: Duration = Duration::from_secs(15);

/// What `wellspring cluster demo` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The nodes order their logs themselves. --postgres needs PostgreSQL on this machine (Debian and \
Ubuntu: apt-get install postgresql); when started as root, it runs as the user postgres. Everything \
listens on loopback only. A node that ends is restarted after 15 s.

Ctrl-C and SIGTERM stop and remove everything. After kill -9 of the demo itself, its nodes and its \
PostgreSQL keep running, and its folder remains: wellspring-demo-PID-0 in TMPDIR (/tmp). `kill` the \
three nodes, and with --postgres the pid in the first line of FOLDER/postgres/data/postmaster.pid, then remove the \
folder.")]
pub(super) struct DemoArgs {
    /// Over a PostgreSQL of its own
    #[arg(long, conflicts_with = "journal")]
    postgres: bool,
    /// Over a database that no other cluster uses
    #[arg(long, value_name = "URL")]
    journal: Option<String>,
    /// Folder to keep everything in [default: one that is removed at the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: &DemoArgs) -> Result<(), Failure> {
    // Before anything is started, so that everything started is stopped.
    let interrupts = Interrupts::begin()?;
    // Dropped in reverse order: the nodes, their journal, the folder.
    let folder = DemoFolder::open(args.dir.as_deref())?;
    let start = || DemoPostgres::start(&folder.path().join("postgres"), &interrupts);
    let postgres = args.postgres.then(start).transpose()?;
    let url = match (&args.journal, &postgres) {
        (Some(url), _) => url.clone(),
        (None, Some(postgres)) => postgres.url(),
        (None, None) => RAFT.to_owned(),
    };
    let key = folder.path().join("cluster.key");
    if !key.exists() {
        ClusterKey::draw_to(&key).map_err(|reason| Failure::new(Code::Io, reason))?;
    }
    let journal = Journal { url, key };
    let mut nodes = Vec::new();
    for name in NODES {
        nodes.push(DemoNode::start(name, folder.path(), &journal)?);
    }
    if journal.url == RAFT {
        nodes[0].found(&nodes, &interrupts)?;
    }
    for node in &mut nodes {
        node.wait_ready(&interrupts)?;
    }
    let over = match (&postgres, &args.journal) {
        (Some(postgres), _) => format!(", over a PostgreSQL on {}", postgres.address()),
        (None, Some(_)) => ", over the journal you named".to_owned(),
        (None, None) => ", without any other server".to_owned(),
    };
    say(&introduction(&nodes, &over, &folder))?;
    look_after(&mut nodes, &journal, &interrupts)?;
    eprintln!("Stopping.");
    Ok(())
}

/// Until Ctrl-C.
fn look_after(
    nodes: &mut [DemoNode],
    journal: &Journal,
    interrupts: &Interrupts,
) -> Result<(), Failure> {
    let mut away = vec![Duration::ZERO; nodes.len()];
    while !interrupts.came_within(LOOK) {
        for (node, away) in nodes.iter_mut().zip(&mut away) {
            match node.has_ended() {
                NodeEnd::Runs => {}
                NodeEnd::JustNow(how) => {
                    *away = Duration::ZERO;
                    let seconds = AWAY.as_secs();
                    say(&format!(
                        "{} has ended ({how}); restarting it in {seconds} s",
                        node.name()
                    ))?;
                }
                NodeEnd::Ended => {
                    *away += LOOK;
                    if *away >= AWAY {
                        node.start_again(journal)?;
                        say(&format!("{} was restarted, pid {}", node.name(), node.pid()))?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// What to try.
fn introduction(nodes: &[DemoNode], over: &str, folder: &DemoFolder) -> String {
    let mut lines = vec![format!("Three nodes form one service{over}:"), String::new()];
    for node in nodes {
        lines.push(format!("  {}  {}  pid {}", node.name(), node.url(), node.pid()));
    }
    let [a, b, c] = [0, 1, 2].map(|at| nodes[at].url());
    lines.push(format!(
        "
In another terminal:

  wellspring cluster status --url {a}

  # Append on one node, read on another: a linearizable read shows every acknowledged event.
  curl {b}/v1/append -H 'Content-Type: application/json' -d '{{\"events\":[{{\"type\":\"Tried\",\"tags\":[\"t:1\"],\"data\":1}}]}}'
  curl '{c}/v1/events?consistency=linearizable'

  # Have the log main led by node b; then kill the leader of system (the status names it, its pid is above).
  wellspring cluster transfer --log main --to b --url {a}
  kill -9 PID
  wellspring cluster status --url {b}    # ask a live node, after some seconds

Logs of the nodes and their data are in {}.
Ctrl-C stops everything{}.",
        folder.path().display(),
        if folder.is_kept() { "; the folder stays" } else { " and removes the folder" }
    ));
    lines.join("\n")
}
