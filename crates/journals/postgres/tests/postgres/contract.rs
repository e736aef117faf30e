//! The contract of `SharedLog`.

use crate::reader::Reader;
use crate::server::{new_log, server};
use wellspring_log::shared::{
    Fetched, LogStart, OfferOutcome, Place, SharedLog as _, SharedLogError,
};

#[test]
fn two_nodes_read_the_same_entries_in_the_same_order() {
    let Some(server) = server("contract::two_nodes_read_the_same_entries_in_the_same_order") else {
        return;
    };
    let log = new_log("order");
    let (one, two) = (server.node(), server.node());
    let (mut a, mut b) = (Reader::of(&one, &log), Reader::of(&two, &log));
    std::thread::scope(|scope| {
        for (name, reader) in [("a", &mut a), ("b", &mut b)] {
            scope.spawn(move || {
                for n in 0..50 {
                    reader.append(format!("{name}{n}").as_bytes());
                }
            });
        }
    });
    a.read_to(Place(100));
    b.read_to(Place(100));
    assert_eq!(a.entries, b.entries);
    for name in ["a", "b"] {
        let own: Vec<_> = a.texts().into_iter().filter(|text| text.starts_with(name)).collect();
        let wanted: Vec<_> = (0..50).map(|n| format!("{name}{n}")).collect();
        assert_eq!(own, wanted, "each once, in its writer's order");
    }
    let places: Vec<_> = a.entries.iter().map(|(place, _)| place.0).collect();
    assert_eq!(places, (1..=100).collect::<Vec<_>>());
    let mut late = Reader::after(&one, &log, Place(97));
    late.read_to(Place(100));
    assert_eq!(late.entries, a.entries[97..]);
}

#[test]
fn an_offer_is_refused_if_something_stands_behind_the_place_it_names() {
    let Some(server) =
        server("contract::an_offer_is_refused_if_something_stands_behind_the_place_it_names")
    else {
        return;
    };
    let log = new_log("refused");
    let (one, two) = (server.node(), server.node());
    let (mut a, mut b) = (Reader::of(&one, &log), Reader::of(&two, &log));
    for round in 0..20 {
        let (of_a, of_b) = (a.offer(round, b"a"), b.offer(round, b"b"));
        let outcomes = [a.outcome(of_a), b.outcome(of_b)];
        let placed = OfferOutcome::Placed(Place(round + 1));
        assert!(outcomes.contains(&placed), "one is placed: {outcomes:?}");
        assert!(outcomes.contains(&OfferOutcome::Refused), "one is refused: {outcomes:?}");
        a.read_to(Place(round + 1));
        b.read_to(Place(round + 1));
    }
    assert_eq!(a.entries.len(), 20, "what is refused stands nowhere");
    // A place that no entry has reached cannot be named.
    assert_eq!(a.place(25, b"x"), OfferOutcome::Refused);
}

#[test]
fn offers_on_the_way_stand_in_their_order_or_not_at_all() {
    let Some(server) = server("contract::offers_on_the_way_stand_in_their_order_or_not_at_all")
    else {
        return;
    };
    let log = new_log("window");
    let mut a = Reader::of(&server.named_node(&log), &log);
    a.place(0, b"first");
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = '{log} writes'"
    );
    // The commit of another node is open while they are sent.
    for (end, theirs) in [(1, false), (5, true)] {
        let mut other = server.session();
        other.say(&format!(
            "BEGIN; UPDATE wellspring.ws_end SET place = place WHERE log = '{log}';"
        ));
        let offered: Vec<_> =
            (0..4).map(|n| a.offer(end + n, format!("{end}-{n}").as_bytes())).collect();
        server.wait_for(&waits, "1");
        if theirs {
            // At the place that the second of them names.
            other.say(&format!(
                "UPDATE wellspring.ws_end SET place = 6 WHERE log = '{log}'; \
                 INSERT INTO wellspring.ws_entry VALUES ('{log}', 6, 'theirs');"
            ));
        }
        other.say("COMMIT;");
        let outcomes: Vec<_> = offered.into_iter().map(|id| a.outcome(id)).collect();
        let wanted =
            |n| if theirs { OfferOutcome::Refused } else { OfferOutcome::Placed(Place(n)) };
        assert_eq!(outcomes, (2..6).map(wanted).collect::<Vec<_>>());
    }
    a.read_to(Place(6));
    assert_eq!(a.texts(), ["first", "1-0", "1-1", "1-2", "1-3", "theirs"]);
}

