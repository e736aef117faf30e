//! The `wellspring` program: the shell around the log, with every effect.
//!
//! A library only so that the fuzz targets reach the parsers; `main.rs` calls [`main`].

mod access;
mod audit;
mod cli;
mod clock;
mod config;
mod generations;
mod hangup;
mod hex;
mod http;
mod ingest;
#[cfg(target_os = "linux")]
mod lean;
mod limits;
mod links;
mod node;
mod otlp;
mod pem;
mod random;
mod serve;
mod stamp;
mod stats;
mod tls;
mod view;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Wellspring: an event store with dynamic consistency boundaries
#[derive(Debug, Parser)]
#[command(name = "wellspring", version)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

// Read once at start; its size is of no account.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
enum Command {
    /// Serves everything on one port.
    Serve(config::ServeArgs),
    #[command(flatten)]
    Tool(cli::Tool),
}

/// Runs the command line and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    match Line::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Tool(tool) => cli::run(tool),
    }
}

/// The parsers of what clients send, for the fuzz targets under `fuzz/`.
pub mod parsers {
    use crate::http::wire::{Style, read_append};

    /// Reads the body of an append, in the native style and in the dialects';
    /// returns how many events each accepted.
    #[must_use]
    pub fn append_body(body: &[u8]) -> [Option<usize>; 2] {
        [Style::Native, Style::Dialect]
            .map(|style| read_append(body, style).ok().map(|append| append.events.len()))
    }

    /// Reads a body as what makes a link and as what changes one; tells which of the two it is.
    #[must_use]
    pub fn link_body(body: &[u8]) -> [bool; 2] {
        crate::http::links::reads(body)
    }

    /// Reads a body as everything that access takes: a login as JSON and as a form, a logout, another
    /// secret, an account, a change of one, a password, a key, another key in its place; tells what
    /// it can be.
    #[must_use]
    pub fn access_body(body: &[u8]) -> [bool; 9] {
        crate::http::access::reads(body)
    }

    /// Whether a text is taken for a `Host` of short URLs.
    #[must_use]
    pub fn is_authority(text: &str) -> bool {
        crate::links::settings::is_authority(text)
    }

    /// What the headers of a request say of whom it is from.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Shown {
        /// Nothing.
        Nothing,
        /// This token.
        Token(Vec<u8>),
        /// This API key.
        Key(Vec<u8>),
        /// This name and this password.
        Login(String, String),
        /// What is malformed.
        Malformed,
    }

    /// Reads all values of `Authorization` and of `X-API-Key`.
    #[must_use]
    pub fn credentials(authorization: &[&[u8]], api_key: &[&[u8]]) -> Shown {
        crate::access::fuzzed::credentials(authorization, api_key)
    }

    /// What a token that counts says.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Told {
        /// Whether it is one of ours, or else one of another issuer.
        pub is_own: bool,
        /// Whose it is; of another issuer's with `jwt:` before it.
        pub name: String,
        /// What it is for: `writer`, or `writer:orders`.
        pub roles: Vec<String>,
        /// When it ends, in seconds since 1970 UTC.
        pub expires_at_s: u64,
    }

    /// Reads two tokens with this header and these claims: one that we have signed and one that an issuer
    /// `i` has signed for the audience `a` with its key `k`. `now_s` in seconds since 1970 UTC.
    #[must_use]
    pub fn signed_tokens(header: &[u8], claims: &[u8], now_s: u64) -> [Option<Told>; 2] {
        crate::access::fuzzed::signed(header, claims, now_s)
    }

    /// Reads a token as it comes.
    #[must_use]
    pub fn token(token: &[u8], now_s: u64) -> Option<Told> {
        crate::access::fuzzed::presented(token, now_s)
    }

    /// Reads a JWK Set; gives how many of its keys can be used.
    #[must_use]
    pub fn key_set(document: &[u8]) -> Option<usize> {
        crate::access::fuzzed::keys(document)
    }

    /// Whether a text is taken for a server's `/metrics` by `wellspring top`.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn metrics_page(text: &str) -> bool {
        crate::cli::top::reads(text)
    }

    /// What a connection of the lean loop came to.
    #[cfg(target_os = "linux")]
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ingested {
        /// Targets and bodies taken, codes and data of clicks, in order.
        pub taken: Vec<(String, Vec<u8>)>,
        /// Statuses answered, `100 Continue` apart; `None` if what was sent is no sequence of answers.
        pub statuses: Option<Vec<u16>>,
        /// The bytes the connection was handed over with, if it was.
        pub handed_over: Option<Vec<u8>>,
    }

    /// Serves `input` as a connection of the lean loop that sends it in pieces, as long in
    /// turn as `lengths` says (0 counts as 1; none at all: in one piece).
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn ingest_connection(input: &[u8], lengths: &[u8]) -> Ingested {
        let mut rest = input;
        let mut lengths = lengths.iter().cycle();
        let pieces = std::iter::from_fn(|| {
            let length = lengths.next().map_or(rest.len(), |&length| usize::from(length.max(1)));
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            (!piece.is_empty()).then_some(piece)
        });
        crate::lean::ingest_connection(pieces)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_makes_sense() {
        super::Line::command().debug_assert();
    }
}
