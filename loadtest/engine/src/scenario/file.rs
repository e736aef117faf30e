//! A scenario: what users do, read from a file.

use super::error::ScenarioError;
use super::names::{Names, Scope};
use super::plan::{Body, GivenBy, HeaderPlan, RequestPlan, Step};
use super::read::{self, Files};
use super::run::ScenarioSource;
use super::setup::{Setup, SetupValues};
use super::statuses::Statuses;
use super::template::{Place, Template};
use super::{data::Table, parts};
use crate::workload::OwnedRequest;
use std::fmt::Write as _;
use std::path::Path;

/// The clock of the system, in nanoseconds since 1970 UTC: handed in by whoever owns it.
pub type UnixClock = fn() -> u64;

/// A scenario, checked and compiled. The format is described in `docs/bench/scenarios.md`.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(crate) name: String,
    pub(crate) base: Option<String>,
    pub(crate) think_us: (u64, u64),
    pub(crate) load: Suggested,
    pub(crate) names: Names,
    pub(crate) tables: Vec<Table>,
    pub(crate) setup: Vec<RequestPlan>,
    pub(crate) steps: Vec<Step>,
    pub(crate) teardown: Vec<RequestPlan>,
}

/// The load that a scenario's author thinks fit; the command line may say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Suggested {
    /// Users at a time (closed loop) or connections (open loop).
    pub users: Option<u32>,
    /// Requests a second: makes it an open loop.
    pub rate_per_s: Option<f64>,
    /// Length of the measured part, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Length of the warm-up, in milliseconds.
    pub warmup_ms: Option<u64>,
}

/// What a scenario takes from outside its file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Variables that replace those of `[vars]`; a name that is not there is an error.
    pub vars: Vec<(String, String)>,
    /// Header fields of every request to the server that is measured, as they are. They come
    /// before those of `[headers]` and `[login]`; a request's own field of the same name comes
    /// before them. Requests to other servers do not get them.
    pub headers: Vec<(String, String)>,
    /// The value of `Authorization`, used like `headers`; no part of the workload's identity.
    pub authorization: Option<String>,
    /// Looks up an environment variable.
    pub environment: fn(&str) -> Option<String>,
}

impl Default for Options {
    /// No variables and header fields; the environment of the process.
    fn default() -> Self {
        Options {
            vars: Vec::new(),
            headers: Vec::new(),
            authorization: None,
            environment: |name| std::env::var(name).ok(),
        }
    }
}

/// The largest scenario file: 16 MiB.
const MOST_BYTES: u64 = 16 << 20;

