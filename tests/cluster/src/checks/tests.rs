use super::*;
use crate::history::{Kind, Outcome};
use serde_json::json;

fn event(position: u64, kind: &str, tag: &str, data: serde_json::Value) -> Event {
    let tags = if tag.is_empty() { vec![] } else { vec![tag.to_owned()] };
    Event { position, kind: kind.into(), tags, data }
}

fn operation(kind: Kind, new: u64, start_ns: u64, outcome: Outcome) -> Operation {
    Operation {
        log: "main".to_owned(),
        kind,
        client: 1,
        node: "a".into(),
        life: 1,
        key: "1".into(),
        old: 1,
        new,
        outcome,
        start_ns,
        end_ns: start_ns + 5,
        position: None,
        head: None,
        told: String::new(),
    }
}

fn objections(operations: &[Operation], events: &[Event], end: LifeEnd) -> Vec<String> {
    let end_of = |_: &str, _| end;
    history(operations, events, &end_of).into_iter().map(|finding| finding.told).collect()
}

#[test]
fn an_append_is_there_once_whole_and_only_if_it_was_done() {
    let numbered = |position, n| event(position, "Numbered", "", json!({"n": n}));
    let done = operation(Kind::Append, 7, 0, Outcome::Done);
    let look = |operation: &Operation, events: &[Event]| {
        objections(std::slice::from_ref(operation), events, LifeEnd::Lives)
    };
    assert!(look(&done, &[numbered(1, 7)]).is_empty());
    assert!(look(&done, &[])[0].contains("missing"));
    assert!(look(&done, &[numbered(1, 7), numbered(2, 7)])[0].contains("more than once"));
    assert!(look(&done, &[numbered(1, 7), numbered(2, 8)])[0].contains("nobody asked"));
    let unknown = operation(Kind::Append, 7, 0, Outcome::Unknown);
    assert!(look(&unknown, &[]).is_empty() && look(&unknown, &[numbered(1, 7)]).is_empty());
    let refused = operation(Kind::Append, 7, 0, Outcome::Refused);
    assert!(look(&refused, &[numbered(1, 7)])[0].contains("was refused"));
    let two = Operation { old: 2, ..done.clone() };
    assert!(look(&two, &[numbered(1, 7)])[0].contains("in part"));
    let torn = [numbered(1, 7), event(2, "Tried", "", json!({})), numbered(3, 7)];
    assert!(look(&two, &torn)[0].contains("torn"));
    let elsewhere = Operation { position: Some(9), ..done };
    assert!(look(&elsewhere, &[numbered(1, 7)])[0].contains("told to be at"));
}

#[test]
fn of_a_life_that_was_not_killed_no_202_is_missing_and_of_another_only_the_newest() {
    let told = |n| operation(Kind::Ingest, n, n * 10, Outcome::Done);
    let stored = |position, n| event(position, "Ingested", "", json!({"connection": 1, "n": n}));
    let told = [told(1), told(2), told(3)];
    let all = [stored(1, 1), stored(2, 2), stored(3, 3)];
    assert!(objections(&told, &all, LifeEnd::Lives).is_empty());
    for (end, count) in [(LifeEnd::Lives, 1), (LifeEnd::Stopped, 1), (LifeEnd::Killed, 0)] {
        assert_eq!(objections(&told, &all[..2], end).len(), count, "{end:?}");
    }
    let gap = [stored(1, 1), stored(2, 3)];
    assert!(objections(&told, &gap, LifeEnd::Killed)[0].contains("3 is there"));
    let twice = [stored(1, 1), stored(2, 1), stored(3, 2), stored(4, 3)];
    assert!(objections(&told, &twice, LifeEnd::Lives)[0].contains("twice"));
    let turned = [stored(1, 2), stored(2, 1), stored(3, 3)];
    assert!(objections(&told, &turned, LifeEnd::Lives)[0].contains("before"));
}

#[test]
fn a_read_shows_a_prefix_and_a_linearizable_one_all_of_it() {
    let set =
        |position, value| event(position, "RegisterSet", "register:1", json!({"value": value}));
    let events = [set(1, 5), set(2, 6)];
    let at = |new, start, position| Operation {
        position: Some(position),
        ..operation(Kind::Cas, new, start, Outcome::Done)
    };
    let writes = [at(5, 0, 1), at(6, 10, 2)];
    let read = |kind, value, head| {
        let read = Operation { head: Some(head), ..operation(kind, value, 100, Outcome::Done) };
        let operations = [&writes[..], &[read]].concat();
        objections(&operations, &events, LifeEnd::Lives)
    };
    assert!(read(Kind::Read, 6, 2).is_empty() && read(Kind::Local, 5, 1).is_empty());
    assert!(read(Kind::Read, 5, 1)[0].contains("2 was known"));
    assert!(read(Kind::Local, 5, 2)[0].contains("where it is 6"));
}

