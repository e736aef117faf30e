//! What differs between two reports, and what that means for comparing them (check C11).

use crate::plan::{Load, Settings};
use crate::result::{Environment, Report};
use serde::{Deserialize, Serialize};

/// Something that is not the same in both reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// What, e.g. `connections` or `kernel`.
    pub what: String,
    /// The step it concerns; `None` for the whole report.
    pub step: Option<String>,
    /// As it was for A.
    pub a: String,
    /// As it was for B.
    pub b: String,
    /// What it means.
    pub weight: Weight,
}

/// What a difference means for a comparison, from harmless to fatal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// It may be what is being compared: revision, server, address.
    WhatDiffers,
    /// Machine or client differ: the cause of a difference is no longer known.
    Environment,
    /// Another load: the figures answer different questions.
    Settings,
}

/// Everything that differs, settings of each pair of steps first, then the
/// environment, then what may be the subject of the comparison. Steps are
/// matched as [`super::compare_reports`] matches them.
#[must_use]
pub fn mismatches(a: &Report, b: &Report) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for (step_a, step_b) in super::matched_steps(a, b) {
        steps(&step_a.settings, &step_b.settings, &step_a.name, &mut found);
        if step_a.name != step_b.name {
            let name = Some(step_a.name.clone());
            let (a, b) = (step_a.name.clone(), step_b.name.clone());
            let weight = Weight::WhatDiffers;
            found.push(Mismatch { what: "name of the step".into(), step: name, a, b, weight });
        }
    }
    environments(&a.environment, &b.environment, &mut found);
    // Equal settings first, what may differ last; the order within is that of the fields.
    found.sort_by_key(|mismatch| std::cmp::Reverse(mismatch.weight));
    found
}

/// The settings that must be the same before figures are compared, as names and
/// values for people. Two runs with equal lists offered the same load.
#[must_use]
pub fn comparable_settings(settings: &Settings) -> Vec<(&'static str, String)> {
    let stop = settings.stop;
    vec![
        ("workload", settings.workload_hash.clone()),
        ("load", load_text(&settings.load)),
        ("connections", settings.connections.to_string()),
        ("streams", settings.streams.to_string()),
        ("protocol", protocol_text(settings)),
        ("keep-alive", on_off(settings.keep_alive)),
        ("requests", stop.requests.map_or("no limit".into(), |count| count.to_string())),
        ("duration", stop.duration_ms.map_or("no limit".into(), milliseconds)),
        ("warm-up", milliseconds(settings.warmup_ms)),
        ("timeout", milliseconds(settings.timeout_ms)),
    ]
}

fn steps(a: &Settings, b: &Settings, step: &str, found: &mut Vec<Mismatch>) {
    let step = Some(step);
    for ((what, in_a), (_, in_b)) in comparable_settings(a).into_iter().zip(comparable_settings(b))
    {
        note(found, what, step, [&in_a, &in_b], Weight::Settings);
    }
    let client = [
        ("workers", a.workers.to_string(), b.workers.to_string()),
        ("phases measured", on_off(a.phases), on_off(b.phases)),
        ("spinning workers", on_off(a.spin), on_off(b.spin)),
    ];
    for (what, in_a, in_b) in client {
        note(found, what, step, [&in_a, &in_b], Weight::Environment);
    }
    let subject = [
        ("url", a.url.clone(), b.url.clone()),
        ("workload's name", a.workload.clone(), b.workload.clone()),
        ("seed", a.seed.to_string(), b.seed.to_string()),
    ];
    for (what, in_a, in_b) in subject {
        note(found, what, step, [&in_a, &in_b], Weight::WhatDiffers);
    }
}

fn environments(a: &Environment, b: &Environment, found: &mut Vec<Mismatch>) {
    for ((what, in_a), (_, in_b)) in machine(a).into_iter().zip(machine(b)) {
        note(found, what, None, [&in_a, &in_b], Weight::Environment);
    }
    let subject = [
        ("target", a.target.clone(), b.target.clone()),
        ("git revision", known(a.git_revision.as_ref()), known(b.git_revision.as_ref())),
        ("server", known(a.server.header.as_ref()), known(b.server.header.as_ref())),
        ("protocol spoken", known(a.server.protocol.as_ref()), known(b.server.protocol.as_ref())),
        ("server's program", known(a.server.program.as_ref()), known(b.server.program.as_ref())),
        (
            "server's build (SHA-256)",
            known(a.server.program_sha256.as_ref()),
            known(b.server.program_sha256.as_ref()),
        ),
        ("notes", notes(a), notes(b)),
    ];
    for (what, in_a, in_b) in subject {
        note(found, what, None, [&in_a, &in_b], Weight::WhatDiffers);
    }
}

/// What makes the machine and the client, as names and values for people. Two
/// reports with equal lists were measured under the same conditions, as far as is known.
#[must_use]
pub fn machine(environment: &Environment) -> Vec<(&'static str, String)> {
    let allowed: Vec<String> = environment.allowed_cpus.iter().map(u32::to_string).collect();
    let local = environment
        .target_is_local
        .map(|local| if local { "the client's own machine" } else { "another machine" }.to_owned());
    vec![
        ("processor", known(environment.cpu_model.as_ref())),
        ("processors", known(environment.cpus.as_ref())),
        (
            "allowed processors",
            if allowed.is_empty() { "unknown".into() } else { allowed.join(",") },
        ),
        ("cgroup limit", environment.cgroup_cpu_limit.clone().unwrap_or("none".into())),
        ("governor", known(environment.governor.as_ref())),
        ("kernel", known(environment.kernel.as_ref())),
        ("memory in bytes", known(environment.memory_bytes.as_ref())),
        ("client", environment.client_version.clone()),
        ("where the server runs", known(local.as_ref())),
    ]
}

fn note(
    found: &mut Vec<Mismatch>,
    what: &str,
    step: Option<&str>,
    [a, b]: [&String; 2],
    weight: Weight,
) {
    if a != b {
        let (a, b) = (a.clone(), b.clone());
        found.push(Mismatch { what: what.into(), step: step.map(str::to_owned), a, b, weight });
    }
}

fn known(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "unknown".into(), ToString::to_string)
}

fn notes(environment: &Environment) -> String {
    let lines: Vec<String> =
        environment.notes.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if lines.is_empty() { "none".into() } else { lines.join(", ") }
}

fn on_off(value: bool) -> String {
    if value { "on" } else { "off" }.into()
}

fn milliseconds(ms: u64) -> String {
    if ms > 0 && ms.is_multiple_of(1_000) {
        format!("{} s", ms / 1_000)
    } else {
        format!("{ms} ms")
    }
}

fn protocol_text(settings: &Settings) -> String {
    match settings.protocol {
        crate::plan::Protocol::Http1 => "HTTP/1.1".into(),
        crate::plan::Protocol::Http2 => "HTTP/2".into(),
    }
}

/// The load in words, e.g. `closed loop` or `open loop, 500/s, poisson`.
fn load_text(load: &Load) -> String {
    match load {
        Load::Closed { think_min_us: 0, think_max_us: 0 } => "closed loop".into(),
        Load::Closed { think_min_us, think_max_us } => {
            format!("closed loop, thinking {think_min_us}…{think_max_us} µs")
        }
        Load::Open { rate_per_s, arrivals } => {
            let arrivals = match arrivals {
                crate::plan::Arrivals::Constant => "constant",
                crate::plan::Arrivals::Poisson => "poisson",
            };
            format!("open loop, {rate_per_s}/s, {arrivals}")
        }
    }
}
