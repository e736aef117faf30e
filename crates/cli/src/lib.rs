//! The tools beside the server: `import`, `export`, `append`, `tail`, `log` and `top` speak HTTP to
//! a running one; `inspect` and `verify` read a data folder offline, `journal` sets copies in it
//! aside; `user` and `token` do either.
//!
//! Nothing here reaches into the server's own modules: a tool can do what any client can do, no
//! more. But for accounts offline, which no client can have before the first start.

#![forbid(unsafe_code)]

#[macro_use] // its eprintln, which no closed standard error can make panic
extern crate wellspring_host;

mod accounts;
mod answer;
mod append;
#[cfg(target_os = "linux")]
mod bench;
mod cluster;
mod confirmation;
mod connector;
mod credentials;
mod exit;
mod export;
pub mod help;
mod import;
mod inspect;
mod interrupt;
mod journal;
mod kept_login;
mod login;
mod logs;
mod problem;
mod progress;
mod query;
mod secret;
mod server;
mod shell;
mod span;
mod sse;
mod state_folder;
mod table;
mod tail;
mod target;
#[cfg(target_os = "linux")]
pub mod top;
mod wire;

use exit::Failure;
pub use exit::say;
use std::process::ExitCode;
use wellspring_host::settings::Origins;

/// The tools of the command line.
#[derive(Debug, clap::Subcommand)]
pub enum Tool {
    /// Puts events from a file into a log; running it again adds nothing twice.
    Import(import::ImportArgs),
    /// Writes the events of a log to a file or to standard output.
    Export(export::ExportArgs),
    /// Appends one event, on a condition if wanted.
    Append(append::AppendArgs),
    /// Shows the newest events, and follows what comes with -f.
    Tail(tail::TailArgs),
    /// Logs in at a server: the token is kept for the other commands.
    Login(login::LoginArgs),
    /// Ends the token that `login` keeps.
    Logout(login::LogoutArgs),
    /// Makes, lists and deletes logs.
    Log(logs::LogArgs),
    /// Manages accounts: who there is and what each may.
    User(accounts::UserArgs),
    /// Manages API keys.
    Token(accounts::TokenArgs),
    /// Shows what lies in a data folder: events, segments, batches. Needs no server.
    Inspect(inspect::InspectArgs),
    /// Reads every byte of a log and checks all there is to check. Needs no server.
    Verify(inspect::VerifyArgs),
    /// Several nodes that are one service: their state, who leads, their key, three of them to try.
    Cluster(cluster::ClusterArgs),
    /// Sinks: what carries events to Kafka or to webhooks.
    Sink(connector::SinkArgs),
    /// Sources: what carries records of Kafka into a log.
    Source(connector::SourceArgs),
    /// Looks at the copies of shared logs in a data folder, and sets one aside.
    Journal(journal::JournalArgs),
    /// Load-tests any HTTP service, and says whether the figures can be trusted.
    #[cfg(target_os = "linux")]
    Bench(Box<bench::BenchArgs>),
    /// Shows what a running server is doing, once a second.
    #[cfg(target_os = "linux")]
    Top(top::TopArgs),
}

impl Tool {
    /// Whether variables that begin with `WELLSPRING_` mean something to it.
    pub fn reads_variables(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Tool::Bench(_) => false,
            _ => true,
        }
    }
}

/// Runs one tool to its end. What went wrong has been said on standard error, with where a flag
/// that is wrong was given.
pub fn run(tool: Tool, origins: &Origins) -> ExitCode {
    let done = match tool {
        Tool::Import(args) => import::run(&args),
        Tool::Export(args) => export::run(&args),
        Tool::Append(args) => append::run(&args),
        Tool::Tail(args) => tail::run(&args),
        Tool::Login(args) => login::run_login(&args),
        Tool::Logout(args) => login::run_logout(&args),
        Tool::Log(args) => logs::run(&args),
        Tool::User(args) => accounts::run_user(&args),
        Tool::Token(args) => accounts::run_token(&args),
        Tool::Inspect(args) => inspect::run(&args),
        Tool::Verify(args) => inspect::verify(&args),
        Tool::Cluster(args) => cluster::run(&args),
        Tool::Sink(args) => connector::run_sink(&args),
        Tool::Source(args) => connector::run_source(&args),
        Tool::Journal(args) => journal::run(&args),
        #[cfg(target_os = "linux")]
        Tool::Bench(args) => {
            return bench::run(&args).unwrap_or_else(|failure| failure.report());
        }
        #[cfg(target_os = "linux")]
        Tool::Top(args) => top::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message }) => {
            Failure::new(code, origins.explain_first(message)).report()
        }
    }
}
