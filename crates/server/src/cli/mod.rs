//! The tools beside the server: `import`, `export`, `append`, `tail`, `log` and `top` speak
//! HTTP to a running one; `inspect` and `verify` read a data folder offline; `user` and `token`
//! do either.
//!
//! Nothing here reaches into the server's own modules: a tool can do what any
//! client can do, no more. But for accounts offline, which no client can have before the first start.

mod accounts;
mod append;
#[cfg(target_os = "linux")]
mod bench;
mod confirmation;
mod credentials;
mod exit;
mod export;
pub(crate) mod help;
mod import;
mod inspect;
mod interrupt;
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
mod tail;
#[cfg(target_os = "linux")]
pub(crate) mod top;
mod wire;

use crate::names::{NAME_RULE, is_name};
use crate::settings::Origins;
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
    /// Load-tests any HTTP service, and says whether the figures can be trusted.
    #[cfg(target_os = "linux")]
    Bench(Box<bench::BenchArgs>),
    /// Shows what a running server is doing, once a second.
    #[cfg(target_os = "linux")]
    Top(top::TopArgs),
}

impl Tool {
    /// Whether variables that begin with `WELLSPRING_` mean something to it.
    pub(crate) fn reads_variables(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Tool::Bench(_) => false,
            _ => true,
        }
    }
}

/// The log that is meant if none is named.
const DEFAULT_LOG: &str = "main";

/// Which server and which log a tool talks to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Target {
    #[command(flatten)]
    pub(crate) server: server::Server,
    /// Name of the log.
    #[arg(long, default_value = DEFAULT_LOG)]
    pub(crate) log: String,
}

impl Target {
    /// A client for the server; nothing is sent yet.
    ///
    /// # Errors
    /// Usage, if the address is not one, or TLS cannot be spoken as asked for; whatever the
    /// credentials bring.
    pub(crate) fn client(&self) -> Result<crate::client::Client, Failure> {
        self.server.client()
    }

    /// The flags that name the same server and log, with the same credentials, on another command line:
    /// ready to be pasted into a shell, with a space before each; empty if all is the default.
    pub(crate) fn flags(&self) -> String {
        let mut flags = self.server.flags();
        if self.log != DEFAULT_LOG {
            let at = flags.iter().take_while(|(flag, _)| *flag == "--url").count();
            flags.insert(at, ("--log", self.log.clone()));
        }
        shell::flags(&flags)
    }

    /// A refusal of a request about the log. `of_rule` is for what was sent, if that breaks a rule.
    pub(crate) fn refusal(&self, problem: &problem::Problem, of_rule: exit::Code) -> Failure {
        match problem.slug() {
            "log-not-found" => self.no_log(),
            _ => Failure::new(problem.code(of_rule), problem.sentence()),
        }
    }

    /// The server has no such log: how to make it, if a log can have this name.
    pub(crate) fn no_log(&self) -> Failure {
        let Target { server, log } = self;
        if !is_name(log) {
            return Failure::usage(format!(
                "--log {log:?}: no log can have this name: {NAME_RULE}"
            ));
        }
        let flags = shell::flags(&server.flags());
        Failure::usage(format!(
            "there is no log {log}; make it (as an admin, if there are accounts) with: \
             wellspring log create {log}{flags}"
        ))
    }

    /// The path of a resource of the log, e.g. `events`.
    pub(crate) fn path(&self, resource: &str) -> String {
        format!("/v1/logs/{}/{resource}", crate::client::endpoint::percent_encode(&self.log))
    }
}

/// Runs one tool to its end. What went wrong has been said on standard error, with where a flag that is
/// wrong was given.
pub(crate) fn run(tool: Tool, origins: &Origins) -> ExitCode {
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
