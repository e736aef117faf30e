//! Events as rows: exactly the valid ones, each once.

use crate::reader::Reader;
use crate::server::{Server, new_log, own_server, server};
use std::sync::Arc;
use wellspring_journal_postgres::{ConnectOptions, EventRows, PostgresNode};
use wellspring_log::EncodedEvents;
use wellspring_log::shared::entry::{BatchId, Claim, ClusterId, Entry, batch_entries};
use wellspring_log::shared::{OfferOutcome, Place};
use wellspring_types::{DataKind, EventId, EventRef};

/// A simulated leader: entries as the log crate creates them.
pub(crate) struct SimulatedLeader {
    epoch: u64,
    next: u64,
    chain: u32,
}

fn founding(log: &str) -> Vec<u8> {
    Entry::Founded { cluster: ClusterId([3; 16]), log }.encode()
}

fn claim(epoch: u64) -> Vec<u8> {
    Entry::Claim(Claim { epoch, node: "n", start: epoch, url: "http://n" }).encode()
}

fn event(n: u64) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    let data = format!("{{\"n\":{n}}}");
    let id = EventId([n as u8; 16]);
    events
        .push(&EventRef {
            event_type: "Counted",
            tags: &["number:\"odd\\one\"", "all"],
            id: Some(id),
            data: data.as_bytes(),
            kind: DataKind::Json,
            metadata: &[("who", "Ann \"A\" \\ Ä")],
        })
        .unwrap();
    events
}

impl SimulatedLeader {
    /// The next batch with this many events, as entries of at most this many bytes.
    pub(crate) fn batch(&mut self, count: u64, entry_bytes: usize) -> Vec<Arc<[u8]>> {
        let mut body = Vec::new();
        for n in 0..count {
            let mut record = event(self.next + n).bytes().to_vec();
            // As stamped by the sequencer.
            record[8..16].copy_from_slice(&(self.next + n).to_le_bytes());
            record[16..24].copy_from_slice(&1_700_000_000_000_123_u64.to_le_bytes());
            body.extend_from_slice(&record);
        }
        let id = BatchId {
            epoch: self.epoch,
            first: self.next,
            count: count as u32,
            recorded_at_us: 1_700_000_000_000_123,
            begins_segment: false,
            body_bytes: body.len() as u32,
            body_crc: crc32c::crc32c(&body),
            previous: self.chain,
        };
        self.next += count;
        self.chain = id.chain();
        batch_entries(&id, &body, entry_bytes)
    }
}

pub(crate) fn led(reader: &mut Reader, log: &str) -> SimulatedLeader {
    reader.append(&founding(log));
    reader.append(&claim(1));
    SimulatedLeader { epoch: 1, next: 1, chain: 0 }
}

fn positions(server: &Server, log: &str) -> String {
    server.sql(&format!(
        "SELECT coalesce(string_agg(position::text, ',' ORDER BY position), '') FROM wellspring.ws_event \
         WHERE log = '{log}'"
    ))
}

fn without_rows(server: &Server) -> PostgresNode {
    let options = ConnectOptions { event_rows: EventRows::Omit, ..server.options() };
    PostgresNode::connect(options).unwrap()
}

#[test]
fn an_event_is_a_row_that_any_client_reads() {
    let Some(server) = server("rows::an_event_is_a_row_that_any_client_reads") else { return };
    let log = new_log("row");
    let mut reader = Reader::of(&server.node(), &log);
    let mut hand = led(&mut reader, &log);
    for entry in hand.batch(3, 1 << 20) {
        reader.append(&entry);
    }
    assert_eq!(positions(server, &log), "1,2,3", "there with the acknowledgement");
    let row = server.sql(&format!(
        "SELECT position, recorded_at AT TIME ZONE 'UTC', type, tags[1], tags[2], id, metadata->>'who', \
         data::jsonb->>'n', data_bytes IS NULL FROM wellspring.ws_event WHERE log = '{log}' AND position = 2"
    ));
    assert_eq!(
        row,
        "2|2023-11-14 22:13:20.000123|Counted|number:\"odd\\one\"|all|02020202-0202-0202-0202-020202020202|\
         Ann \"A\" \\ Ä|2|t"
    );
    let plan = server.sql(
        "SET enable_seqscan = off; EXPLAIN SELECT 1 FROM wellspring.ws_event WHERE tags @> '{all}'",
    );
    assert!(plan.contains("ws_event_tags"), "{plan}");
}

