//! Scenarios as their authors see them: a text goes in, requests come out.

mod behaviour;
mod errors;
mod outside;
mod ready_made;

use super::*;
pub(super) use crate::testing::{answer, clock, next};
use crate::workload::{Judgement, Next, Source, Workload};
use std::path::Path;

pub(super) fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    let options = Options { environment: |_| None, ..Options::default() };
    Scenario::parse(text, Path::new("folder/test.toml"), &options)
}

pub(super) fn source(text: &str) -> ScenarioSource {
    parse(text).unwrap().source(&SetupValues::default(), clock).unwrap()
}

/// The path of the next request.
pub(super) fn path(workload: &mut dyn Workload, user: u32) -> String {
    let request = next(workload, user);
    let line = request.lines().next().unwrap_or_default();
    line.split(' ').nth(1).unwrap_or(line).to_owned()
}
