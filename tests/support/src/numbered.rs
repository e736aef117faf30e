//! Connections that send numbered events by `POST /e`, each in its own way, and record the answers.
//! The contents of a log are checked against these records.

use crate::client::{Answer, Client};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Seeded random numbers: a failing cycle can be repeated.
pub struct Coins(u64);

impl Coins {
    pub fn new(seed: u64) -> Coins {
        Coins(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// How a connection sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// One request at a time.
    Single,
    /// 1 to 16 requests in one write.
    Pipelined,
    /// Pipelined, with tags in the target.
    Tagged,
    /// NDJSON bodies.
    Lines,
    /// Every third request with `ack=durable`, pipelined with others.
    SomeDurable,
    /// Sends a request for another route now and then, in the middle of a burst, and continues.
    Crosses,
    /// All of these, plus large and chunked bodies.
    Mixed,
    /// Pipelined, each burst split at random places into several segments.
    Torn,
}

pub const HABITS: [Habit; 8] = [
    Habit::Single,
    Habit::Pipelined,
    Habit::Tagged,
    Habit::Lines,
    Habit::SomeDurable,
    Habit::Crosses,
    Habit::Mixed,
    Habit::Torn,
];

/// What a connection knows of one of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// 202: in memory at least.
    Accepted,
    /// 202 to `ack=durable`.
    Durable,
    /// Refused with a problem: must not be stored.
    Refused,
    /// No answer, or an answer that the outcome is unknown.
    Unknown,
}

/// One request: its events are numbered from `first`.
#[derive(Debug, Clone, Copy)]
pub struct SentBatch {
    pub first: u64,
    pub events: u64,
    pub fate: Fate,
    /// When the answer had been read.
    pub answered: Option<Instant>,
    durable: bool,
}

/// Everything one connection sent, in order.
#[derive(Debug)]
pub struct Ledger {
    pub name: String,
    pub habit: Habit,
    pub sent: Vec<SentBatch>,
}

impl Ledger {
    fn tags(&self) -> Vec<String> {
        tags(self.habit, &self.name)
    }

