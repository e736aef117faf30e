//! The `wellspring` program: the shell around the log, with every effect.

mod cli;
mod clock;
mod config;
mod http;
mod node;
mod serve;
mod stats;

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
    /// Serves everything on one port.
    Serve(Box<config::ServeArgs>),
    #[command(flatten)]
    Tool(cli::Tool),
}

fn main() -> ExitCode {
    match Line::parse().command {
        Command::Serve(args) => serve::run(*args),
        Command::Tool(tool) => cli::run(tool),
    }
}
