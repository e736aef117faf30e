//! `wellspring cluster`: several nodes that form one service. Their status, a change of the leader,
//! the key they share, and a demo of three.

mod demo;
pub(crate) mod document;
mod forget;
mod init;
#[cfg(feature = "raft")]
mod recover;
pub(crate) mod status;
mod transfer;

use crate::exit::{Code, Failure, InputKind, say};
use crate::problem::Problem;
use crate::server::Server;
use std::path::{Path, PathBuf};
use wellspring_client::{Answer, Client, Request};
use wellspring_host::cluster::key::ClusterKey;
use wellspring_host::cluster::node_auth::NodeName;

/// What `wellspring cluster` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
`status` exits with 69 while no node leads, or a majority of voters cannot be reached.

Examples:
  wellspring cluster demo                             three nodes, to try it
  wellspring cluster init http://a:4000 http://b:4000 http://c:4000
  wellspring cluster join http://d:4000 --url http://a:4000
  wellspring cluster join http://d:4000 --replace --url http://a:4000    its disk was lost
  wellspring cluster remove node-c --url http://a:4000
  wellspring cluster recover --data ./data --inspect    the majority is lost for good
  wellspring cluster status --url http://node-a:4000  any node answers for all
  wellspring cluster transfer --to node-b             the log system, and so placement
  wellspring cluster transfer --log orders --to node-b    pin a log to a node
  wellspring cluster transfer --log orders --unpin    leave it to placement again
  wellspring cluster forget node-c                    after it was stopped for good
  wellspring cluster key cluster.key                  copy the file to every node")]
pub struct ClusterArgs {
    #[command(subcommand)]
    what: ClusterCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ClusterCommand {
    /// Make a cluster of nodes that were started with --journal raft
    Init(init::InitArgs),
    /// Have another node join such a cluster; requires an admin if there are accounts
    Join(init::JoinArgs),
    /// Show the nodes: who leads, who answers, how far each is
    Status {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Make another node lead the log `system`, or pin a log to a node; requires an admin if there
    /// are accounts
    Transfer {
        /// The node [default for the log `system`: any follower that is up to date]
        #[arg(long, value_name = "NODE", value_parser = node)]
        to: Option<NodeName>,
        /// The log to pin: that node leads it whenever it can
        #[arg(long)]
        log: Option<String>,
        /// Lift the pin of the log
        #[arg(long, requires = "log", conflicts_with = "to")]
        unpin: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Remove a stopped node from the list; requires an admin if there are accounts
    ///
    /// A node that is still alive joins again when it starts.
    Forget {
        /// Name of the node
        #[arg(value_parser = node)]
        node: NodeName,
        #[command(flatten)]
        server: Server,
    },
    /// Remove a node from a --journal raft cluster; requires an admin if there are accounts
    ///
    /// Voter or learner, running or lost. It can join again on an empty folder. Repeated, the
    /// command succeeds.
    Remove {
        /// Name of the node
        #[arg(value_parser = node)]
        node: NodeName,
        #[command(flatten)]
        server: Server,
    },
    /// Make a node the only one of its cluster after a majority was lost for good; offline
    ///
    /// May lose acknowledged events: those that only lost nodes had.
    #[cfg(feature = "raft")]
    Recover(recover::RecoverArgs),
    /// Generate the key that all nodes share, in a new file
    Key {
        /// File to create, for --cluster-key; readable by its owner only
        file: PathBuf,
    },
    /// Start three nodes on this machine, to try a cluster; Ctrl-C stops them
    Demo(demo::DemoArgs),
}

/// Runs the command.
pub(crate) fn run(args: &ClusterArgs) -> Result<(), Failure> {
    match &args.what {
        ClusterCommand::Init(args) => init::init(args),
        ClusterCommand::Join(args) => init::join(args),
        ClusterCommand::Status { server, json } => status::run(&mut server.client()?, *json),
        ClusterCommand::Transfer { server, to, log: None, .. } => {
            transfer::run(&mut server.client()?, to.as_ref())
        }
        ClusterCommand::Transfer { to: None, log: Some(_), unpin: false, .. } => {
            Err(Failure::new(Code::Usage, "--log needs --to NODE or --unpin"))
        }
        ClusterCommand::Transfer { server, to, log: Some(log), .. } => {
            transfer::pin(&mut server.client()?, log, to.as_ref())
        }
        ClusterCommand::Forget { server, node } => forget::run(&mut server.client()?, node),
        ClusterCommand::Remove { server, node } => forget::remove(&mut server.client()?, node),
        #[cfg(feature = "raft")]
        ClusterCommand::Recover(args) => recover::run(args),
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
        "Created a key in {shown} ({}). Copy the file to every node, readable by the server's user only, and \
         start each node with --cluster-key {shown}.",
        key.fingerprint()
    ))
}

/// Sends a request; the answer, if it is a success.
fn ask(client: &mut Client, request: &Request<'_>) -> Result<Answer, Failure> {
    let answer = client.call(request)?;
    if (200..300).contains(&answer.head.status) {
        return Ok(answer);
    }
    let problem = Problem::of(&answer);
    Err(Failure::new(problem.code(InputKind::Arguments), problem.sentence()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_file_is_never_overwritten() {
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
