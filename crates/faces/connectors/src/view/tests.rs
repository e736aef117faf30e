//! The view against the two promises of every view, and its decisions.

use super::*;
use crate::view::decide::{Action, Command, ConnectorOutcome, ConnectorRefusal};
use serde_json::json;
use wellspring_connectors::Cursor;
use wellspring_types::{Event, HistoryId};

/// An event as stored in a log.
struct LoggedEvent {
    position: u64,
    event: Event,
}

impl LogEvent for LoggedEvent {
    fn position(&self) -> u64 {
        self.position
    }

    fn recorded_at_us(&self) -> u64 {
        0
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

struct History {
    view: ConnectorView,
    events: Vec<LoggedEvent>,
}

impl History {
    fn new() -> History {
        History { view: ConnectorView::new(), events: Vec::new() }
    }

    fn append(&mut self, event: Event) {
        let event = LoggedEvent { position: self.events.len() as u64 + 1, event };
        self.view.apply(&event);
        self.events.push(event);
    }

    fn execute(
        &mut self,
        key: &ConnectorKey,
        action: Action,
    ) -> Result<ConnectorOutcome, ConnectorRefusal> {
        let command = Command { key: key.clone(), action };
        let decision = ConnectorView::decide(self.view.folded(), &(), &(), &command)?;
        decision.events.into_iter().for_each(|event| self.append(event));
        Ok(decision.outcome)
    }

    fn get(&self, key: &ConnectorKey) -> Option<Connector> {
        self.view.folded().read(|connectors| connectors.get(key).cloned())
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut out = Vec::new();
        ConnectorView::encode(self.view.folded(), &mut out).unwrap();
        out
    }
}

const FIRST: HistoryId = HistoryId(0x4f1c_09d2_a87b_4e6f);
const OTHER: HistoryId = HistoryId(0xff);

fn at(position: u64, history: HistoryId) -> StartPoint {
    StartPoint { position, history: Some(history) }
}

/// A cursor in the history that a connector has.
fn cursor(generation: u64, position: u64, history: HistoryId) -> Cursor {
    Cursor { position, anchor: 9, ..Cursor::start(generation, Some(history)) }
}

/// The first definition of a sink by a version that noted no history.
fn defined_by_an_earlier_version() -> Event {
    let data = r#"{"definition":{},"origin":"api","id":"id","start":7}"#;
    Event::json("ConnectorDefined", &["sink:a"], data)
}

fn define(url: &str, origin: Origin) -> Action {
    Action::Define { definition: json!({"url": url}), origin, id: "id".into(), start: at(7, FIRST) }
}

fn told_a_lot() -> History {
    let mut history = History::new();
    let (a, b) = (ConnectorKey::sink("a"), ConnectorKey::source("a"));
    let cursor = |generation, position| cursor(generation, position, FIRST);
    history.execute(&a, define("http://1", Origin::Api)).unwrap();
    history.execute(&b, define("http://2", Origin::Configuration)).unwrap();
    history.append(advanced(&a, cursor(1, 20)));
    history.execute(&a, Action::Skip(30)).unwrap();
    history.execute(&a, Action::Skip(40)).unwrap();
    history.append(advanced(&a, cursor(1, 35)));
    history.execute(&a, Action::Pause).unwrap();
    history.execute(&a, Action::Resume).unwrap();
    history.execute(&a, Action::Reset { start: at(3, OTHER) }).unwrap();
    history.append(advanced(&a, cursor(1, 50)));
    history.append(advanced(&a, cursor(2, 4)));
    history.execute(&b, Action::Remove { is_configured: false }).unwrap();
    history.append(advanced(&b, cursor(1, 4)));
    history.execute(&a, define("http://3", Origin::Api)).unwrap();
    history.execute(&b, define("http://4", Origin::Api)).unwrap();
    history.execute(&a, Action::Remove { is_configured: false }).unwrap();
    history.append(defined_by_an_earlier_version());
    history.execute(&a, Action::Place { history: OTHER }).unwrap();
    history.execute(&a, define("http://5", Origin::Api)).unwrap();
    history
}

#[test]
fn folding_from_any_snapshot_gives_the_same_and_folding_twice_changes_nothing() {
    let whole = told_a_lot();
    for cut in 0..=whole.events.len() {
        // A snapshot with more than its position says: everything after it is applied again.
        for again_from in 0..=cut {
            let mut history = History::new();
            whole.events[..cut].iter().for_each(|event| history.view.apply(event));
            let snapshot = history.snapshot();
            let mut view = ConnectorView::decode(&mut snapshot.as_slice()).unwrap();
            whole.events[again_from..].iter().for_each(|event| view.apply(event));
            let mut out = Vec::new();
            ConnectorView::encode(view.folded(), &mut out).unwrap();
            assert_eq!(out, whole.snapshot(), "cut at {cut}, again from {again_from}");
        }
    }
}

#[test]
fn a_reset_begins_a_generation_and_forgets_cursor_and_skips() {
    let mut history = History::new();
    let key = ConnectorKey::sink("a");
    history.execute(&key, define("http://1", Origin::Api)).unwrap();
    let cursor = cursor(1, 20, FIRST);
    history.append(advanced(&key, cursor));
    history.execute(&key, Action::Skip(30)).unwrap();
    assert_eq!(history.get(&key).unwrap().cursor(), Some(cursor));
    history.execute(&key, Action::Reset { start: at(3, OTHER) }).unwrap();
    let reset = history.get(&key).unwrap();
    assert_eq!((reset.generation, reset.start, reset.cursor()), (2, 3, None));
    assert!(reset.skip.is_empty());
    // A late cursor of the previous generation.
    history.append(advanced(&key, cursor));
    assert_eq!(history.get(&key).unwrap().cursor(), None);
}

#[test]
fn a_generation_has_one_history_and_receivers_can_tell_a_later_one() {
    let mut history = History::new();
    let key = ConnectorKey::sink("a");
    history.execute(&key, define("http://1", Origin::Api)).unwrap();
    history.append(advanced(&key, cursor(1, 20, FIRST)));
    history.execute(&key, define("http://2", Origin::Api)).unwrap();
    let defined = history.get(&key).unwrap();
    assert_eq!((defined.history, defined.first_history), (Some(FIRST), Some(FIRST)));
    assert_eq!(defined.cursor().unwrap().history, Some(FIRST));
    assert_eq!(defined.receiver_identity("main-a-id"), "main-a-id");
    assert_eq!(
        history.execute(&key, Action::Place { history: OTHER }),
        Ok(ConnectorOutcome::Unchanged)
    );
    for (other, expected) in [
        (OTHER, "main-a-id-00000000000000ff"),
        (HistoryId(0xfe), "main-a-id-00000000000000fe"),
        (FIRST, "main-a-id"),
    ] {
        history.execute(&key, Action::Reset { start: at(3, other) }).unwrap();
        let reset = history.get(&key).unwrap();
        assert_eq!((reset.history, reset.first_history), (Some(other), Some(FIRST)));
        assert_eq!(reset.receiver_identity("main-a-id"), expected);
    }
}

#[test]
fn a_sink_of_an_earlier_version_is_placed_once_and_keeps_its_keys() {
    let mut history = History::new();
    let key = ConnectorKey::sink("a");
    history.append(defined_by_an_earlier_version());
    history.append(advanced(&key, cursor(1, 20, FIRST)));
    let unplaced = history.get(&key).unwrap();
    assert_eq!((unplaced.history, unplaced.cursor().unwrap().history), (None, None));
    assert_eq!(unplaced.receiver_identity("main-a-id"), "main-a-id");
    let place = Action::Place { history: FIRST };
    assert_eq!(history.execute(&key, place.clone()), Ok(ConnectorOutcome::Changed));
    assert_eq!(history.execute(&key, place), Ok(ConnectorOutcome::Unchanged));
    let placed = history.get(&key).unwrap();
    assert_eq!(placed.cursor().unwrap().history, Some(FIRST));
    assert_eq!(placed.receiver_identity("main-a-id"), "main-a-id");
    // One that is reset before it could be placed has delivered from a history that nothing knows.
    let mut history = History::new();
    history.append(defined_by_an_earlier_version());
    history.execute(&key, Action::Reset { start: at(0, OTHER) }).unwrap();
    let reset = history.get(&key).unwrap();
    assert_eq!(reset.receiver_identity("main-a-id"), "main-a-id-00000000000000ff");
    // A reset by an earlier version, after this one had run.
    let mut history = History::new();
    history.execute(&key, define("http://1", Origin::Api)).unwrap();
    history.append(Event::json("ConnectorReset", &["sink:a"], r#"{"generation":2,"start":0}"#));
    history.execute(&key, Action::Place { history: OTHER }).unwrap();
    let reset = history.get(&key).unwrap();
    assert_eq!(reset.receiver_identity("main-a-id"), "main-a-id-00000000000000ff");
}

#[test]
fn only_commands_give_a_connector_another_revision() {
    let mut history = History::new();
    let key = ConnectorKey::sink("a");
    assert_eq!(
        history.execute(&key, define("http://1", Origin::Api)),
        Ok(ConnectorOutcome::Created)
    );
    assert_eq!(
        history.execute(&key, define("http://1", Origin::Api)),
        Ok(ConnectorOutcome::Unchanged)
    );
    let before = history.get(&key).unwrap().revision;
    history.append(advanced(&key, cursor(1, 2, FIRST)));
    assert_eq!(history.get(&key).unwrap().revision, before);
    assert_eq!(history.execute(&key, Action::Resume), Ok(ConnectorOutcome::Changed));
    assert!(history.get(&key).unwrap().revision > before);
    assert_eq!(history.execute(&key, Action::Pause), Ok(ConnectorOutcome::Changed));
    assert_eq!(history.execute(&key, Action::Pause), Ok(ConnectorOutcome::Unchanged));
}

#[test]
fn refusals_are_told_apart() {
    let mut history = History::new();
    let (key, none) = (ConnectorKey::sink("a"), ConnectorKey::sink("b"));
    history.execute(&key, define("http://1", Origin::Configuration)).unwrap();
    let over_http = define("http://2", Origin::Api);
    assert_eq!(history.execute(&key, over_http), Err(ConnectorRefusal::Configured));
    let remove = Action::Remove { is_configured: true };
    assert_eq!(history.execute(&key, remove), Err(ConnectorRefusal::Configured));
    assert_eq!(history.execute(&none, Action::Pause), Err(ConnectorRefusal::NotFound));
    for n in 1..decide::MAX_CONNECTORS {
        let key = ConnectorKey::source(&format!("s{n}"));
        history.execute(&key, define("http://1", Origin::Api)).unwrap();
    }
    assert_eq!(
        history.execute(&none, define("http://1", Origin::Api)),
        Err(ConnectorRefusal::TooMany)
    );
    history.execute(&key, Action::Remove { is_configured: false }).unwrap();
    assert_eq!(
        history.execute(&none, define("http://1", Origin::Api)),
        Ok(ConnectorOutcome::Created)
    );
}

#[test]
fn rubbish_in_the_log_is_passed_over() {
    let mut history = told_a_lot();
    let before = history.snapshot();
    for (event_type, tags, data) in [
        ("ConnectorDefined", &["sink:x"][..], "{}"),
        ("ConnectorDefined", &["other:x"][..], r#"{"definition":{},"origin":"api"}"#),
        ("ConnectorReset", &["sink:nobody"][..], r#"{"generation":2,"start":1}"#),
        ("ConnectorReset", &["sink:a"][..], r#"{"generation":-2}"#),
        ("ConnectorPaused", &[][..], "{}"),
    ] {
        history.append(Event::json(event_type, tags, data));
    }
    assert_eq!(history.snapshot(), before);
}
