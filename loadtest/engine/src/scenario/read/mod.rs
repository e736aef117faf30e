//! From the text of a scenario file to a compiled scenario.

mod body;
mod expect;
mod files;
mod names;
mod request;

pub(crate) use files::{Files, read as read_file};
pub(crate) use request::origin_of;

use super::check::{Capture, CaptureSource};
use super::document::{self, Fields, Kind, Node};
use super::error::ScenarioError;
use super::file::{Options, Scenario, Suggested};
use super::names::{Names, Scope};
use super::plan::{GivenBy, HeaderPlan, RequestPlan, Step};
use super::pointer::Pointer;
use super::quantity;
use super::template::{Place, Template};
use crate::invalid::Invalid;

/// The most steps, and the most requests of a flow.
const MOST_STEPS: usize = 1_000;
/// The most repetitions of a setup request.
const MOST_REPEATS: i64 = 1_000_000;

/// Reads what is there, part by part.
struct Reader<'d> {
    names: Names,
    files: &'d Files,
    /// Given from outside the file.
    outer_headers: Vec<HeaderPlan>,
    default_headers: &'d [(String, Node)],
    /// What `[login]` adds to every request.
    login_header: Option<HeaderPlan>,
}

/// Reads a scenario.
pub(crate) fn scenario(
    text: &str,
    files: &Files,
    options: &Options,
) -> Result<Scenario, ScenarioError> {
    let root = document::parse(text)?;
    let mut top = Fields::of(&root, "")?;
    let name = top.text("name")?.unwrap_or(files.stem()).to_owned();
    top.text("description")?;
    let base = base(&mut top)?;
    let think_us = match top.text("think")? {
        Some(text) => {
            quantity::range_us(text).map_err(|why| named(&root, "think", why.to_string()))?
        }
        None => (0, 0),
    };
    let load = suggested(&mut top)?;
    let (names, tables) = names::all(&mut top, &root, files, options)?;
    let default_headers = top.entries("headers")?;
    let outer_headers = request::outer_headers(options)?;
    let mut reader = Reader { names, files, outer_headers, default_headers, login_header: None };
    let mut setup = Vec::new();
    if let Some(node) = top.take("login") {
        let (request, header) = reader.login(node)?;
        setup.push(request);
        reader.login_header = Some(header);
    }
    for (at, node) in top.tables("setup")?.iter().enumerate() {
        setup.push(reader.around(node, "setup", at, Scope::Setup)?);
    }
    let mut steps = Vec::new();
    for (at, node) in top.tables("step")?.iter().enumerate() {
        steps.push(reader.step(node, at)?);
    }
    let mut teardown = Vec::new();
    for (at, node) in top.tables("teardown")?.iter().enumerate() {
        teardown.push(reader.around(node, "teardown", at, Scope::Teardown)?);
    }
    top.finish()?;
    if steps.is_empty() || steps.len() > MOST_STEPS {
        let message = format!("expected 1 to {MOST_STEPS} steps ([[step]]), found {}", steps.len());
        return Err(ScenarioError::new("", message));
    }
    unique_names(&steps)?;
    Ok(Scenario { name, base, think_us, load, names: reader.names, tables, setup, steps, teardown })
}

/// An error at the line of a key.
fn named(root: &Node, key: &str, why: String) -> ScenarioError {
    let line = match &root.kind {
        Kind::Table(entries) => entries.iter().find(|(there, _)| there == key),
        _ => None,
    };
    ScenarioError::at(line.map_or(root.line, |(_, node)| node.line), key, why)
}

/// Checks a base URL: scheme, host and perhaps a port.
pub(crate) fn base_url(text: &str) -> Result<String, Invalid> {
    let host = match origin_of(text) {
        Some((origin, "/")) => origin,
        Some((origin, path)) => {
            return Err(format!(
                "expected the server only, e.g. {origin:?}; {path:?} belongs into the paths of the steps"
            ).into());
        }
        None => {
            return Err(
                format!("expected a URL like \"http://127.0.0.1:4000\", found {text:?}").into()
            );
        }
    };
    let authority = host.split("//").nth(1).unwrap_or_default();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b) || !b.is_ascii();
    if authority.is_empty() || !authority.bytes().all(plain) {
        return Err(format!(
            "expected a host and perhaps a port, e.g. \"http://127.0.0.1:4000\", found {text:?}"
        )
        .into());
    }
    Ok(host.to_owned())
}

