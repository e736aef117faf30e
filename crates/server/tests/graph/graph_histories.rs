//! Random transactions of several clients, and a serial order that explains every read: its
//! existence is the definition of serialisable. Lists that are only appended to reveal the order of
//! their writers.

use crate::graph_client::*;
use crate::numbered::Coins;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Instant;

const KEYS: u64 = 6;
const APPEND: &str = "MATCH (n:K {k: $k}) SET n.l = n.l + $v RETURN n.l";
const READ: &str = "MATCH (n:K {k: $k}) RETURN n.l";
/// All lists at once.
const READ_ALL: &str = "MATCH (n:K) RETURN n.l ORDER BY n.k";

/// One statement: a key (all if none is given), and the value it appends there.
#[derive(Debug, Clone, Copy)]
struct Step {
    key: Option<u64>,
    appends: Option<u64>,
}

/// The effects and observations of a transaction.
#[derive(Debug)]
struct Record {
    begun: Instant,
    ended: Instant,
    is_committed: bool,
    /// By key: the appends of others when first seen.
    seen: HashMap<u64, Vec<u64>>,
    /// By key.
    appended: HashMap<u64, Vec<u64>>,
}

impl Step {
    fn random(coins: &mut Coins, number: u64) -> Step {
        match coins.below(8) {
            0 => Step { key: None, appends: None },
            1..=3 => Step { key: Some(coins.below(KEYS)), appends: None },
            _ => Step { key: Some(coins.below(KEYS)), appends: Some(number) },
        }
    }

    fn statement(self) -> (&'static str, Value) {
        match (self.key, self.appends) {
            (None, _) => (READ_ALL, json!({})),
            (Some(key), None) => (READ, json!({"k": key})),
            (Some(key), Some(value)) => (APPEND, json!({"k": key, "v": value})),
        }
    }
}

impl Record {
    fn new() -> Record {
        let (begun, seen, appended) = (Instant::now(), HashMap::new(), HashMap::new());
        Record { begun, ended: begun, is_committed: false, seen, appended }
    }

    /// Records the result of a statement. A transaction sees its own appends, and otherwise always
    /// the same.
    fn note(&mut self, step: Step, rows: &[Value]) {
        if let (Some(key), Some(value)) = (step.key, step.appends) {
            self.appended.entry(key).or_default().push(value);
        }
        let keys = step.key.map_or(0..KEYS, |key| key..key + 1);
        assert_eq!(rows.len() as u64, keys.end - keys.start);
        for (key, row) in keys.zip(rows) {
            let list: Vec<u64> = serde_json::from_value(row[0].clone()).expect("a list");
            let own = self.appended.get(&key).map_or(&[][..], Vec::as_slice);
            let others = list.strip_suffix(own);
            let others = others.unwrap_or_else(|| panic!("{key}: {list:?} without {own:?}"));
            let before = self.seen.entry(key).or_insert_with(|| others.to_vec());
            assert_eq!(before, others, "{key} has changed within a transaction");
        }
    }
}

/// A transaction whose statements are in one request.
fn at_one_request(client: &mut GraphClient, steps: &[Step]) -> Record {
    let mut record = Record::new();
    let statements: Vec<_> = steps.iter().map(|step| step.statement()).collect();
    let content = client.ask("POST", "tx/commit", &all(&statements)).unwrap().expect(200);
    record.ended = Instant::now();
    assert_eq!(code(&content), None, "who sends one request is never told of others");
    record.is_committed = true;
    for (at, step) in steps.iter().enumerate() {
        let data = content["results"][at]["data"].as_array().expect("rows");
        let rows: Vec<Value> = data.iter().map(|row| row["row"].clone()).collect();
        record.note(*step, &rows);
    }
    record
}

/// An open transaction, committed or rolled back.
fn opened(client: &mut GraphClient, steps: &[Step], commits: bool) -> Record {
    let mut record = Record::new();
    let (first, parameters) = steps[0].statement();
    let open = client.begin(first, parameters);
    record.note(steps[0], &open.rows);
    for step in &steps[1..] {
        let (text, parameters) = step.statement();
        let rows = client.go_on(&open, text, parameters).expect("it is open");
        record.note(*step, &rows);
    }
    let ended = if commits { client.commit(&open) } else { client.roll_back(&open) };
    record.ended = Instant::now();
    record.is_committed = commits && ended.is_ok();
    if let Err(code) = ended {
        assert_eq!(code, OUTDATED);
        assert!(!record.appended.is_empty(), "who only reads is never overtaken");
    }
    record
}

fn run(client: &mut GraphClient, number: usize, times: usize) -> Vec<Record> {
    let mut coins = Coins::new(number as u64 + 7);
    let mut next = number as u64 * 1_000_000;
    let mut one = || {
        let steps: Vec<Step> = (0..=coins.below(4))
            .map(|_| {
                next += 1;
                Step::random(&mut coins, next)
            })
            .collect();
        match coins.below(8) {
            0..=3 => at_one_request(client, &steps),
            way => opened(client, &steps, way < 7),
        }
    };
    (0..times).map(|_| one()).collect()
}

/// Edges from earlier to later; the transactions are followed by points in time.
struct Order {
    after: Vec<Vec<usize>>,
}

