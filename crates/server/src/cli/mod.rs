//! The tools beside the server: `import`, `export`, `append`, `tail` and `top` speak
//! HTTP to a running one; `inspect` and `verify` read a data folder offline; `user` and `token`
//! do either.
//!
//! Nothing here reaches into the server's own modules: a tool can do what any
//! client can do, no more. But for accounts offline, which no client can have before the first start.

mod accounts;
mod append;
#[cfg(target_os = "linux")]
mod bench;
pub(crate) mod client;
mod credentials;
pub(crate) mod endpoint;
mod exit;
mod export;
mod import;
mod inspect;
mod interrupt;
mod message;
mod problem;
mod progress;
mod query;
mod secret;
mod sse;
mod tail;
#[cfg(test)]
pub(crate) mod test_server;
#[cfg(target_os = "linux")]
pub(crate) mod top;
mod transport;
pub(crate) mod trust;
mod wire;

use exit::Failure;
pub(crate) use exit::say;
use std::process::ExitCode;

/// The tools of the command line.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Tool {
    /// Puts events from a file into a log; running it again adds nothing twice.
    Import(import::ImportArgs),
    /// Writes the events of a log to a file or to standard output.
    Export(export::ExportArgs),
    /// Appends one event, on a condition if wanted.
    Append(append::AppendArgs),
    /// Shows the newest events, and follows what comes with -f.
    Tail(tail::TailArgs),
    /// Manages accounts: who there is and what each may.
    User(accounts::UserArgs),
    /// Manages API keys.
    Token(accounts::TokenArgs),
    /// Shows what lies in a data folder: events, segments, batches. Needs no server.
    Inspect(inspect::InspectArgs),
    /// Reads every byte of a log and checks all there is to check. Needs no server.
    Verify(inspect::VerifyArgs),
    /// Load-tests any HTTP service, and says whether the figures can be trusted.
    #[cfg(target_os = "linux")]
    Bench(Box<bench::BenchArgs>),
    /// Shows what a running server is doing, once a second.
    #[cfg(target_os = "linux")]
    Top(top::TopArgs),
}

/// Which server and which log a tool talks to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Target {
    /// Address of the server.
    #[arg(long, env = "WELLSPRING_URL", default_value = "http://127.0.0.1:4000")]
    pub(crate) url: String,
    /// Name of the log.
    #[arg(long, default_value = "main")]
    pub(crate) log: String,
    #[command(flatten)]
    pub(crate) trust: trust::Trust,
    #[command(flatten)]
    credentials: credentials::Credentials,
}

impl Target {
    /// A client for the server; nothing is sent yet.
    ///
    /// # Errors
    /// Usage, if the address is not one, or TLS cannot be spoken as asked for; whatever the
    /// credentials bring.
    pub(crate) fn client(&self) -> Result<client::Client, Failure> {
        let endpoint = endpoint::Endpoint::parse(&self.url).map_err(Failure::usage)?;
        let client = client::Client::new(endpoint, &self.trust)?;
        Ok(client.with_authorization(self.credentials.authorization()?))
    }

    /// The path of a resource of the log, e.g. `events`.
    pub(crate) fn path(&self, resource: &str) -> String {
        format!("/v1/logs/{}/{resource}", endpoint::percent_encode(&self.log))
    }
}

/// Runs one tool to its end. What went wrong has been said on standard error.
pub(crate) fn run(tool: Tool) -> ExitCode {
    let done = match tool {
        Tool::Import(args) => import::run(&args),
        Tool::Export(args) => export::run(&args),
        Tool::Append(args) => append::run(&args),
        Tool::Tail(args) => tail::run(&args),
        Tool::User(args) => accounts::run_user(&args),
        Tool::Token(args) => accounts::run_token(&args),
        Tool::Inspect(args) => inspect::run(&args),
        Tool::Verify(args) => inspect::verify(&args),
        #[cfg(target_os = "linux")]
        Tool::Bench(args) => {
            return bench::run(&args).unwrap_or_else(|failure| failure.report());
        }
        #[cfg(target_os = "linux")]
        Tool::Top(args) => top::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
