//! The tools: `import`, `export`, `append`, `tail`, `log`, `consumer` and `top` speak HTTP to a
//! running server; `inspect` and `verify` read a data folder offline, `journal` sets copies in it
//! aside; `user` and `token` do either.
//!
//! The tools use no module of the server: a tool can do what any client can do. The
//! exception is accounts offline, which no client can create before the first start.

#![forbid(unsafe_code)]

#[macro_use] // its eprintln, which no closed standard error can make panic
extern crate wellspring_host;

mod accounts;
mod answer;
mod append;
mod argument_error;
mod backup;
mod bench;
mod cluster;
mod confirmation;
mod connector;
mod consumer;
mod credentials;
mod definition;
mod exit;
mod export;
mod folder_owner;
pub mod help;
mod import;
mod inspect;
mod interrupt;
mod journal;
mod lines;
mod login;
mod logs;
mod numbers;
mod problem;
mod progress;
mod query;
mod secret;
mod server;
mod shell;
mod span;
mod sse;
mod state_folder;
mod stored_login;
mod subject;
mod subject_keys;
mod table;
mod tail;
mod target;
#[cfg(target_os = "linux")]
pub mod top;
mod verify;
mod wire;

pub use exit::{Failure, say};
use std::process::ExitCode;
use wellspring_host::settings::Origins;

/// The exit code for an invalid command line.
pub const USAGE: u8 = exit::Code::Usage as u8;

/// The tools of the command line.
#[derive(Debug, clap::Subcommand)]
pub enum Tool {
    /// Import events from a file; repeating an import adds nothing twice
    Import(import::ImportArgs),
    /// Export the events of a log to a file or standard output
    Export(export::ExportArgs),
    /// Append one event, optionally under a condition
    Append(append::AppendArgs),
    /// Show the newest events; -f follows new ones
    Tail(tail::TailArgs),
    /// Log in to a server and store the token for the other commands
    Login(login::LoginArgs),
    /// Revoke the token stored by `login`
    Logout(login::LogoutArgs),
    /// Create, list and delete logs
    Log(logs::LogArgs),
    /// Take a backup of a running server, or list backups
    Backup(backup::BackupArgs),
    /// Make a data folder from a backup, also up to a position or time
    Restore(backup::RestoreArgs),
    /// Replace damaged segments of a data folder from a backup
    Mend(backup::MendArgs),
    /// Manage accounts and their roles
    User(accounts::UserArgs),
    /// Manage API keys
    Token(accounts::TokenArgs),
    /// Show what is in a data folder: events, segments, batches
    Inspect(inspect::InspectArgs),
    /// Check every byte of a log, or of a backup, without a server
    Verify(verify::VerifyArgs),
    /// Manage a service of several nodes: status, leader, key, demo
    Cluster(cluster::ClusterArgs),
    /// Background work: define consumers, run a program for each event
    Consumer(consumer::ConsumerArgs),
    /// Manage sinks, which deliver events to Kafka or webhooks
    Sink(connector::SinkArgs),
    /// Manage sources, which append records from Kafka to a log
    Source(connector::SourceArgs),
    /// Show, export or erase what is stored about a data subject
    Subject(subject::SubjectArgs),
    /// Manage the keys that seal personal data
    Keys(subject_keys::KeysArgs),
    /// Check copies of shared logs in a data folder, or set one aside
    Journal(journal::JournalArgs),
    /// Load-test any HTTP service, with the program wellspring-bench
    Bench(bench::BenchArgs),
    /// Show live figures of a running server
    #[cfg(target_os = "linux")]
    Top(top::TopArgs),
}

impl Tool {
    /// Whether it reads variables that begin with `WELLSPRING_`.
    pub fn reads_variables(&self) -> bool {
        !matches!(self, Tool::Bench(_))
    }
}

/// Runs one tool to its end. A failure has been reported on standard error, with the place where a
/// wrong flag was given.
pub fn run(tool: Tool, origins: &Origins) -> ExitCode {
    interrupt::survive_file_limit();
    let done = match tool {
        Tool::Import(args) => import::run(&args),
        Tool::Export(args) => export::run(&args),
        Tool::Append(args) => append::run(&args),
        Tool::Tail(args) => tail::run(&args),
        Tool::Login(args) => login::run_login(&args),
        Tool::Logout(args) => login::run_logout(&args),
        Tool::Log(args) => logs::run(&args),
        Tool::Backup(args) => backup::run(&args),
        Tool::Restore(args) => backup::run_restore(&args),
        Tool::Mend(args) => backup::run_mend(&args),
        Tool::User(args) => accounts::run_user(&args),
        Tool::Token(args) => accounts::run_token(&args),
        Tool::Inspect(args) => inspect::run(&args),
        Tool::Verify(args) => verify::verify(&args),
        Tool::Cluster(args) => cluster::run(&args),
        Tool::Consumer(args) => consumer::run(&args),
        Tool::Sink(args) => connector::run_sink(&args),
        Tool::Source(args) => connector::run_source(&args),
        Tool::Subject(args) => subject::run(&args),
        Tool::Keys(args) => subject_keys::run(&args),
        Tool::Journal(args) => journal::run(&args),
        Tool::Bench(args) => bench::run(&args),
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