#[test]
fn stock_and_sales_add_up_to_what_clients_were_told() {
    let items = [Item { id: 1, stock: 10 }];
    let orders = [
        operation(Kind::Order, 3, 0, Outcome::Done),
        operation(Kind::Order, 2, 0, Outcome::Unknown),
    ];
    let objects = |stock_left, sold| stock(&orders, &items, &|_| Some((stock_left, sold))).len();
    assert_eq!(
        [objects(7, 3), objects(5, 5), objects(8, 2), objects(4, 6), objects(7, 2)],
        [0, 0, 1, 1, 2]
    );
}

#[test]
fn copies_and_rows_are_the_log() {
    assert_eq!(copies(("a", b"1\n2\n"), ("b", b"1\n2\n")), None);
    assert!(copies(("a", b"1\n2\n"), ("b", b"1\n")).unwrap().told.contains("byte 2"));
    let events = [event(1, "A", "t", json!({}))];
    assert!(sql(&["1\tA\tt".into()], &events).is_empty());
    assert_eq!(sql(&["1\tA\tu".into()], &events).len(), 1);
    assert_eq!(sql(&[], &events).len(), 1);
    let at_rest = json!({"accepted": {"events": 2}, "stored": {"events": 2}, "in_flight": {"events": 0}, "dropped": {"events": 0}});
    assert!(accounts("a", &at_rest).is_empty());
    assert_eq!(accounts("a", &json!({})).len(), 1);
}

#[test]
fn lines_of_a_bulk_are_there_once_in_order_and_as_many_as_was_told() {
    let lined = |position, line| event(position, "Lined", "", json!({"n": 7, "line": line}));
    let done =
        Operation { old: 2, position: Some(2), ..operation(Kind::Bulk, 7, 0, Outcome::Done) };
    let look = |operation: &Operation, events: &[Event]| {
        objections(std::slice::from_ref(operation), events, LifeEnd::Lives)
    };
    assert!(look(&done, &[lined(1, 0), lined(2, 1)]).is_empty());
    assert!(look(&done, &[lined(1, 0)])[0].contains("acknowledged, and 1"));
    assert!(look(&done, &[lined(1, 0), lined(2, 0)])[0].contains("twice"));
    assert!(look(&done, &[lined(1, 0), lined(2, 1), lined(3, 0)])[0].contains("twice"));
    assert!(look(&done, &[lined(1, 1)])[0].contains("gap"));
    let stopped = Operation { outcome: Outcome::Refused, position: Some(1), ..done.clone() };
    assert!(look(&stopped, &[lined(1, 0)]).is_empty());
    assert!(look(&stopped, &[lined(1, 0), lined(2, 1)])[0].contains("told 1"));
    let unknown = Operation { outcome: Outcome::Unknown, position: None, ..done };
    assert!(look(&unknown, &[lined(1, 0)]).is_empty());
    let link = event(1, "LinkCreated", "", json!({"url": "https://lines.example/7/1"}));
    assert!(look(&unknown, &[link])[0].contains("gap"));
    let item = event(1, "CatalogueItemAdded", "", json!({"sku": "lines-7-0"}));
    assert!(look(&unknown, &[item]).is_empty());
}

#[test]
fn a_statement_takes_effect_once_and_tokens_of_leases_grow() {
    let stated =
        |position| event(position, "GraphChanged", "", json!({"nodes": [{"n": "statement-7."}]}));
    let done = operation(Kind::Statement, 7, 0, Outcome::Done);
    let look =
        |operations: &[Operation], events: &[Event]| objections(operations, events, LifeEnd::Lives);
    let one = std::slice::from_ref(&done);
    assert!(look(one, &[stated(1)]).is_empty());
    assert!(look(one, &[])[0].contains("missing"));
    assert!(look(one, &[stated(1), stated(2)])[0].contains("2 times"));
    let refused = Operation { outcome: Outcome::Refused, ..done };
    assert!(look(&[refused], &[stated(1)])[0].contains("refused"));
    let lease = |token, start_ns| operation(Kind::Lease, token, start_ns, Outcome::Done);
    assert!(look(&[lease(1, 0), lease(2, 10)], &[]).is_empty());
    assert!(look(&[lease(2, 0), lease(1, 10)], &[])[0].contains("token 1"));
    assert!(look(&[lease(2, 0), lease(1, 3)], &[]).is_empty(), "they were at the same time");
}