#[test]
fn the_end_is_not_before_what_was_acknowledged_to_anybody() {
    let Some(server) = server("contract::the_end_is_not_before_what_was_acknowledged_to_anybody")
    else {
        return;
    };
    let log = new_log("end");
    let (one, two) = (server.node(), server.node());
    let (mut a, mut b) = (Reader::of(&one, &log), Reader::of(&two, &log));
    assert_eq!(b.ask(), Some(Place(0)), "of a log that nobody has used");
    for place in 1..=50 {
        assert_eq!(a.place(place - 1, b"x"), OfferOutcome::Placed(Place(place)));
        assert_eq!(b.ask(), Some(Place(place)));
    }
}

#[test]
fn entries_are_fetched_apart_from_those_that_arrive() {
    let Some(server) = server("contract::entries_are_fetched_apart_from_those_that_arrive") else {
        return;
    };
    let log = new_log("fetch");
    let node = server.node();
    let mut a = Reader::of(&node, &log);
    assert_eq!(a.log.fetch(Place(0), 1), Ok(Fetched::Entries(Vec::new())));
    assert_eq!(a.log.gap_after(Place(0)), Ok(None));
    for n in 0..10 {
        a.place(n, &[n as u8; 1000]);
    }
    let places = |fetched: Fetched| {
        let Fetched::Entries(entries) = fetched else { panic!("{fetched:?}") };
        entries.iter().map(|(place, _)| place.0).collect::<Vec<_>>()
    };
    assert_eq!(places(a.log.fetch(Place(0), 1).unwrap()), [1], "at least one");
    assert_eq!(places(a.log.fetch(Place(3), 2500).unwrap()), [4, 5, 6]);
    assert_eq!(places(a.log.fetch(Place(8), 1 << 20).unwrap()), [9, 10]);
    assert_eq!(a.log.fetch(Place(10), 1 << 20), Ok(Fetched::Entries(Vec::new())));
    // Entries deleted by an operator are gone for readers behind them, which report it.
    server.sql(&format!("DELETE FROM wellspring.ws_entry WHERE log = '{log}' AND place <= 4"));
    let lost = LogStart { place: Place(4), state: None };
    assert_eq!(a.log.gap_after(Place(3)), Ok(Some(lost)));
    assert_eq!(a.log.gap_after(Place(4)), Ok(None));
    assert_eq!(places(a.log.fetch(Place(4), 1).unwrap()), [5]);
    let error = a.log.fetch(Place(2), 1).unwrap_err();
    assert!(
        matches!(&error, SharedLogError::Unusable { reason } if reason.contains("3 to 4")),
        "{error}"
    );
    let said = Reader::after(&node, &log, Place(2)).unusable();
    assert!(said.contains("3 to 4"), "{said}");
}

#[test]
fn the_largest_entry_is_taken_and_comes_back() {
    let Some(server) = server("contract::the_largest_entry_is_taken_and_comes_back") else {
        return;
    };
    let log = new_log("largest");
    let node = server.node();
    let mut a = Reader::of(&node, &log);
    let entry: Vec<u8> = (0..a.log.limits().entry_bytes).map(|n| (n * 31 % 251) as u8).collect();
    for n in 0..6 {
        assert_eq!(a.place(n, &entry), OfferOutcome::Placed(Place(n + 1)));
    }
    let mut b = Reader::of(&server.node(), &log);
    b.read_to(Place(6));
    assert!(b.entries.iter().all(|(_, read)| *read == entry));
}

#[test]
fn logs_of_one_node_go_on_side_by_side() {
    let Some(server) = server("contract::logs_of_one_node_go_on_side_by_side") else { return };
    let node = server.node();
    let logs: Vec<_> = (0..8).map(|_| new_log("many")).collect();
    std::thread::scope(|scope| {
        for log in &logs {
            let node = node.clone();
            scope.spawn(move || {
                let mut reader = Reader::of(&node, log);
                for n in 0..50 {
                    assert_eq!(reader.place(n, log.as_bytes()), OfferOutcome::Placed(Place(n + 1)));
                }
                assert_eq!(reader.entries.len(), 50);
                assert!(reader.texts().iter().all(|text| text == log));
            });
        }
    });
}
