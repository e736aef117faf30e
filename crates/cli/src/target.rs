//! The server and the log that a tool talks to.

use crate::exit::{Failure, InputKind};
use crate::problem::Problem;
use crate::server::Server;
use crate::shell;
use wellspring_client::Client;
use wellspring_client::endpoint::percent_encode;
use wellspring_host::names::{NAME_RULE, is_name};

/// The log, unless another is named.
const DEFAULT_LOG: &str = "main";

/// The server and the log that a tool talks to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Target {
    /// Name of the log
    #[arg(long, default_value = DEFAULT_LOG, global = true)]
    pub(crate) log: String,
    // Last: options behind it would stand under its heading.
    #[command(flatten)]
    pub(crate) server: Server,
}

impl Target {
    /// A client for the server; nothing is sent yet.
    ///
    /// # Errors
    /// Usage, if the address is not valid or the TLS options cannot be used; a failure of the
    /// credentials.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.server.client()
    }

    /// The flags that name the same server and log, with the same credentials, on another command
    /// line: ready to be pasted into a shell, with a space before each; empty if all is the
    /// default.
    pub(crate) fn flags(&self) -> String {
        let mut flags = self.server.flags();
        if self.log != DEFAULT_LOG {
            let at = flags.iter().take_while(|(flag, _)| *flag == "--url").count();
            flags.insert(at, ("--log", self.log.clone()));
        }
        shell::flags(&flags)
    }

    /// A refusal of a request about the log.
    pub(crate) fn refusal(&self, problem: &Problem, input: InputKind) -> Failure {
        match (problem.slug(), problem.other_head()) {
            ("log-not-found", _) => self.no_log(),
            (_, Some(head)) => {
                let message = format!(
                    "log {}: {}. Decide what becomes of what was derived from the other history; then \
                     start again from the beginning, or after what this log holds with --after {head}",
                    self.log,
                    problem.sentence(),
                );
                Failure::new(problem.code(input), message)
            }
            _ => Failure::new(problem.code(input), problem.sentence()),
        }
    }

    /// The server has no such log: how to create it, if the name is valid.
    pub(crate) fn no_log(&self) -> Failure {
        let Target { server, log } = self;
        if !is_name(log) {
            return Failure::usage(format!(
                "--log {log:?} is not a valid name of a log: {NAME_RULE}"
            ));
        }
        let flags = shell::flags(&server.flags());
        Failure::usage(format!(
            "log {log} does not exist; create it (as an admin, if there are accounts) with: \
             wellspring log create {log}{flags}"
        ))
    }

    /// The path of a resource of the log, e.g. `events`.
    pub(crate) fn path(&self, resource: &str) -> String {
        format!("/v1/logs/{}/{resource}", percent_encode(&self.log))
    }
}