    /// Events of requests answered with 202.
    pub fn answered(&self) -> u64 {
        let answered = |s: &&SentBatch| matches!(s.fate, Fate::Accepted | Fate::Durable);
        self.sent.iter().filter(answered).map(|s| s.events).sum()
    }
}

fn tags(habit: Habit, name: &str) -> Vec<String> {
    match habit {
        Habit::Tagged => vec![format!("connection:{name}"), "tagged".to_owned()],
        _ => Vec::new(),
    }
}

/// The data of event `n`: mostly short, sometimes longer than a read buffer.
fn data(habit: Habit, name: &str, n: u64) -> String {
    let fill = match n {
        _ if habit != Habit::Mixed => 0,
        n if n % 97 == 96 => 100_000,
        n if n % 13 == 12 => 3_000,
        _ => 0,
    };
    format!(r#"{{"c":"{name}","n":{n},"fill":"{}"}}"#, "x".repeat(fill))
}

/// One connection at work.
struct Pusher {
    ledger: Ledger,
    coins: Coins,
    next: u64,
    rounds: u64,
}

impl Pusher {
    /// Adds a request of one or more events to the burst.
    fn request(&mut self, burst: &mut Vec<u8>, path: &str, durable: bool) {
        let (habit, name) = (self.ledger.habit, self.ledger.name.clone());
        let lines = match habit {
            Habit::Lines => 1 + self.coins.below(5),
            Habit::Mixed if self.coins.below(5) == 0 => 1 + self.coins.below(3),
            _ => 0,
        };
        let (first, events) = (self.next, lines.max(1));
        self.next += events;
        let body: Vec<String> = (first..self.next).map(|n| data(habit, &name, n)).collect();
        let body = body.join("\n");
        let media = if lines > 0 { "Content-Type: application/x-ndjson\r\n" } else { "" };
        let mut query: Vec<String> =
            tags(habit, &name).iter().map(|t| format!("tag={t}")).collect();
        if durable {
            query.push("ack=durable".to_owned());
        }
        let query = query.join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        let head = format!("POST {path}{mark}{query} HTTP/1.1\r\nHost: l\r\n{media}");
        burst.extend_from_slice(head.as_bytes());
        if habit == Habit::Mixed && self.coins.below(4) == 0 {
            let half = body.len() / 2;
            let chunks = format!(
                "Transfer-Encoding: chunked\r\n\r\n{half:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                &body[..half],
                body.len() - half,
                &body[half..]
            );
            burst.extend_from_slice(chunks.as_bytes());
        } else {
            burst.extend_from_slice(
                format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes(),
            );
        }
        let fate = Fate::Unknown;
        self.ledger.sent.push(SentBatch { first, events, fate, answered: None, durable });
    }

    /// One burst and its answers. `Err` when the connection is over.
    fn round(&mut self, client: &mut Client) -> io::Result<()> {
        self.rounds += 1;
        let habit = self.ledger.habit;
        let depth = match habit {
            Habit::Single | Habit::Lines => 1,
            Habit::SomeDurable => 1 + self.coins.below(4),
            _ => 1 + self.coins.below(16),
        };
        // The other route comes in the middle of a burst: the lean loop has already read what
        // follows it.
        let crosses = habit == Habit::Crosses && self.rounds % 20 == 10;
        let path = if habit == Habit::Torn { "/v1/logs/main/e" } else { "/e" };
        let mut burst = Vec::new();
        let mut expected = Vec::new();
        for i in 0..depth {
            if crosses && i == depth / 2 {
                burst.extend_from_slice(b"GET /health HTTP/1.1\r\nHost: l\r\n\r\n");
                expected.push(None);
            }
            let durable = match habit {
                Habit::SomeDurable => self.next % 3 == 2,
                Habit::Mixed => self.coins.below(12) == 0,
                _ => false,
            };
            expected.push(Some(self.ledger.sent.len()));
            self.request(&mut burst, path, durable);
        }
        self.write(client, &burst)?;
        for at in expected {
            let answer = client.answer()?;
            match at {
                Some(at) => self.ledger.sent[at].note(&answer),
                None => assert_eq!(answer.status, 200, "{answer:?}"),
            }
        }
        Ok(())
    }

    fn write(&mut self, client: &mut Client, burst: &[u8]) -> io::Result<()> {
        let mut rest = burst;
        while self.ledger.habit == Habit::Torn && rest.len() > 1 && self.coins.below(4) > 0 {
            let (piece, after) =
                rest.split_at(1 + self.coins.below(rest.len() as u64 - 1) as usize);
            client.send(piece)?;
            rest = after;
            if self.coins.below(4) == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        client.send(rest)
    }
}

impl SentBatch {
    fn note(&mut self, answer: &Answer) {
        let about = || String::from_utf8_lossy(&answer.body).into_owned();
        match answer.status {
            202 => {
                assert_eq!(answer.body, br#"{"ok":true}"#);
                self.fate = if self.durable { Fate::Durable } else { Fate::Accepted };
                self.answered = Some(Instant::now());
            }
            500 if about().contains("/problems/outcome-unknown") => self.fate = Fate::Unknown,
            503 => self.fate = Fate::Refused,
            status => panic!("{status}: {}", about()),
        }
    }
}

/// Sends until the connection breaks. `name` must be distinct for every connection of a log.
pub fn push_until_cut(address: SocketAddr, name: &str, habit: Habit, seed: u64) -> Ledger {
    let ledger = Ledger { name: name.to_owned(), habit, sent: Vec::new() };
    let mut pusher = Pusher { ledger, coins: Coins::new(seed), next: 0, rounds: 0 };
    if let Ok(mut client) = Client::connect(address) {
        while pusher.round(&mut client).is_ok() {}
    }
    pusher.ledger
}

/// Everything in the log after a position.
pub fn read_after(client: &mut Client, after: u64) -> Vec<Value> {
    let headers = [("Accept", "application/x-ndjson")];
    let path = format!("/v1/events?after={after}");
    let answer = client.call("GET", &path, &headers, b"").unwrap();
    assert_eq!(answer.status, 200);
    let text = answer.text();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks for each connection that a prefix of what it sent is stored, once, unchanged and in
/// order. Returns the length of that prefix in events, for each ledger.
pub fn prefixes(events: &[Value], ledgers: &[Ledger]) -> Vec<usize> {
    let mut numbers: HashMap<&str, Vec<u64>> = HashMap::new();
    let ledger_of: HashMap<&str, &Ledger> =
        ledgers.iter().map(|ledger| (ledger.name.as_str(), ledger)).collect();
    for event in events {
        let (name, n) =
            (event["data"]["c"].as_str().unwrap(), event["data"]["n"].as_u64().unwrap());
        let ledger = ledger_of.get(name).unwrap_or_else(|| panic!("{event}: never sent"));
        assert_eq!(event["type"], "Ingested");
        assert_eq!(event["tags"], json!(ledger.tags()));
        let expected: Value = serde_json::from_str(&data(ledger.habit, name, n)).unwrap();
        assert_eq!(event["data"], expected, "it has changed");
        numbers.entry(name).or_default().push(n);
    }
    let prefix = |ledger: &Ledger| {
        let there = numbers.get(ledger.name.as_str()).map_or(&[][..], Vec::as_slice);
        let taken = ledger.sent.iter().filter(|sent| sent.fate != Fate::Refused);
        let taken: Vec<u64> = taken.flat_map(|sent| sent.first..sent.first + sent.events).collect();
        let same = there.iter().zip(&taken).take_while(|(a, b)| a == b).count();
        assert!(
            same == there.len(),
            "{} ({:?}): number {same} there is event {}, not {:?}; {} are there, {} were sent",
            ledger.name,
            ledger.habit,
            there[same],
            taken.get(same),
            there.len(),
            taken.len(),
        );
        same
    };
    ledgers.iter().map(prefix).collect()
}

/// The requests of a connection with the number of its events that come before the end of each.
pub fn ends(ledger: &Ledger) -> impl Iterator<Item = (&SentBatch, usize)> {
    let mut end = 0;
    ledger.sent.iter().filter(|sent| sent.fate != Fate::Refused).map(move |sent| {
        end += sent.events as usize;
        (sent, end)
    })
}