impl Scenario {
    /// Reads a scenario file and the data files it names.
    ///
    /// # Errors
    /// [`ScenarioError`] names the file, the line, the key and what is expected there.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        Self::load_with(path, &Options::default())
    }

    /// The same with variables given from outside.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn load_with(path: &Path, options: &Options) -> Result<Self, ScenarioError> {
        let bytes = read::read_file(path, MOST_BYTES)
            .map_err(|why| ScenarioError::new("", why).in_file(path))?;
        let text = String::from_utf8(bytes)
            .map_err(|error| ScenarioError::new("", format!("not UTF-8: {error}")).in_file(path))?;
        Self::parse(&text, path, options)
    }

    /// Reads the text of a scenario; `path` is where it would stand: files it names are looked for
    /// beside it.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, path: &Path, options: &Options) -> Result<Self, ScenarioError> {
        read::scenario(text, &Files::beside(path), options).map_err(|error| error.in_file(path))
    }

    /// A scenario of one request whose path, headers and body may hold placeholders
    /// (`bench URL --template`). Variables are looked up in `vars`.
    ///
    /// # Errors
    /// [`ScenarioError`] names the part that is wrong.
    pub fn of_request(
        request: &OwnedRequest,
        expected: Statuses,
        vars: &[(String, String)],
    ) -> Result<Self, ScenarioError> {
        let mut names = Names { vars: vars.to_vec(), ..Names::default() };
        let wrong = |part: &str, why: String| ScenarioError::new(part, why);
        let method =
            parts::method(&request.method).map_err(|why| wrong("method", why.to_string()))?;
        let mut headers = Vec::new();
        for (name, value) in &request.headers {
            let place = format!("header {name:?}");
            headers.push(HeaderPlan {
                name: parts::header_name(name).map_err(|why| wrong(&place, why.to_string()))?,
                value: Template::compile(value, Place::Header, &mut names, Scope::Measured)
                    .and_then(|value| parts::header_value(&value.probe()).map(|()| value))
                    .map_err(|why| wrong(&place, why.to_string()))?,
                given_by: GivenBy::Request,
            });
        }
        let sends_json = request.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-type") && value.to_ascii_lowercase().contains("json")
        });
        let place = if sends_json { Place::Json } else { Place::Plain };
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) => Body::Text(
                Template::compile(text, place, &mut names, Scope::Measured)
                    .map_err(|why| wrong("body", why.to_string()))?,
            ),
            Err(_) => Body::Bytes(request.body.clone()),
        };
        let path = Template::compile(&request.path, Place::Path, &mut names, Scope::Measured)
            .and_then(|path| parts::path(&path.probe()).map(|()| path))
            .map_err(|why| wrong("path", why.to_string()))?;
        let name = format!("{method} {}", request.path.split('?').next().unwrap_or_default());
        let request = RequestPlan {
            name: name.clone(),
            method,
            origin: None,
            path,
            headers,
            body,
            expected,
            checks: Vec::new(),
            captures: Vec::new(),
            repeat: 1,
        };
        let step = Step { weight: 1, requires: vec![], lets: vec![], requests: vec![request] };
        Ok(Scenario {
            name,
            base: None,
            think_us: (0, 0),
            load: Suggested::default(),
            names,
            tables: Vec::new(),
            setup: Vec::new(),
            steps: vec![step],
            teardown: Vec::new(),
        })
    }

    /// What it is called: `name` in the file, otherwise the file's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server it is meant for, e.g. `http://127.0.0.1:4000`, if the file says.
    #[must_use]
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// Shortest and longest time that a user thinks between requests, in
    /// microseconds: belongs into [`crate::plan::Load::Closed`].
    #[must_use]
    pub fn think_us(&self) -> (u64, u64) {
        self.think_us
    }

    /// The load its author thinks fit.
    #[must_use]
    pub fn suggested(&self) -> Suggested {
        self.load
    }

    /// What it does, for people: setup, steps with their weights, think time, suggested load.
    #[must_use]
    pub fn outline(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("{}\n", self.name);
        let once = |text: &mut String, what: &str, requests: &[RequestPlan]| {
            for request in requests {
                let _ = writeln!(text, "  {what}  {} {}", request.method, request.name);
            }
        };
        once(&mut text, "setup   ", &self.setup);
        let all: u32 = self.steps.iter().map(|step| step.weight).sum();
        for step in &self.steps {
            let share = 100.0 * f64::from(step.weight) / f64::from(all.max(1));
            let names: Vec<String> = step
                .requests
                .iter()
                .map(|request| format!("{} {}", request.method, request.name))
                .collect();
            let _ = writeln!(text, "  {share:5.1}%   {}", names.join(", then "));
        }
        once(&mut text, "teardown", &self.teardown);
        let (low_us, high_us) = self.think_us;
        if high_us > 0 {
            let (low, high) = (low_us as f64 / 1e3, high_us as f64 / 1e3);
            let _ = writeln!(text, "  users think {low} to {high} ms between requests");
        }
        let Suggested { users, rate_per_s, duration_ms, .. } = self.load;
        let mut load: Vec<String> = Vec::new();
        load.extend(users.map(|users| format!("{users} users")));
        load.extend(rate_per_s.map(|rate| format!("{rate} requests a second")));
        load.extend(duration_ms.map(|ms| format!("{} s", ms as f64 / 1e3)));
        if !load.is_empty() {
            let _ = writeln!(text, "  suggested load: {}", load.join(", "));
        }
        text
    }

    /// The requests to be sent once before measuring. `seed` is the one of the run.
    #[must_use]
    pub fn setup(&self, seed: u64, clock: UnixClock) -> Setup {
        Setup::before(self, seed, clock)
    }

    /// The requests to be sent once after measuring.
    #[must_use]
    pub fn teardown(&self, values: &SetupValues, seed: u64, clock: UnixClock) -> Setup {
        Setup::after(self, values, seed, clock)
    }

    /// The measured requests, with what setup captured put in.
    ///
    /// # Errors
    /// If every step has weight 0, or a value is missing because setup was not run to its end.
    pub fn source(
        &self,
        values: &SetupValues,
        clock: UnixClock,
    ) -> Result<ScenarioSource, ScenarioError> {
        ScenarioSource::new(self, values, clock)
    }

    /// First values of the counters.
    pub(crate) fn counter_starts(&self) -> Vec<u64> {
        self.names.counters.iter().map(|counter| counter.start.unwrap_or(0)).collect()
    }

    /// Everything that makes a difference to what is sent and checked while measuring.
    /// Values that setup captures are left out: a token differs each time.
    pub(crate) fn identity(&self) -> Vec<u8> {
        let mut text = format!("scenario {:?}\n", self.name);
        let mut line = |line: std::fmt::Arguments<'_>| {
            text.write_fmt(line).expect("writing to a String does not fail");
            text.push('\n');
        };
        for counter in &self.names.counters {
            line(format_args!("counter {:?} {:?}", counter.name, counter.start));
        }
        for slot in &self.names.slots {
            line(format_args!("slot {:?} {:?}", slot.name, slot.keep));
        }
        for ((name, columns), table) in self.names.data.iter().zip(&self.tables) {
            let mut hash = super::distinct::Hash::new(0);
            table.cells().iter().for_each(|cell| hash.add(cell.as_bytes()));
            let (order, rows) = (table.order, hash.finish());
            line(format_args!("data {name:?} {columns:?} {order:?} {rows:016x}"));
        }
        for step in self.steps.iter().filter(|step| step.weight > 0) {
            let _ = writeln!(text, "step {} {:?}", step.weight, step.requires);
            for (slot, template) in &step.lets {
                let _ = writeln!(text, "let {slot} {template}");
            }
            step.requests.iter().for_each(|request| request.describe(&mut text));
        }
        text.into_bytes()
    }
}
