//! Outcomes of offers when connections and servers fail.

use crate::reader::Reader;
use crate::server::{new_log, own_server, server};
use wellspring_journal_postgres::Connection;
use wellspring_log::shared::{OfferOutcome, Place};

const WAITS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = ";

#[test]
fn a_connection_that_dies_within_a_statement_leaves_the_outcome_unknown_and_is_reopened() {
    let Some(server) = server("failures::a_connection_that_dies_within_a_statement") else {
        return;
    };
    let log = new_log("killed");
    let node = server.named_node(&log);
    let mut a = Reader::of(&node, &log);
    a.place(0, b"first");
    let mut held = server.session();
    held.say(&format!("BEGIN; UPDATE wellspring.ws_end SET place = place WHERE log = '{log}';"));
    let (id, next) = (a.offer(1, b"doubtful"), a.offer(2, b"behind it"));
    server.wait_for(&format!("{WAITS}'{log} writes'"), "1");
    server.sql(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{log} writes'"
    ));
    assert_eq!(a.outcome(id), OfferOutcome::Unknown);
    assert_eq!(a.outcome(next), OfferOutcome::Unknown, "it was sent as well");
    drop(held);
    // It reconnects by itself, and the same bytes are accepted.
    assert_eq!(a.append(b"doubtful"), Place(2));
    assert_eq!(a.texts(), ["first", "doubtful"]);
    let status = node.status();
    assert_eq!((status.connection, status.reconnects), (Connection::Connected, 1));
}

#[test]
fn a_reading_connection_that_dies_is_reopened() {
    let Some(server) = server("failures::a_reading_connection_that_dies_is_reopened") else {
        return;
    };
    let log = new_log("reads");
    let mut a = Reader::of(&server.named_node(&log), &log);
    let mut b = Reader::of(&server.node(), &log);
    for n in 0..5 {
        b.append(b"x");
        a.read_to(Place(n + 1));
        server.sql(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{log} reads'"
        ));
    }
    b.append(b"last");
    a.read_to(Place(6));
    assert_eq!(a.entries, b.entries);
}

#[test]
fn an_offer_waits_for_the_open_commit_before_it_and_is_refused_then() {
    let Some(server) = server("failures::an_offer_waits_for_the_open_commit_before_it") else {
        return;
    };
    let log = new_log("open");
    let mut a = Reader::of(&server.named_node(&log), &log);
    a.place(0, b"first");
    let mut other = server.session();
    other.say(&format!(
        "BEGIN; UPDATE wellspring.ws_end SET place = place + 1 WHERE log = '{log}'; \
         INSERT INTO wellspring.ws_entry VALUES ('{log}', 2, 'theirs');"
    ));
    let id = a.offer(1, b"ours");
    server.wait_for(&format!("{WAITS}'{log} writes'"), "1");
    other.say("COMMIT;");
    assert_eq!(a.outcome(id), OfferOutcome::Refused);
    a.read_to(Place(2));
    assert_eq!(a.texts(), ["first", "theirs"]);
}

#[test]
fn a_server_that_loses_its_power_is_waited_for() {
    let Some(server) = own_server("failures::a_server_that_loses_its_power_is_waited_for", &[])
    else {
        return;
    };
    let node = server.node();
    let mut a = Reader::of(&node, "main");
    for n in 0..20 {
        a.place(n, format!("{n}").as_bytes());
    }
    server.stop();
    let said = a.unavailable();
    assert!(!said.is_empty());
    assert!(matches!(node.status().connection, Connection::Lost { .. }));
    let after = a.entries.len() as u64;
    assert_eq!(a.place(after, b"never sent"), OfferOutcome::Refused);
    assert_eq!(a.ask(), None);
    server.start_again();
    assert_eq!(a.append(b"after"), Place(21), "every acknowledged entry is there, and no other");
    assert_eq!(a.entries.len(), 21);
    drop(a);
    drop(node);
    server.down();
}

#[test]
fn a_server_that_was_set_back_is_another_past() {
    let Some(server) = own_server("failures::a_server_that_was_set_back_is_another_past", &[])
    else {
        return;
    };
    let node = server.node();
    let set_back = |log: &str, place| {
        server.sql(&format!(
            "DELETE FROM wellspring.ws_entry WHERE log = '{log}' AND place > {place}; \
             UPDATE wellspring.ws_end SET place = {place} WHERE log = '{log}'"
        ));
    };
    let header = |text: &str| format!("{text:<64}").into_bytes();
    // Detected by the next question for the end.
    let mut shorter = Reader::of(&node, "shorter");
    (0..3).for_each(|n| assert_ne!(shorter.place(n, &header("x")), OfferOutcome::Refused));
    set_back("shorter", 2);
    shorter.log_asks();
    assert!(shorter.unusable().contains("place 3"));
    // And by the next connection, even if others have continued.
    let mut other = Reader::of(&node, "other");
    (0..3).for_each(|n| assert_ne!(other.place(n, &header("x")), OfferOutcome::Refused));
    server.stop();
    other.unavailable();
    server.start_again();
    let second = server.node();
    set_back("other", 2);
    let mut theirs = Reader::after(&second, "other", Place(2));
    let outcome = theirs.place(2, &header("another"));
    assert_eq!(outcome, OfferOutcome::Placed(Place(3)));
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'wellspring writes'",
    );
    assert!(other.unusable().contains("place 3"));
    drop((shorter, other, theirs, node, second));
    server.down();
}