fn base(top: &mut Fields<'_>) -> Result<Option<String>, ScenarioError> {
    let Some(node) = top.take("base") else { return Ok(None) };
    let Kind::Text(text) = &node.kind else {
        let found = node.kind.what();
        return Err(top.wrong("base", node, format!("expected a URL in quotes, found {found}")));
    };
    base_url(text).map(Some).map_err(|why| top.wrong("base", node, why))
}

fn suggested(top: &mut Fields<'_>) -> Result<Suggested, ScenarioError> {
    let Some(node) = top.take("load") else { return Ok(Suggested::default()) };
    let mut fields = Fields::of(node, "load")?;
    let mut milliseconds = |key| match fields.text(key)? {
        None => Ok(None),
        Some(text) => match quantity::duration_us(text) {
            Ok(us) => Ok(Some(us / 1_000)),
            Err(why) => Err(fields.error(format!("{key}: {why}"))),
        },
    };
    let (duration_ms, warmup_ms) = (milliseconds("duration")?, milliseconds("warmup")?);
    let suggested = Suggested {
        users: fields.integer("users", 1, 1_000_000)?.and_then(|n| u32::try_from(n).ok()),
        rate_per_s: fields.positive("rate")?,
        duration_ms,
        warmup_ms,
    };
    fields.finish()?;
    Ok(suggested)
}

fn unique_names(steps: &[Step]) -> Result<(), ScenarioError> {
    let mut names: Vec<&str> =
        steps.iter().flat_map(|step| &step.requests).map(|request| request.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ScenarioError::new(
            "",
            format!(
                "two measured requests are called {:?}; give each a name of its own, by which reports list it",
                pair[0]
            ),
        )),
        None => Ok(()),
    }
}

