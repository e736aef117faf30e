//! Tests of projections' public interface: requests in, answers out.

mod answers;
mod bounds;
mod counted;
mod oracle;
mod requests;

use serde_json::Value;
use wellspring_face_events::view::{FoldEvent, Projections};
use wellspring_json::{Fault, FaultKind};

/// What a fault comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Malformed {
        line: usize,
        column: usize,
    },
    WrongType,
    UnknownField,
    Missing,
    Duplicate,
    Beside,
    Rule,
    /// 413.
    Limit {
        limit: u64,
    },
    /// 422.
    QueryLimit {
        limit: u64,
    },
}

fn class(fault: &Fault, document: &[u8]) -> Class {
    match fault.kind {
        FaultKind::Syntax(_) => {
            let (line, column) = fault.line_and_column(document);
            Class::Malformed { line, column }
        }
        FaultKind::WrongType { .. } => Class::WrongType,
        FaultKind::Unknown(_) => Class::UnknownField,
        FaultKind::Missing => Class::Missing,
        FaultKind::Duplicate => Class::Duplicate,
        FaultKind::Beside(_) => Class::Beside,
        FaultKind::Rule(_) => Class::Rule,
        FaultKind::TooDeep => Class::Limit { limit: wellspring_json::MAX_DEPTH as u64 },
        FaultKind::TooLarge { limit, .. } => Class::Limit { limit },
        FaultKind::TooCostly { limit, .. } => Class::QueryLimit { limit },
    }
}

/// An event to fold, owned.
#[derive(Debug, Clone)]
struct Fact {
    event_type: String,
    tags: Vec<String>,
    data: Vec<u8>,
    is_json: bool,
}

impl Fact {
    fn json(event_type: &str, tags: &[&str], data: &str) -> Fact {
        Fact {
            event_type: event_type.to_owned(),
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            data: data.as_bytes().to_vec(),
            is_json: true,
        }
    }
}

/// 2026-11-28T23:50:00Z.
const RECORDED_FROM_US: u64 = 1_795_909_800_000_000;

/// Folds `facts` as positions 1, 2, … and gives the answer's text.
fn run(body: &str, facts: &[Fact]) -> Result<String, Box<Fault>> {
    let mut projections = Projections::parse(body.as_bytes())?;
    for (i, fact) in facts.iter().enumerate() {
        let tags: Vec<&str> = fact.tags.iter().map(String::as_str).collect();
        projections.fold(&FoldEvent {
            position: i as u64 + 1,
            event_type: &fact.event_type,
            tags: &tags,
            data: &fact.data,
            is_json: fact.is_json,
            // Twenty minutes apart, from ten to midnight.
            recorded_at_us: RECORDED_FROM_US + i as u64 * 1_200_000_000,
        });
    }
    projections.finish(facts.len() as u64).map(|answer| String::from_utf8(answer).unwrap())
}

/// The state of one projection over all events with this reducer and these additional members
/// (`,"init":…`), as text.
fn state(reduce: &str, more: &str, facts: &[Fact]) -> Result<String, Box<Fault>> {
    let body =
        format!(r#"{{"projections":{{"p":{{"query":{{"items":[]}},"reduce":{reduce}{more}}}}}}}"#);
    let answer = run(&body, facts)?;
    let rest = answer.strip_prefix(r#"{"states":{"p":"#).expect("one state");
    let end = rest.rfind(r#"},"position":"#).expect("a position");
    Ok(rest[..end].to_owned())
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault} in {text}"))
}
