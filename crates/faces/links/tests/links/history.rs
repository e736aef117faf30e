//! Random histories: commands executed as the server does it, interleaved with foreign events.

use super::journal::Journal;
use super::oracle::{DAY_US, HOUR_US, Oracle};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;
use wellspring_face_links::view::event::Key;
use wellspring_face_links::view::{
    Change, Code, Command, Context, Create, LinkOutcome, LinkRefusal, Links, Naming, Permutation,
    SealedTarget, StagedLinks, Status, agent,
};
use wellspring_host::view::contract::{Decision, Ticket, View};
use wellspring_types::moment::MAX_TIME_US;
use wellspring_types::random::{STEP, mix};
use wellspring_types::{AppendCondition, Event, Position, Query};

pub(crate) const URLS: &[&str] = &[
    "http://example.com/test",
    "https://example.com/",
    "HTTPS://Example.COM/Über/ß?q=ÄÖ#ö",
    "http://пример.рф/путь",
    "https://例え.jp/パス",
    "https://example.com/{a}|b^c`\"<>",
    "http://[2001:db8::1]:8080/",
    "https://a.example/ＩＳＴＡＮＢＵＬ/İ",
];
const BAD_URLS: &[&str] = &[
    "",
    "ftp://a",
    "http://",
    "http://u:p@h/",
    "http://a b/",
    "javascript:1",
    "sealed:",
    "sealed:7",
];
const ALIASES: &[&str] =
    &["0", "a1", "Yci", "yCI", "api", "Zed", "zzzzzzzzzz", "promo2026", "A", "000"];
pub(crate) const TAGS: &[&str] = &["a", "é", "größe", "x:y z", "ad \"q\" \\"];
const ATTEMPTS: usize = 16;

pub(crate) fn reserved(word: &str) -> bool {
    word == "api" || word.starts_with(['Z', 'q', '7'])
}

/// What happens to a decision's append.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    /// The log accepts it if the condition allows it.
    Appended,
    /// A foreign event comes first and violates the condition.
    Overtaken,
    /// It is discarded, which the world notices at its next sweep.
    Lost,
}

/// Small numbers select from what exists when the step runs.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create { naming: u8, pick: u8, url: u8, expires: u8, tags: u8, fate: Fate },
    Change { pick: u8, members: u8, url: u8, expires: u8, tags: u8, fate: Fate },
    Delete { pick: u8, fate: Fate },
    Clicks { pick: u8, count: u8, style: u8 },
    Foreign { kind: u8, pick: u8, number: u8 },
    Time(u8),
    Fold(u8),
}

pub(crate) fn any_history(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let n = any::<u8>;
    let fate = || prop_oneof![6 => Just(Fate::Appended), 1 => Just(Fate::Overtaken), 1 => Just(Fate::Lost)];
    let step = prop_oneof![
        8 => (0u8..5, n(), n(), n(), n(), fate()).prop_map(|(naming, pick, url, expires, tags, fate)| {
            Step::Create { naming, pick, url, expires, tags, fate }
        }),
        4 => (n(), n(), n(), n(), n(), fate()).prop_map(|(pick, members, url, expires, tags, fate)| {
            Step::Change { pick, members, url, expires, tags, fate }
        }),
        1 => (n(), fate()).prop_map(|(pick, fate)| Step::Delete { pick, fate }),
        5 => (n(), n(), n()).prop_map(|(pick, count, style)| Step::Clicks { pick, count, style }),
        6 => (0u8..24, n(), n()).prop_map(|(kind, pick, number)| Step::Foreign { kind, pick, number }),
        3 => n().prop_map(Step::Time),
        5 => n().prop_map(Step::Fold),
    ];
    prop::collection::vec(step, 1..steps)
}

/// A log, a view that lags behind it, and the pending decisions.
pub(crate) struct World {
    pub(crate) journal: Journal,
    /// Has seen the whole log, whatever is folded.
    pub(crate) oracle: Oracle,
    pub(crate) live: Links,
    pub(crate) folded: Position,
    staged: StagedLinks,
    /// Unsettled tickets with their last position; `None` if lost.
    open: Vec<(Ticket, Option<Position>)>,
    next_ticket: Ticket,
    /// Counters that this process has assigned.
    numbers: HashSet<u64>,
    /// Number of counters, including foreign ones.
    counted: u64,
    /// Links created by discarded decisions: others may build on them.
    never_were: HashSet<Code>,
}

impl World {
    pub(crate) fn new() -> World {
        World {
            journal: Journal { now_us: 1_795_225_406_952_770, ..Journal::default() },
            oracle: Oracle::default(),
            live: Links::new(),
            folded: 0,
            staged: StagedLinks::default(),
            open: Vec::new(),
            next_ticket: 1,
            numbers: HashSet::new(),
            counted: 0,
            never_were: HashSet::new(),
        }
    }

