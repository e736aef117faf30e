//! Access against a fold that keeps every event and searches all of them for every answer.

mod decisions;
mod keys;
mod oracle;
mod properties;

use wellspring_host::access::view::PasswordHash;
use wellspring_host::identity::{AccountName, Grant, Grants, KeyId, Label, Role};
use wellspring_host::view::contract::LogEvent;
use wellspring_types::{Event, Position};

/// An event as a log stores it.
#[derive(Debug, Clone)]
struct Entry {
    position: Position,
    at_us: u64,
    event: Event,
}

impl LogEvent for Entry {
    fn position(&self) -> Position {
        self.position
    }

    fn recorded_at_us(&self) -> u64 {
        self.at_us
    }

    fn event_type(&self) -> &str {
        &self.event.event_type
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.event.tags.iter().map(String::as_str)
    }

    fn data(&self) -> &[u8] {
        &self.event.data
    }
}

fn name(text: &str) -> AccountName {
    AccountName::parse(text).expect("a name")
}

fn key_id(text: &str) -> KeyId {
    KeyId::parse(text).expect("an id")
}

fn label() -> Label {
    Label::parse("a key").expect("a label")
}

fn hash(n: u8) -> PasswordHash {
    PasswordHash::new(&format!("$argon2id${n}")).expect("a hash")
}

fn admin() -> Grants {
    Grants::from(Grant::everywhere(Role::Admin))
}

fn reader() -> Grants {
    Grants::from(Grant::everywhere(Role::Reader))
}