#[test]
fn what_counts_for_nobody_leaves_no_rows() {
    let Some(server) = server("rows::what_counts_for_nobody_leaves_no_rows") else { return };
    let log = new_log("void");
    let (one, two) = (server.node(), server.node());
    let (mut a, mut b) = (Reader::of(&one, &log), Reader::of(&two, &log));
    let mut old = led(&mut a, &log);
    for entry in &old.batch(2, 1 << 20) {
        a.append(entry);
    }
    // Another node leads, from the same history.
    b.append(&claim(2));
    let mut new = SimulatedLeader {
        epoch: 2,
        ..SimulatedLeader { epoch: 0, next: old.next, chain: old.chain }
    };
    // The old leader does not know yet, and its engine accepts its offers: void.
    for entry in &old.batch(5, 1 << 20) {
        a.append(entry);
    }
    assert_eq!(positions(server, &log), "1,2");
    let counted = new.batch(1, 1 << 20);
    b.append(&counted[0]);
    // The same bytes again, by a leader in doubt: no longer at the next position.
    b.append(&counted[0]);
    assert_eq!(positions(server, &log), "1,2,3");
    let sum = server.sql(&format!(
        "SELECT sum((data::jsonb->>'n')::int) FROM wellspring.ws_event WHERE log = '{log}'"
    ));
    assert_eq!(sum, "6");
}

#[test]
fn a_batch_in_parts_shows_with_its_last_part_or_not_at_all() {
    let Some(server) = server("rows::a_batch_in_parts_shows_with_its_last_part") else { return };
    let log = new_log("parts");
    let (one, two) = (server.node(), server.node());
    let (mut a, mut b) = (Reader::of(&one, &log), Reader::of(&two, &log));
    let mut hand = led(&mut a, &log);
    let parts = hand.batch(4, 200);
    assert!(parts.len() > 2);
    let (last, before) = parts.split_last().unwrap();
    for part in before {
        a.append(part);
        assert_eq!(positions(server, &log), "");
    }
    // Between them an entry without effect, from another node; then the last part, from a third.
    b.append(&Entry::Probe { tag: 1 }.encode());
    let mut late = Reader::of(&server.node(), &log);
    late.append(last);
    assert_eq!(positions(server, &log), "1,2,3,4");
    // A claim voids waiting parts.
    let parts = hand.batch(4, 200);
    for part in &parts[1..] {
        a.append(part);
    }
    b.append(&claim(2));
    a.append(&parts[0]);
    assert_eq!(positions(server, &log), "1,2,3,4");
}

