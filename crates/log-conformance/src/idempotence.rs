//! A retry returns the first answer, any number of times, before and after a restart.

use crate::oracle::{append, append_if, read_all, small_segments};
use crate::{JournalUnderTest, Nodes};
use std::sync::mpsc;
use wellspring_format::RequestKey;
use wellspring_log::{Append, AppendError, CommitOn};
use wellspring_types::{AppendCondition, Event, EventId, Query};

pub(super) fn keyed(key: &str, body: u8, events: &[Event]) -> Append {
    let key = RequestKey { key: key.into(), digest: [body; 16] };
    Append { key: Some(key), ..append(events) }
}

fn with_id(id: u8, data: &str) -> Event {
    Event { id: Some(EventId([id; 16])), ..Event::json("T", &["t"], data) }
}

/// However often and wherever it is sent, and whatever has happened since.
pub fn a_request_key_returns_the_first_answer_and_survives_a_restart(
    journal: &dyn JournalUnderTest,
) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let pair = [Event::json("A", &["x"], "1"), Event::json("B", &[], "2")];
    let first = nodes.append(keyed("k", 1, &pair)).unwrap();
    assert_eq!((first.first, first.last, first.replayed), (1, 2, false));
    for round in 0..3 {
        let again = nodes.append(keyed("k", 1, &pair)).unwrap();
        assert_eq!((again.first, again.last, again.replayed), (1, 2, true));
        assert_eq!(
            nodes.append(keyed("k", 2, &pair)),
            Err(AppendError::KeyReused { first: 1 }),
            "the same key with another body"
        );
        // Fill segments, so that the key is found in a sealed one.
        for _ in 0..40 {
            let data = format!("\"{}\"", "x".repeat(4000));
            nodes.append(append(&[Event::json("Filler", &[], &data)])).unwrap();
        }
        assert_eq!(nodes.append(keyed("k", 1, &pair)).unwrap().first, 1, "round {round}");
        nodes.restart();
    }
}

/// A retry is recognised before its condition is judged.
pub fn a_retry_of_a_conditional_append_does_not_fail_on_itself(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let condition = AppendCondition::not_exists(Query::item(&[], &["name:ada"]));
    let events = [Event::json("Claimed", &["name:ada"], "1")];
    let request = || Append { condition: Some(condition.clone()), ..keyed("k", 1, &events) };
    assert!(!nodes.append(request()).unwrap().replayed);
    assert!(nodes.append(request()).unwrap().replayed);
    assert!(matches!(
        nodes.append(append_if(&events, condition.clone())),
        Err(AppendError::Conflict(_))
    ));
    assert_eq!(nodes.reader().head(), 1);
}

/// Event ids act like a key, and each can be used once.
pub fn event_ids_make_a_retry_safe_and_are_unique(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    nodes.append(append(&[Event::json("T", &[], "0")])).unwrap();
    let pair = [with_id(1, "1"), with_id(2, "2")];
    assert_eq!(nodes.append(append(&pair)).unwrap().first, 2);
    let again = nodes.append(append(&pair)).unwrap();
    assert_eq!((again.first, again.last, again.replayed), (2, 3, true));
    let reused = |events: &[Event]| match nodes.append(append(events)) {
        Err(AppendError::IdReused { event, position }) => (event, position),
        other => panic!("{other:?}"),
    };
    assert_eq!(reused(&[with_id(1, "other")]), (0, 2), "another payload");
    assert_eq!(reused(&[with_id(2, "2"), with_id(1, "1")]), (1, 2), "another order");
    // The event named is one whose id is indeed used.
    assert_eq!(reused(&[with_id(9, "9"), with_id(2, "2")]), (1, 3), "partly new");
    assert_eq!(reused(&[with_id(1, "1"), with_id(9, "9")]), (0, 2), "partly new");
    assert_eq!(reused(&[with_id(1, "1"), Event::json("T", &[], "7")]), (0, 2), "longer");
    assert_eq!(read_all(&nodes.reader()).len(), 3);
}

/// And the error names it.
pub fn the_same_id_twice_in_one_request_is_refused(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let twice = nodes.append(append(&[with_id(1, "1"), with_id(1, "1")]));
    assert!(matches!(twice, Err(AppendError::Invalid(_))), "{twice:?}");
    let apart = [with_id(1, "1"), Event::json("T", &[], "2"), with_id(1, "3")];
    match nodes.append(append(&apart)) {
        Err(AppendError::Invalid(invalid)) => assert_eq!(invalid.field, "events[2].id"),
        other => panic!("{other:?}"),
    }
    assert_eq!(nodes.reader().head(), 0);
}

/// Retries that are staged together with their first attempts.
pub fn a_retry_that_overtakes_its_first_attempt_gets_the_same_answer(
    journal: &dyn JournalUnderTest,
) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let mut placed = Vec::new();
    // A node that loses the lead meanwhile reports that nothing happened.
    while placed.is_empty() {
        let (_, log) = nodes.leader();
        let (tell, told) = mpsc::channel();
        for _ in 0..5 {
            let tell = tell.clone();
            log.stage(
                keyed("k", 1, &[Event::json("T", &["t"], "1")]),
                Box::new(move |outcome| tell.send(outcome).unwrap()),
            );
        }
        log.commit(CommitOn::JournalThread);
        for answer in (0..5).map(|_| told.recv().unwrap()) {
            match answer {
                Ok(appended) => placed.push(appended),
                Err(AppendError::NotLeading { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(placed.iter().all(|answer| (answer.first, answer.last) == (1, 1)));
    assert_eq!(placed.iter().filter(|answer| !answer.replayed).count(), 1);
    assert!(nodes.append(keyed("k", 1, &[Event::json("T", &["t"], "1")])).unwrap().replayed);
    for log in nodes.readers() {
        assert_eq!(log.head(), 1);
    }
}
