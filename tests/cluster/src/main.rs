//! Three real nodes, over a real PostgreSQL or by themselves, with clients on all of them and
//! injected faults.
//!
//! The answers to clients are recorded as a history and compared with the log, with SQL, and by an
//! independent checker (`judge`, a Go program). `README.md` explains how to run it and what is
//! checked.

#![allow(clippy::disallowed_methods)]

mod arguments;
mod checks;
mod clients;
mod cluster;
mod dice;
mod faults;
mod history;
mod http;
mod node;
mod outages;
mod plant;
mod postgres;
mod proxy;
mod trial;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(told) => {
            eprintln!("{told}");
            return ExitCode::from(2);
        }
    };
    match trial::run(&arguments) {
        Ok(trial::Verdict::Holds) => ExitCode::SUCCESS,
        Ok(trial::Verdict::Broken) => ExitCode::from(1),
        Err(error) => {
            eprintln!("cluster: the trial could not be held: {error}");
            ExitCode::from(2)
        }
    }
}