#[test]
fn batches_on_the_way_leave_rows_only_where_all_before_them_stand() {
    let Some(server) = server("rows::batches_on_the_way_leave_rows_only_where_all_before_stand")
    else {
        return;
    };
    let log = new_log("onway");
    let mut a = Reader::of(&server.named_node(&log), &log);
    let mut hand = led(&mut a, &log);
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = '{log} writes'"
    );
    let send = |a: &mut Reader, entries: &[Arc<[u8]>], meanwhile: &str| -> Vec<OfferOutcome> {
        let after = a.entries.last().unwrap().0.0;
        let mut other = server.session();
        other.say(&format!(
            "BEGIN; UPDATE wellspring.ws_end SET place = place WHERE log = '{log}';"
        ));
        let offered: Vec<_> =
            (after..).zip(entries).map(|(after, entry)| a.offer(after, entry)).collect();
        server.wait_for(&waits, "1");
        other.say(meanwhile);
        other.say("COMMIT;");
        let outcomes = offered.into_iter().map(|id| a.outcome(id)).collect();
        let end = a.end();
        a.read_to(end);
        outcomes
    };
    // A batch, one in parts, and another.
    let mut entries = hand.batch(2, 1 << 20);
    entries.extend(hand.batch(2, 200));
    assert_eq!(entries.len(), 3);
    entries.extend(hand.batch(1, 1 << 20));
    let outcomes = send(&mut a, &entries, "");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, OfferOutcome::Placed(_))));
    assert_eq!(positions(server, &log), "1,2,3,4,5");
    // Another node's entry, with its rows, takes the place of the first of two.
    let end = a.entries.last().unwrap().0.0;
    let entries = [hand.batch(2, 1 << 20), hand.batch(1, 1 << 20)].concat();
    let probe: String =
        Entry::Probe { tag: 1 }.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    let theirs = format!(
        "UPDATE wellspring.ws_end SET place = place + 1, rows_place = place + 1 WHERE log = '{log}'; \
         INSERT INTO wellspring.ws_entry VALUES ('{log}', {}, decode('{probe}', 'hex'));",
        end + 1
    );
    assert_eq!(send(&mut a, &entries, &theirs), [OfferOutcome::Refused; 2]);
    assert_eq!(positions(server, &log), "1,2,3,4,5");
    send(&mut a, &entries, "");
    server.wait_for(
        &format!("SELECT count(*), max(position) FROM wellspring.ws_event WHERE log = '{log}'"),
        "8|8",
    );
}

#[test]
fn rows_that_a_node_left_out_are_filled_in_by_the_next_that_writes_them() {
    let Some(server) = own_server("rows::rows_that_a_node_left_out_are_filled_in", &[]) else {
        return;
    };
    let mut plain = Reader::of(&without_rows(&server), "main");
    let mut hand = led(&mut plain, "main");
    for _ in 0..50 {
        for part in hand.batch(2, 300) {
            plain.append(&part);
        }
    }
    assert_eq!(positions(&server, "main"), "");
    let node = server.node();
    let mut reader = Reader::after(&node, "main", Place(0));
    server.wait_for("SELECT count(*), max(position) FROM wellspring.ws_event", "100|100");
    // Both alternately.
    for round in 0..10 {
        for part in hand.batch(1, 1 << 20) {
            plain.append(&part);
        }
        for part in hand.batch(1, 1 << 20) {
            reader.append(&part);
        }
        let all = 102 + 2 * round;
        server.wait_for(
            "SELECT count(*), max(position) FROM wellspring.ws_event",
            &format!("{all}|{all}"),
        );
    }
    drop((plain, reader, node));
    server.down();
}

#[test]
fn offers_that_come_while_rows_are_filled_in_are_placed() {
    let Some(server) = server("rows::offers_that_come_while_rows_are_filled_in_are_placed") else {
        return;
    };
    let log = new_log("filling");
    let mut plain = Reader::of(&without_rows(server), &log);
    let mut hand = led(&mut plain, &log);
    for _ in 0..300 {
        plain.append(&hand.batch(10, 1 << 20)[0]);
    }
    let node = server.node();
    let mut reader = Reader::after(&node, &log, plain.entries.last().unwrap().0);
    let mut after = plain.entries.last().unwrap().0.0;
    for _ in 0..300 {
        let outcome = reader.place(after, &hand.batch(10, 1 << 20)[0]);
        after += 1;
        assert_eq!(outcome, OfferOutcome::Placed(Place(after)));
    }
    let count = format!("SELECT count(*) FROM wellspring.ws_event WHERE log = '{log}'");
    server.wait_for(&count, "6000");
}
