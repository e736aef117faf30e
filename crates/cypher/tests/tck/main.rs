//! The openCypher Technology Compatibility Kit: every scenario of the language's own tests.
//!
//! The features come with the package `open-cypher`, which is locked and never compiled.
//! `known_failures.txt` names the scenarios that fail. The list may only shrink: a failing scenario
//! that is not on it fails the run, and so does a passing one that is. `TCK_BLESS=1` rewrites the
//! list. Arguments select the scenarios whose names contain one of them, and show why they fail.

mod actual;
mod gherkin;
mod kit;
mod procedure;
mod report;
mod scenario;
mod statement;
mod step;
mod value;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    gherkin::check();
    value::check();
    let kit = kit::folder();
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut cases = kit::cases(&kit.join("features"));
    cases.retain(|case| wanted.is_empty() || wanted.iter().any(|name| case.name.contains(name)));
    let (cases, graphs) = (cases.leak(), Box::leak(kit.join("graphs").into_boxed_path()));
    let outcomes = worker::run_all(cases, graphs);
    report::report(cases, &outcomes, !wanted.is_empty())
}
