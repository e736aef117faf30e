//! A retry returns the first answer, however often, before and after a restart.

use crate::oracle::{append, append_if, open, read_all, small_segments};
use std::sync::mpsc;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Append, AppendError, RequestKey};
use wellspring_types::{AppendCondition, Event, EventId, Query};

fn keyed(key: &str, body: u8, events: &[Event]) -> Append {
    let key = RequestKey { key: key.into(), digest: [body; 16] };
    Append { key: Some(key), ..append(events) }
}

fn with_id(id: u8, data: &str) -> Event {
    Event { id: Some(EventId([id; 16])), ..Event::json("T", &["t"], data) }
}

#[test]
fn a_request_key_returns_the_first_answer_and_survives_a_restart() {
    let storage = SimulatedStorage::new(1);
    let mut log = open(&storage, small_segments()).unwrap();
    let pair = [Event::json("A", &["x"], "1"), Event::json("B", &[], "2")];
    let first = log.append(keyed("k", 1, &pair)).unwrap();
    assert_eq!((first.first, first.last, first.replayed), (1, 2, false));
    for round in 0..3 {
        let again = log.append(keyed("k", 1, &pair)).unwrap();
        assert_eq!((again.first, again.last, again.replayed), (1, 2, true));
        assert_eq!(
            log.append(keyed("k", 2, &pair)),
            Err(AppendError::KeyReused { first: 1 }),
            "the same key with another body"
        );
        // Fill segments, so that the key is found in a sealed one.
        for _ in 0..40 {
            let data = format!("\"{}\"", "x".repeat(4000));
            log.append(append(&[Event::json("Filler", &[], &data)])).unwrap();
        }
        assert_eq!(log.append(keyed("k", 1, &pair)).unwrap().first, 1, "round {round}");
        log.close();
        log = open(&storage, small_segments()).unwrap();
    }
}

#[test]
fn a_retry_of_a_conditional_append_does_not_fail_on_itself() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    let condition = AppendCondition::not_exists(Query::item(&[], &["name:ada"]));
    let events = [Event::json("Claimed", &["name:ada"], "1")];
    let request = || Append { condition: Some(condition.clone()), ..keyed("k", 1, &events) };
    assert!(!log.append(request()).unwrap().replayed);
    assert!(log.append(request()).unwrap().replayed);
    assert!(matches!(
        log.append(append_if(&events, condition.clone())),
        Err(AppendError::Conflict(_))
    ));
    assert_eq!(log.head(), 1);
}

#[test]
fn event_ids_make_a_retry_safe_and_are_unique() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    log.append(append(&[Event::json("T", &[], "0")])).unwrap();
    let pair = [with_id(1, "1"), with_id(2, "2")];
    assert_eq!(log.append(append(&pair)).unwrap().first, 2);
    let again = log.append(append(&pair)).unwrap();
    assert_eq!((again.first, again.last, again.replayed), (2, 3, true));
    let reused = |events: &[Event]| match log.append(append(events)) {
        Err(AppendError::IdReused { event, position }) => (event, position),
        other => panic!("{other:?}"),
    };
    assert_eq!(reused(&[with_id(1, "other")]), (0, 2), "another payload");
    assert_eq!(reused(&[with_id(2, "2"), with_id(1, "1")]), (1, 2), "another order");
    // The event named is one whose id really is taken.
    assert_eq!(reused(&[with_id(9, "9"), with_id(2, "2")]), (1, 3), "partly new");
    assert_eq!(reused(&[with_id(1, "1"), with_id(9, "9")]), (0, 2), "partly new");
    assert_eq!(reused(&[with_id(1, "1"), Event::json("T", &[], "7")]), (0, 2), "longer");
    assert_eq!(read_all(&log).len(), 3);
}

#[test]
fn the_same_id_twice_in_one_request_is_refused() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    let twice = log.append(append(&[with_id(1, "1"), with_id(1, "1")]));
    assert!(matches!(twice, Err(AppendError::Invalid(_))), "{twice:?}");
    let apart = [with_id(1, "1"), Event::json("T", &[], "2"), with_id(1, "3")];
    match log.append(append(&apart)) {
        Err(AppendError::Invalid(invalid)) => assert_eq!(invalid.field, "events[2].id"),
        other => panic!("{other:?}"),
    }
    assert_eq!(log.head(), 0);
}

#[test]
fn a_retry_that_overtakes_its_first_attempt_gets_the_same_answer() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    let (tell, told) = mpsc::channel();
    for _ in 0..5 {
        let tell = tell.clone();
        log.stage(
            keyed("k", 1, &[Event::json("T", &["t"], "1")]),
            Box::new(move |outcome| tell.send(outcome.unwrap()).unwrap()),
        );
    }
    log.commit(wellspring_log::CommitOn::JournalThread);
    let mut answers: Vec<_> = (0..5).map(|_| told.recv().unwrap()).collect();
    answers.sort_by_key(|answer| answer.replayed);
    assert!(answers.iter().all(|answer| (answer.first, answer.last) == (1, 1)));
    assert_eq!(answers.iter().filter(|answer| answer.replayed).count(), 4);
    assert_eq!(log.head(), 1);
}