impl Reader<'_> {
    /// A request of setup or teardown.
    fn around(
        &mut self,
        node: &Node,
        what: &str,
        at: usize,
        scope: Scope,
    ) -> Result<RequestPlan, ScenarioError> {
        let mut fields = Fields::of(node, format!("{what} {}", at + 1))?;
        let name = fields.text("name")?;
        if let Some(name) = name {
            fields.place = format!("{what} {name:?}");
        }
        let repeat = fields.integer("repeat", 1, MOST_REPEATS)?.unwrap_or(1);
        let mut request = self.request(&mut fields, scope, name)?;
        request.repeat = u32::try_from(repeat).unwrap_or(1);
        fields.finish()?;
        Ok(request)
    }

    fn step(&mut self, node: &Node, at: usize) -> Result<Step, ScenarioError> {
        let mut fields = Fields::of(node, format!("step {}", at + 1))?;
        let name = fields.text("name")?;
        if let Some(name) = name {
            fields.place = format!("step {name:?}");
        }
        let weight = fields.integer("weight", 0, 1_000_000)?.unwrap_or(1);
        let requires = self.requires(&mut fields)?;
        let lets = self.lets(&mut fields)?;
        let flow = fields.tables("request")?;
        let mut requests = Vec::new();
        if flow.is_empty() {
            requests.push(self.request(&mut fields, Scope::Measured, name)?);
        } else {
            if fields.take("path").is_some() {
                return Err(fields.error(
                    "a step is one request (with a path) or a flow ([[step.request]]), not both",
                ));
            }
            if flow.len() > MOST_STEPS {
                return Err(fields.error(format!("expected at most {MOST_STEPS} requests")));
            }
            let step = name.map_or_else(|| format!("step {}", at + 1), str::to_owned);
            for (at, node) in flow.iter().enumerate() {
                requests.push(self.flow_request(node, at, &step, &fields)?);
            }
        }
        fields.finish()?;
        Ok(Step { weight: u32::try_from(weight).unwrap_or(1), requires, lets, requests })
    }

    fn flow_request(
        &mut self,
        node: &Node,
        at: usize,
        step: &str,
        outer: &Fields<'_>,
    ) -> Result<RequestPlan, ScenarioError> {
        let mut fields = Fields::of(node, outer.inside(&format!("request {}", at + 1)))?;
        let name = fields.text("name")?;
        if let Some(name) = name {
            fields.place = outer.inside(&format!("request {name:?}"));
        }
        let full = match name {
            Some(name) => format!("{step}: {name}"),
            None => format!("{step}: {}", at + 1),
        };
        let request = self.request(&mut fields, Scope::Measured, Some(&full))?;
        fields.finish()?;
        Ok(request)
    }

    fn requires(&self, fields: &mut Fields<'_>) -> Result<Vec<u16>, ScenarioError> {
        let mut slots = Vec::new();
        for (name, line) in fields.texts("requires")? {
            let slot = self.names.slots.iter().position(|slot| slot.name == name);
            let Some(slot) = slot.and_then(|at| u16::try_from(at).ok()) else {
                let all: Vec<&str> = self.names.slots.iter().map(|s| s.name.as_str()).collect();
                let all = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
                return Err(ScenarioError::at(
                    line,
                    fields.inside("requires"),
                    format!("{name:?} is not captured by any step. Captured are: {all}"),
                ));
            };
            slots.push(slot);
        }
        Ok(slots)
    }

    fn lets(&mut self, fields: &mut Fields<'_>) -> Result<Vec<(u16, Template)>, ScenarioError> {
        let mut lets = Vec::new();
        let place = fields.inside("let");
        for (name, node) in fields.entries("let")? {
            let wrong =
                |why: Invalid| ScenarioError::at(node.line, format!("{place} {name:?}"), why);
            let Kind::Text(text) = &node.kind else {
                return Err(wrong(format!("expected a text, found {}", node.kind.what()).into()));
            };
            let template = Template::compile(text, Place::Plain, &mut self.names, Scope::Measured)
                .map_err(wrong)?;
            let slot = self.names.slots.iter().position(|slot| slot.name == *name);
            let slot = slot.and_then(|at| u16::try_from(at).ok());
            lets.push((slot.ok_or_else(|| wrong("too many names".into()))?, template));
        }
        Ok(lets)
    }

    /// `[login]`: asks for a token and adds it to every other request.
    fn login(&mut self, node: &Node) -> Result<(RequestPlan, HeaderPlan), ScenarioError> {
        let mut fields = Fields::of(node, "login")?;
        let pointer = fields.text("token")?.unwrap_or("/access_token");
        let pointer = Pointer::parse(pointer)
            .map_err(|why| ScenarioError::at(fields.line, fields.inside("token"), why))?;
        let header = fields.text("header")?.unwrap_or("authorization");
        let prefix = fields.text("prefix")?.unwrap_or("Bearer ");
        let text = format!("{}{{{{token}}}}", prefix.replace("{{", "{{'{{'}}"));
        let wrong = |why: Invalid| ScenarioError::at(node.line, "login", why);
        let header = HeaderPlan {
            name: super::parts::header_name(header).map_err(wrong)?,
            value: Template::compile(&text, Place::Header, &mut self.names, Scope::Setup)
                .map_err(wrong)?,
            given_by: GivenBy::Scenario,
        };
        super::parts::header_value(prefix).map_err(wrong)?;
        let mut request = self.request(&mut fields, Scope::Setup, Some("login"))?;
        request.captures.push(Capture {
            name: names::LOGIN_TOKEN.into(),
            source: CaptureSource::Json(pointer),
            between: None,
            optional: false,
            setup: Some(0),
            slot: None,
        });
        fields.finish()?;
        Ok((request, header))
    }

    /// Captures with their places among the values.
    fn captures(
        &mut self,
        fields: &mut Fields<'_>,
        scope: Scope,
    ) -> Result<Vec<Capture>, ScenarioError> {
        let written = expect::captures(fields)?;
        if scope == Scope::Teardown && !written.is_empty() {
            return Err(fields.error("nothing follows that could use what teardown captures"));
        }
        let place = |at: Option<usize>| at.and_then(|at| u16::try_from(at).ok());
        let mut captures = Vec::new();
        for expect::CaptureDeclaration { mut capture, keep, .. } in written {
            let slot = self.names.slots.iter().position(|slot| slot.name == capture.name);
            if scope == Scope::Setup {
                capture.setup =
                    place(self.names.setup.iter().position(|name| *name == capture.name));
                capture.slot = if keep.is_some() { place(slot) } else { None };
            } else {
                capture.slot = place(slot);
            }
            captures.push(capture);
        }
        Ok(captures)
    }
}
