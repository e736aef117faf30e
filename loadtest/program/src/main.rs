//! The program `wellspring-bench`: the load tester on the command line.
//!
//! Everything that measures, judges and renders is in the crate `wellspring-load`;
//! here are the options, the files, and what a person sees meanwhile.

#![forbid(unsafe_code)]

#[macro_use] // before all that say something
mod stderr;

mod called;
mod colour;
mod command;
mod compare;
mod exit;
mod finish;
mod help;
mod interrupt;
mod ladder;
mod live;
mod manual;
mod offline;
mod one;
mod options;
mod outcome;
mod quantity;
mod scenario;
mod search;
mod token_file;
mod trust;
mod turns;
mod typed;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    interrupt::survive_file_limit();
    command::main()
}