impl Order {
    fn of(records: &[Record], lists: &[Vec<u64>]) -> Order {
        let mut order = Order { after: vec![Vec::new(); records.len() * 2] };
        order.add_time(records);
        let writers: HashMap<u64, usize> = (records.iter().enumerate())
            .filter(|(_, record)| record.is_committed)
            .flat_map(|(at, record)| record.appended.values().flatten().map(move |v| (*v, at)))
            .collect();
        for list in lists {
            let by: Vec<usize> = list.iter().map(|value| writers[value]).collect();
            by.windows(2).for_each(|pair| order.add(pair[0], pair[1]));
        }
        for (at, record) in records.iter().enumerate() {
            for (key, seen) in &record.seen {
                let list = &lists[*key as usize];
                assert!(list.starts_with(seen), "{key}: {seen:?} was seen, there is {list:?}");
                if let Some(last) = seen.last() {
                    order.add(writers[last], at);
                }
                if let Some(next) = list.get(seen.len()) {
                    order.add(at, writers[next]);
                }
            }
        }
        order
    }

    fn add(&mut self, before: usize, after: usize) {
        if before != after {
            self.after[before].push(after);
        }
    }

    /// A transaction answered before another began precedes it.
    fn add_time(&mut self, records: &[Record]) {
        let count = records.len();
        let mut by_end: Vec<usize> = (0..count).collect();
        by_end.sort_by_key(|at| records[*at].ended);
        for (place, at) in by_end.iter().enumerate() {
            self.add(*at, count + place);
            if place > 0 {
                self.add(count + place - 1, count + place);
            }
        }
        for (at, record) in records.iter().enumerate() {
            let ended = by_end.partition_point(|other| records[*other].ended < record.begun);
            if ended > 0 {
                self.add(count + ended - 1, at);
            }
        }
    }

    /// Transactions that no order explains.
    fn cyclic(&self) -> Vec<usize> {
        let mut before = vec![0; self.after.len()];
        self.after.iter().flatten().for_each(|after| before[*after] += 1);
        let mut free: Vec<usize> = (0..before.len()).filter(|at| before[*at] == 0).collect();
        while let Some(at) = free.pop() {
            for after in &self.after[at] {
                before[*after] -= 1;
                if before[*after] == 0 {
                    free.push(*after);
                }
            }
        }
        (0..before.len()).filter(|at| before[*at] > 0).collect()
    }
}

#[test]
fn there_is_an_order_that_explains_all_that_was_read() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("UNWIND range(0, $n - 1) AS k CREATE (:K {k: k, l: []})", json!({"n": KEYS}));
    let records = at_once(server.address, 8, |client, number| run(client, number, size(60, 500)));
    let records: Vec<Record> = records.into_iter().flatten().collect();
    let lists: Vec<Vec<u64>> = client
        .run(READ_ALL, json!({}))
        .into_iter()
        .map(|row| serde_json::from_value(row[0].clone()).unwrap())
        .collect();
    let committed = records.iter().filter(|record| record.is_committed);
    let mut wanted: Vec<u64> =
        committed.clone().flat_map(|record| record.appended.values().flatten().copied()).collect();
    let mut there = lists.concat();
    wanted.sort_unstable();
    there.sort_unstable();
    assert!(there == wanted, "what was committed is there once, and nothing else");
    let cyclic = Order::of(&records, &lists).cyclic();
    let some = cyclic.iter().filter_map(|at| records.get(*at)).take(5);
    assert!(cyclic.is_empty(), "{} of them: {:#?}", cyclic.len(), some.collect::<Vec<_>>());
    let overtaken = records.len() - committed.count();
    println!("{} transactions, {overtaken} of them not committed", records.len());
}

#[test]
fn the_order_is_looked_for_in_the_right_way() {
    let record = |seen: &[(u64, &[u64])], appended: &[(u64, u64)]| {
        let mut record = Record { is_committed: true, ..Record::new() };
        record.seen = seen.iter().map(|(key, list)| (*key, list.to_vec())).collect();
        record.appended = appended.iter().map(|(key, value)| (*key, vec![*value])).collect();
        record
    };
    let at_the_same_time = |mut records: Vec<Record>| {
        let (begun, ended) = (records[0].begun, Instant::now());
        records.iter_mut().for_each(|record| (record.begun, record.ended) = (begun, ended));
        records
    };
    // Each reads what the other writes.
    let skewed = at_the_same_time(vec![
        record(&[(0, &[]), (1, &[])], &[(0, 5)]),
        record(&[(0, &[]), (1, &[])], &[(1, 6)]),
    ]);
    assert!(!Order::of(&skewed, &[vec![5], vec![6]]).cyclic().is_empty());
    let fine = at_the_same_time(vec![
        record(&[(0, &[])], &[(0, 5)]),
        record(&[(0, &[5]), (1, &[])], &[(1, 6)]),
    ]);
    assert!(Order::of(&fine, &[vec![5], vec![6]]).cyclic().is_empty());
    // One that began after the other's answer and does not see it.
    let mut late = vec![record(&[(0, &[])], &[(0, 5)])];
    late[0].ended = Instant::now();
    std::thread::sleep(std::time::Duration::from_millis(1));
    late.push(record(&[(0, &[])], &[]));
    assert!(!Order::of(&late, &[vec![5], vec![]]).cyclic().is_empty());
}
