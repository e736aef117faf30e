//! A view for tests: links with chosen, counted and derived codes, as the face of links has them,
//! without its rules.

use super::contract::packed::{Input, put, put_bytes};
use super::contract::{Decision, LogEvent, SnapshotFault, Ticket, View};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use wellspring_types::{Event, Query, QueryItem};

/// At most 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code([u8; 16]);

pub(super) fn code(text: &str) -> Code {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    Code(bytes)
}

impl Code {
    fn counted(number: usize) -> Code {
        code(&format!("n{number}"))
    }

    fn derived(url: &str) -> Code {
        let number = url.bytes().fold(0_u64, |hash, byte| hash * 31 % (1 << 40) + u64::from(byte));
        code(&format!("d{number:x}"))
    }

    fn of_tag(tag: &str) -> Option<Code> {
        tag.strip_prefix("link:").filter(|text| text.len() <= 16).map(code)
    }

    fn tag(self) -> String {
        format!("link:{self}")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).expect("UTF-8").trim_end_matches('\0'))
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Naming {
    Automatic,
    /// The same URL has the same link.
    Deterministic,
    Alias(Code),
}

pub(super) enum Command {
    Create { url: String, naming: Naming },
    Change { code: Code, url: String },
    Delete { code: Code },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Created(Code),
    Existing(Code),
    Changed(Code),
    Deleted(Code),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    AliasTaken(Code),
    Unknown(Code),
}

/// Where each code leads; `None` for a deleted link.
type Targets = BTreeMap<Code, Option<String>>;

#[derive(Default)]
pub(super) struct Folded {
    targets: Mutex<Targets>,
}

impl Folded {
    pub(super) fn url(&self, code: Code) -> Option<String> {
        self.targets.lock().unwrap().get(&code).cloned().flatten()
    }

    pub(super) fn count(&self) -> usize {
        self.targets.lock().unwrap().len()
    }

    pub(super) fn list(&self) -> Targets {
        self.targets.lock().unwrap().clone()
    }
}

#[derive(Default)]
pub(super) struct Links(Arc<Folded>);

/// What an event does to a link.
fn effect(event_type: &str, code: Code, data: &[u8]) -> Option<(Code, Option<String>)> {
    let url = || {
        let value: serde_json::Value = serde_json::from_slice(data).ok()?;
        Some(value["url"].as_str()?.to_owned())
    };
    match event_type {
        "LinkCreated" | "LinkChanged" => Some((code, Some(url()?))),
        "LinkDeleted" => Some((code, None)),
        _ => None,
    }
}

fn code_of<'a>(mut tags: impl Iterator<Item = &'a str>) -> Option<Code> {
    tags.find_map(Code::of_tag)
}

