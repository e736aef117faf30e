//! A scenario's requests, compiled.

use super::check::{Capture, CaptureSource, Check};
use super::statuses::Statuses;
use super::template::Template;
use super::value::Value;
use crate::invalid::Invalid;
use crate::workload::{Head, Needs};
use std::fmt::Write as _;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct RequestPlan {
    /// Its name in reports.
    pub(crate) name: String,
    pub(crate) method: String,
    /// Another server than the scenario's, e.g. `https://login.example`; only outside the measured
    /// part.
    pub(crate) origin: Option<String>,
    pub(crate) path: Template,
    pub(crate) headers: Vec<HeaderPlan>,
    pub(crate) body: Body,
    pub(crate) expected: Statuses,
    pub(crate) checks: Vec<Check>,
    pub(crate) captures: Vec<Capture>,
    /// Setup and teardown only: how many times it is sent.
    pub(crate) repeat: u32,
}

/// One header field.
#[derive(Clone, Debug)]
pub(crate) struct HeaderPlan {
    /// In lower case.
    pub(crate) name: String,
    pub(crate) value: Template,
    pub(crate) given_by: GivenBy,
}

/// Who gave a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenBy {
    /// The request itself, or the command line.
    Request,
    /// The scenario, for all requests: before measuring it is left out while it has no value.
    Scenario,
    /// Credentials from outside the file: no part of the workload's identity, so that two runs
    /// with other credentials are still the same workload.
    Credentials,
}

/// The body.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    Text(Template),
}

/// Something a user does: one request or several in order.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) weight: u32,
    /// Slots that must have a value.
    pub(crate) requires: Vec<u16>,
    /// Slots set when the step begins.
    pub(crate) lets: Vec<(u16, Template)>,
    /// At least one.
    pub(crate) requests: Vec<RequestPlan>,
}

/// How an answer fell short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortfall {
    /// Its status.
    Status,
    /// The check or, after the checks, the capture of this number.
    Check(usize),
}

impl RequestPlan {
    /// Everything in it that may change.
    fn templates(&self) -> impl Iterator<Item = &Template> {
        let body = match &self.body {
            Body::Text(template) => Some(template),
            Body::Bytes(_) => None,
        };
        let headers = self.headers.iter().map(|header| &header.value);
        std::iter::once(&self.path).chain(headers).chain(body)
    }

    /// The values it is made of.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.templates().flat_map(Template::values)
    }

    /// Whether it is always the same.
    pub(crate) fn is_constant(&self) -> bool {
        self.templates().all(|template| template.constant().is_some())
    }

    /// What must be kept of its answers.
    pub(crate) fn needs(&self) -> Needs {
        let head_check = |check: &Check| !check.needs_body();
        let head_capture = |capture: &Capture| matches!(capture.source, CaptureSource::Header(_));
        Needs {
            head: self.checks.iter().any(head_check) || self.captures.iter().any(head_capture),
            body: !self.checks.iter().all(head_check) || !self.captures.iter().all(head_capture),
        }
    }

    /// Judges status and checks of an answer.
    pub(crate) fn judge(&self, status: u16, head: &Head<'_>, body: &[u8]) -> Result<(), Shortfall> {
        if !self.expected.contains(status) {
            return Err(Shortfall::Status);
        }
        match self.checks.iter().position(|check| !check.holds(head, body)) {
            Some(failed) => Err(Shortfall::Check(failed)),
            None => Ok(()),
        }
    }

    /// The text of a check, or of a capture numbered after them.
    pub(crate) fn check_text(&self, check: usize) -> String {
        match self.checks.get(check) {
            Some(check) => check.to_string(),
            None => match self.captures.get(check - self.checks.len()) {
                Some(capture) => capture.to_string(),
                None => format!("check {check}"),
            },
        }
    }

    /// The same request with what setup captured put in.
    pub(crate) fn bind(&self, captured: &[Option<String>]) -> Result<Self, Invalid> {
        let mut bound = self.clone();
        bound.path = self.path.bind(captured)?;
        for header in &mut bound.headers {
            header.value = header.value.bind(captured)?;
        }
        if let Body::Text(template) = &self.body {
            bound.body = Body::Text(template.bind(captured)?);
        }
        Ok(bound)
    }

    /// Everything that makes a difference, as text: part of a workload's identity.
    pub(crate) fn describe(&self, out: &mut String) {
        let mut line = |text: std::fmt::Arguments<'_>| {
            out.write_fmt(text).expect("writing to a String does not fail");
            out.push('\n');
        };
        line(format_args!("request {:?} {} {}", self.name, self.method, self.path));
        for header in self.headers.iter().filter(|h| h.given_by != GivenBy::Credentials) {
            line(format_args!("{}: {}", header.name, header.value));
        }
        line(format_args!("expect {}", self.expected));
        self.checks.iter().for_each(|check| line(format_args!("check {check}")));
        self.captures.iter().for_each(|capture| line(format_args!("capture {capture}")));
        match &self.body {
            Body::Text(template) => line(format_args!("body {template}")),
            Body::Bytes(bytes) => {
                let mut hash = super::distinct::Hash::new(0);
                hash.add(bytes);
                line(format_args!("body of {} bytes, {:016x}", bytes.len(), hash.finish()));
            }
        }
    }
}