    pub(crate) fn run(steps: &[Step]) -> World {
        let mut world = World::new();
        steps.iter().for_each(|step| world.step(step));
        world
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Create { naming, pick, url, expires, tags, fate } => {
                let naming = match naming {
                    0 | 1 => Naming::Automatic,
                    2 | 3 => Naming::Alias(self.pick(pick)),
                    _ => Naming::Deterministic,
                };
                let create = Create {
                    url: pick_url(url),
                    naming,
                    expires_at_us: self.pick_expiry(expires),
                    max_clicks: None,
                    tags: pick_tags(tags),
                    sealed: pick_seal(url),
                };
                self.execute(&Command::Create(create), fate);
            }
            Step::Change { pick, members, url, expires, tags, fate } => {
                let member = |bit: u8| members >> bit & 1 == 1;
                let change = Change {
                    code: self.pick(pick),
                    url: member(0).then(|| pick_url(url)),
                    enabled: member(1).then_some(member(2)),
                    expires_at_us: member(3).then(|| self.pick_expiry(expires)),
                    max_clicks: None,
                    tags: member(4).then(|| pick_tags(tags)),
                    sealed: pick_seal(url).filter(|_| member(0)),
                };
                self.execute(&Command::Change(change), fate);
            }
            Step::Delete { pick, fate } => {
                let code = self.pick(pick);
                self.execute(&Command::Delete { code }, fate);
            }
            Step::Clicks { pick, count, style } => self.click(pick, count, style),
            Step::Foreign { kind, pick, number } => {
                let event = self.foreign(kind, pick, number);
                self.append(event);
            }
            Step::Time(jump) => self.journal.now_us += pick_jump(jump),
            Step::Fold(count) => self.fold(self.folded + u64::from(count % 16)),
        }
    }

    /// Applies events up to a position.
    pub(crate) fn fold(&mut self, to: Position) {
        let to = to.min(self.journal.head());
        for entry in &self.journal.entries[self.folded as usize..(to.max(self.folded)) as usize] {
            self.live.apply(entry);
        }
        self.folded = self.folded.max(to);
    }

    pub(crate) fn fold_all(&mut self) {
        self.fold(self.journal.head());
        self.sweep();
    }

    fn append(&mut self, event: Event) -> Position {
        let position = self.journal.append(event);
        self.oracle.fold(self.journal.entries.last().expect("one was appended"));
        // Events may share a time.
        self.journal.now_us += position % 3;
        position
    }

    /// A code that exists, that could exist, or that comes next.
    fn pick(&self, pick: u8) -> Code {
        let known = &self.oracle.links;
        match pick % 4 {
            0 | 1 if !known.is_empty() => known[usize::from(pick / 4) % known.len()].code,
            2 if self.oracle.key.is_some() => self.numbered(u64::from(pick / 4)),
            _ => alias(pick / 4),
        }
    }

    fn numbered(&self, ahead: u64) -> Code {
        let key = self.oracle.key.unwrap_or_default();
        Permutation::new(key).code(self.counted + ahead).expect("a small number")
    }

    fn pick_expiry(&self, pick: u8) -> Option<u64> {
        match pick % 6 {
            0 => Some(self.journal.now_us + u64::from(pick) * HOUR_US),
            1 => Some(self.journal.now_us - u64::from(pick)),
            2 => Some([0, 1, MAX_TIME_US, MAX_TIME_US + 1][usize::from(pick / 6) % 4]),
            _ => None,
        }
    }

    fn click(&mut self, pick: u8, count: u8, style: u8) {
        let code = self.pick(pick);
        let bit = |n: u8| style >> n & 1 == 1;
        let count = if count > 240 { 300 } else { u64::from(count % 6) };
        let people = if bit(0) { 1_000 } else { 5 };
        let hosts = if bit(1) { 100 } else { 4 };
        for nth in 0..count {
            let turn = mixed(nth + u64::from(style) * 1_000);
            let family = agent::FAMILIES
                [(turn >> 8) as usize % if bit(2) { 80 } else { 3 } % agent::FAMILIES.len()];
            let mut data =
                json!({"visitor": format!("{:016x}", mixed(turn % people)), "agent": family});
            if turn >> 16 & 3 > 0 {
                data["referrer"] = format!("h{}.example", (turn >> 20) % hosts).into();
            }
            if bit(3) && turn >> 30 & 3 == 0 {
                data["bot"] = true.into();
            }
            if bit(4) {
                self.journal.now_us += turn % (HOUR_US / 2);
            }
            self.append(Event::json(
                "LinkClicked",
                &[&format!("clicked:{code}")],
                &data.to_string(),
            ));
        }
    }
}

/// Another number for each.
pub(crate) fn mixed(n: u64) -> u64 {
    mix(n.wrapping_add(1).wrapping_mul(STEP))
}

fn alias(pick: u8) -> Code {
    Code::parse(ALIASES[usize::from(pick) % ALIASES.len()].as_bytes()).expect("an alias")
}

fn pick_url(pick: u8) -> String {
    let at = usize::from(pick);
    match pick % 16 {
        15 => BAD_URLS[at / 16 % BAD_URLS.len()].to_owned(),
        14 => format!("https://example.com/{}", "ü".repeat(2_028)),
        _ => URLS[at % URLS.len()].to_owned(),
    }
}

fn pick_seal(pick: u8) -> Option<SealedTarget> {
    (pick % 7 == 6).then(|| SealedTarget { subject: "user:1".into(), parts: Vec::new() })
}

fn pick_tags(pick: u8) -> Vec<String> {
    let mut tags: Vec<String> =
        (0..5).filter(|bit| pick >> bit & 1 == 1).map(|at| TAGS[at].to_owned()).collect();
    match pick >> 5 {
        0 | 1 => tags.clear(),
        2 => tags.push("t".repeat(64 + usize::from(pick & 1))),
        3 => tags.extend((0..usize::from(pick & 31)).map(|n| n.to_string())),
        4 if pick & 1 == 1 => tags.extend([String::new(), "a\n".into()]),
        5 if pick & 1 == 1 => tags.push("a".into()),
        _ => {}
    }
    tags
}

fn pick_jump(jump: u8) -> u64 {
    match jump % 4 {
        0 => u64::from(jump),
        1 => u64::from(jump) * HOUR_US / 64,
        2 => HOUR_US,
        _ => u64::from(jump) * DAY_US / 32,
    }
}

mod foreign;
mod shell;
