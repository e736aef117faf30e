//! `wellspring cluster`: several nodes that are one service. What they say of each other, a change
//! of who leads, the key they share, and three of them to try.

mod demo;
pub(crate) mod document;
mod forget;
pub(crate) mod status;
mod transfer;

use crate::exit::{Code, Failure, say};
use crate::problem::Problem;
use crate::server::Server;
use std::path::{Path, PathBuf};
use wellspring_host::client::{Answer, Client, Request};
use wellspring_host::cluster::key::ClusterKey;
use wellspring_host::cluster::node_auth::NodeName;

/// What `wellspring cluster` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 done, 1 refused, 64 or 2 usage or no such node, 69 server not reachable, or nobody leads (status, too), 74 a
file cannot be written, 77 credentials missing or not enough.

Examples:
  wellspring cluster demo                              three nodes over a PostgreSQL of their own, to try
  wellspring cluster status --url http://node-a:4000   any node answers for all
  wellspring cluster transfer --to node-b              has node-b lead, for instance before node-a is stopped
  wellspring cluster forget node-c                     node-c is stopped, and will not come back
  wellspring cluster key cluster.key                   draws the key; copy the file to every node")]
pub struct ClusterArgs {
    #[command(subcommand)]
    what: ClusterCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ClusterCommand {
    /// Shows the nodes: who leads, who answers, how far each is.
    Status {
        #[command(flatten)]
        server: Server,
        /// As one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Has another node lead. Takes an admin, if there are accounts.
    Transfer {
        #[command(flatten)]
        server: Server,
        /// Which node; otherwise one that follows and is not behind.
        #[arg(long, value_name = "NODE", value_parser = node)]
        to: Option<NodeName>,
    },
    /// Takes a node that is no more off the list. Takes an admin, if there are accounts. One that
    /// lives joins again when it is started.
    Forget {
        #[command(flatten)]
        server: Server,
        /// Which: 1 to 64 of a to z, 0 to 9, -, _ and .
        #[arg(value_parser = node)]
        node: NodeName,
    },
    /// Draws the key that all nodes share, into a file that is not there yet.
    Key {
        /// The file: for its owner alone. Copy it to every node (--cluster-key).
        file: PathBuf,
    },
    /// Starts three nodes on this machine, to try what a cluster does. Ctrl-C ends them.
    Demo(demo::DemoArgs),
}

/// Does it.
pub(crate) fn run(args: &ClusterArgs) -> Result<(), Failure> {
    match &args.what {
        ClusterCommand::Status { server, json } => status::run(&mut server.client()?, *json),
        ClusterCommand::Transfer { server, to } => {
            transfer::run(&mut server.client()?, to.as_ref())
        }
        ClusterCommand::Forget { server, node } => forget::run(&mut server.client()?, node),
        ClusterCommand::Key { file } => key(file),
        ClusterCommand::Demo(args) => demo::run(args),
    }
}

fn node(text: &str) -> Result<NodeName, &'static str> {
    NodeName::parse(text)
}

fn key(file: &Path) -> Result<(), Failure> {
    let key = ClusterKey::draw_to(file).map_err(|reason| Failure::new(Code::Io, reason))?;
    let shown = file.display();
    say(&format!(
        "{shown} holds a new key ({}); copy it to every node, for its server's user alone, and start each with \
         --cluster-key {shown}",
        key.fingerprint()
    ))
}

/// Asks, and has the answer if it is a success.
fn ask(client: &mut Client, request: &Request<'_>) -> Result<Answer, Failure> {
    let answer = client.call(request)?;
    if (200..300).contains(&answer.head.status) {
        return Ok(answer);
    }
    let problem = Problem::of(&answer);
    Err(Failure::new(problem.code(Code::Refused), problem.sentence()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_drawn_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cluster.key");
        key(&file).unwrap();
        let drawn = std::fs::read(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = key(&file).unwrap_err();
        assert!(refused.code == Code::Io && refused.message.contains("already"), "{refused:?}");
        assert_eq!(std::fs::read(&file).unwrap(), drawn);
    }
}
