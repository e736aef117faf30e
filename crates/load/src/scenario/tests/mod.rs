//! Scenarios as their authors see them: a text goes in, requests come out.

mod behaviour;
mod errors;
mod outside;
mod ready_made;

use super::*;
use crate::workload::{Answer, Head, Judgement, Next, Source, Workload};
use std::borrow::Cow;
use std::path::Path;

/// 2026-11-21T01:30:56.517796090Z
pub(super) const NOW_NS: u64 = 1_795_224_656_517_796_090;

pub(super) fn clock() -> u64 {
    NOW_NS
}

pub(super) fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    let options = Options { environment: |_| None, ..Options::default() };
    Scenario::parse(text, Path::new("folder/test.toml"), &options)
}

pub(super) fn source(text: &str) -> ScenarioSource {
    parse(text).unwrap().source(&SetupValues::default(), clock).unwrap()
}

/// A request as HTTP/1.1 would write it, without `Host` and `Content-Length`.
pub(super) fn next(workload: &mut dyn Workload, user: u32) -> String {
    match workload.next(user) {
        Next::Send(request) => {
            let mut text = format!("{} {}\n", request.method, request.path);
            for (name, value) in request.headers {
                text.push_str(&format!("{name}: {value}\n"));
            }
            text.push_str(&format!("\n{}", String::from_utf8_lossy(request.body)));
            text
        }
        Next::Failed { endpoint } => format!("failed {endpoint}"),
        Next::Done => "done".into(),
    }
}

/// The path of the next request.
pub(super) fn path(workload: &mut dyn Workload, user: u32) -> String {
    let request = next(workload, user);
    let line = request.lines().next().unwrap_or_default();
    line.split(' ').nth(1).unwrap_or(line).to_owned()
}

pub(super) fn answer(
    workload: &mut dyn Workload,
    user: u32,
    status: u16,
    headers: &[(&'static str, &'static str)],
    body: &str,
) -> Judgement {
    let head = headers.iter().map(|(n, v)| (Cow::Borrowed(*n), Cow::Borrowed(*v))).collect();
    workload.judge(
        user,
        &Answer {
            endpoint: 0,
            status,
            head: Head(head),
            body: body.as_bytes(),
            body_bytes: body.len() as u64,
        },
    )
}
