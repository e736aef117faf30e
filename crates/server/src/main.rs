//! The `wellspring` program (temporary: the server's main replaces this).

mod cli;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An event store with dynamic consistency boundaries.
#[derive(Debug, Parser)]
#[command(name = "wellspring", version, about)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Tool(cli::Tool),
}

fn main() -> ExitCode {
    match Line::parse().command {
        Command::Tool(tool) => cli::run(tool),
    }
}