fn written(event_type: &str, code: Code, url: &str) -> Event {
    Event::json(event_type, &[&code.tag()], &format!(r#"{{"url":"{url}"}}"#))
}

/// The effects of decisions that are not folded, in their order.
type Staged = Vec<(Ticket, Code, Option<String>)>;

impl View for Links {
    const NAME: &'static str = "links";
    const VERSION: u32 = 1;
    type Folded = Folded;
    type Staged = Staged;
    type Command = Command;
    type Context = ();
    type Outcome = Outcome;
    type Refusal = Refusal;

    fn new() -> Links {
        Links::default()
    }

    fn query() -> Query {
        let types = ["LinkCreated", "LinkChanged", "LinkDeleted"].map(str::to_owned).to_vec();
        Query { items: vec![QueryItem { types, tags: Vec::new() }] }
    }

    fn folded(&self) -> &Arc<Folded> {
        &self.0
    }

    fn apply(&mut self, event: &impl LogEvent) {
        let Some(code) = code_of(event.tags()) else { return };
        let Some((code, url)) = effect(event.event_type(), code, event.data()) else { return };
        let mut targets = self.0.targets.lock().unwrap();
        match (event.event_type(), targets.get_mut(&code)) {
            ("LinkCreated", None) => _ = targets.insert(code, url),
            ("LinkChanged" | "LinkDeleted", Some(target)) if target.is_some() => *target = url,
            _ => {}
        }
    }

    fn outcome(event: &impl LogEvent) -> Option<Outcome> {
        let code = code_of(event.tags())?;
        Some(match event.event_type() {
            "LinkCreated" => Outcome::Created(code),
            "LinkFound" => Outcome::Existing(code),
            "LinkChanged" => Outcome::Changed(code),
            "LinkDeleted" => Outcome::Deleted(code),
            _ => return None,
        })
    }

    fn remember(outcome: &Outcome) -> Option<Event> {
        let Outcome::Existing(code) = outcome else { return None };
        Some(Event::json("LinkFound", &[&code.tag()], "{}"))
    }

    fn decide(
        folded: &Folded,
        staged: &Staged,
        (): &(),
        command: &Command,
    ) -> Result<Decision<Outcome>, Refusal> {
        let known = |code: Code| {
            let newest = staged.iter().rev().find(|(_, of, _)| *of == code);
            let newest = newest.map(|(_, _, url)| url.clone());
            newest.or_else(|| folded.targets.lock().unwrap().get(&code).cloned())
        };
        let decided = |event_type, code: Code, url: &str, outcome| {
            let unless = vec![QueryItem { types: Vec::new(), tags: vec![code.tag()] }];
            Decision { events: vec![written(event_type, code, url)], unless, outcome }
        };
        match command {
            Command::Create { url, naming } => {
                let code = match naming {
                    Naming::Automatic => {
                        let least = folded.count() + staged.len();
                        let mut codes = (least..).map(Code::counted);
                        codes.find(|code| known(*code).is_none()).expect("a free code")
                    }
                    Naming::Deterministic => Code::derived(url),
                    Naming::Alias(code) => *code,
                };
                match (known(code), naming) {
                    (None, _) => Ok(decided("LinkCreated", code, url, Outcome::Created(code))),
                    (Some(_), Naming::Alias(_)) => Err(Refusal::AliasTaken(code)),
                    (Some(_), _) => Ok(Decision {
                        events: Vec::new(),
                        unless: Vec::new(),
                        outcome: Outcome::Existing(code),
                    }),
                }
            }
            Command::Change { code, .. } | Command::Delete { code }
                if known(*code).flatten().is_none() =>
            {
                Err(Refusal::Unknown(*code))
            }
            Command::Change { code, url } => {
                Ok(decided("LinkChanged", *code, url, Outcome::Changed(*code)))
            }
            Command::Delete { code } => {
                Ok(decided("LinkDeleted", *code, "", Outcome::Deleted(*code)))
            }
        }
    }

    fn stage(staged: &mut Staged, decision: &Decision<Outcome>, ticket: Ticket) {
        staged.extend(decision.events.iter().filter_map(|event| {
            let code = code_of(event.tags.iter().map(String::as_str))?;
            let (code, url) = effect(&event.event_type, code, &event.data)?;
            Some((ticket, code, url))
        }));
    }

    fn settle(staged: &mut Staged, ticket: Ticket) {
        staged.retain(|(of, _, _)| *of != ticket);
    }

    fn encode(folded: &Folded, out: &mut impl io::Write) -> io::Result<()> {
        let targets = folded.list();
        put(out, targets.len() as u64)?;
        for (code, url) in targets {
            out.write_all(&code.0)?;
            put(out, u64::from(url.is_some()))?;
            put_bytes(out, url.unwrap_or_default().as_bytes())?;
        }
        Ok(())
    }

    fn decode(input: &mut impl io::Read) -> Result<Links, SnapshotFault> {
        let mut input = Input::of(input);
        let mut targets = Targets::new();
        for _ in 0..input.length()? {
            let mut code = [0; 16];
            input.fill(&mut code)?;
            let is_there = input.number()? == 1;
            let url = String::from_utf8(input.bytes()?);
            let url = url.map_err(|_| SnapshotFault::Malformed("no text"))?;
            targets.insert(Code(code), is_there.then_some(url));
        }
        Ok(Links(Arc::new(Folded { targets: Mutex::new(targets) })))
    }
}
