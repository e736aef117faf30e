//! The same content, however it is cut, is appended once.

use super::chain::{Chain, Scope};
use super::flights::Flights;
use super::intake::{Intake, Stop};
use super::settings::{BadLine, Ending, Settings};
use crate::problems;
use proptest::prelude::*;
use wellspring_host::kept_types::KeptInLog;
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Log, Options, ReadOptions};
use wellspring_types::Query;

struct Bench {
    _dir: tempfile::TempDir,
    log: Log,
}

/// How a content is sent.
#[derive(Debug, Clone)]
struct ContentCuts {
    /// Most events of a batch.
    batch: usize,
    /// Most lines of a request.
    request: usize,
    /// Most bytes of a block.
    block: usize,
    label: &'static str,
}

const WHOLE: ContentCuts =
    ContentCuts { batch: 1000, request: usize::MAX, block: usize::MAX, label: "" };

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        Bench { _dir: dir, log }
    }

    /// Sends lines as the tool does; returns the numbers of events added and known.
    fn import(&self, lines: &[String], cuts: &ContentCuts) -> Result<(u64, u64), Box<Problem>> {
        let (mut at, mut chain) = (0usize, Chain::START);
        let (mut added, mut known, mut reach) = (0, 0, cuts.request);
        loop {
            let end = lines.len().min(at.saturating_add(reach));
            let settings = Settings {
                scope: Scope { label: cuts.label.to_owned() },
                batch: cuts.batch,
                bad_line: BadLine::Skipped,
                ending: if end == lines.len() { Ending::Here } else { Ending::Later },
                start: chain,
                kept: KeptInLog::default(),
            };
            let key_of = Box::new(|name: &[u8; 16]| format!("{:x}", u128::from_be_bytes(*name)));
            let mut flights = Flights::new(self.log.clone(), settings.start);
            let mut intake = Intake::new(self.log.clone(), key_of, settings);
            for block in lines[at..end].chunks((cuts.block / 64).max(1)) {
                match intake.take(block.concat().as_bytes()) {
                    Ok(()) => flights.carry_out(std::mem::take(&mut intake.orders))?,
                    Err(Stop::Log(problem) | Stop::Line(problem)) => return Err(problem),
                }
            }
            let finished = intake.finish();
            flights.carry_out(std::mem::take(&mut intake.orders))?;
            flights.settle()?;
            finished?;
            let progress = flights.progress;
            added += progress.added;
            known += progress.known;
            at += progress.through.lines as usize;
            chain = progress.through.chain;
            // Unsettled lines are sent again, followed by more.
            reach = if progress.through.lines == 0 { reach * 2 } else { cuts.request };
            if at == lines.len() {
                return Ok((added, known));
            }
        }
    }

    fn contents(&self) -> Vec<String> {
        let mut events = self.log.snapshot().read(&Query::all(), ReadOptions::default());
        let mut all = Vec::new();
        while let Some(event) = events.next().unwrap() {
            all.push(String::from_utf8(event.data().to_vec()).unwrap());
        }
        all
    }
}

fn lines(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(line).collect()
}

fn line(number: usize) -> String {
    format!("{{\"type\":\"T\",\"tags\":[\"n:{number}\"],\"data\":{number}}}\n")
}

fn cuts() -> impl Strategy<Value = ContentCuts> {
    (1..40usize, 1..60usize, 1..4000usize).prop_map(|(batch, request, block)| ContentCuts {
        batch,
        request,
        block,
        label: "",
    })
}

fn is_changed(outcome: &Result<(u64, u64), Box<Problem>>) -> bool {
    matches!(outcome, Err(problem) if problem.kind == &problems::IMPORT_CHANGED)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_is_the_same_import_and_what_has_grown_is_added(
        count in 0..120usize, grown in 0..60usize, first in cuts(), second in cuts(), third in cuts(),
    ) {
        let bench = Bench::new();
        let all = lines(0..count + grown);
        let events = count as u64;
        prop_assert_eq!(bench.import(&all[..count], &first).unwrap(), (events, 0));
        prop_assert_eq!(bench.import(&all[..count], &second).unwrap(), (0, events));
        prop_assert_eq!(bench.import(&all, &third).unwrap(), (grown as u64, events));
        prop_assert_eq!(bench.import(&all, &first).unwrap(), (0, events + grown as u64));
        let want: Vec<String> = (0..count + grown).map(|n| n.to_string()).collect();
        prop_assert_eq!(bench.contents(), want);
    }

    #[test]
    fn equal_lines_are_events_of_their_own(
        count in 1..80usize, kinds in 1..3usize, first in cuts(), second in cuts(),
    ) {
        let bench = Bench::new();
        let all: Vec<String> = (0..count).map(|n| line(n % kinds)).collect();
        let events = count as u64;
        prop_assert_eq!(bench.import(&all, &first).unwrap(), (events, 0));
        prop_assert_eq!(bench.import(&all, &second).unwrap(), (0, events));
    }

    #[test]
    fn a_changed_content_is_refused_before_anything_is_added(
        count in 3..80usize, place in 0.0..1.0f64, what in 0..3u8, first in cuts(), second in cuts(),
    ) {
        let bench = Bench::new();
        let mut all = lines(0..count);
        bench.import(&all, &first).unwrap();
        let at = (count as f64 * place) as usize;
        match what {
            0 => all[at] = line(1000),
            1 => all.insert(at, line(1000)),
            _ => drop(all.remove(at.min(count - 2))),
        }
        let outcome = bench.import(&all, &second);
        prop_assert!(is_changed(&outcome), "{:?}", outcome);
        prop_assert_eq!(bench.log.head(), count as u64);
        let labelled = ContentCuts { label: "again", ..second };
        prop_assert_eq!(bench.import(&all, &labelled).unwrap(), (all.len() as u64, 0));
    }
}

#[test]
fn labels_are_imports_of_their_own_and_each_is_made_once() {
    let bench = Bench::new();
    let all = lines(0..5);
    for label in ["", "a", "b"] {
        let cuts = ContentCuts { label, ..WHOLE };
        assert_eq!(bench.import(&all, &cuts).unwrap(), (5, 0));
        assert_eq!(bench.import(&all, &cuts).unwrap(), (0, 5));
    }
}

#[test]
fn bad_lines_belong_to_no_import() {
    let bench = Bench::new();
    let mut all = lines(0..30);
    all.insert(3, "not an event\n".to_owned());
    all.insert(9, "\n".to_owned());
    assert_eq!(bench.import(&all, &WHOLE).unwrap(), (30, 0));
    assert_eq!(bench.import(&lines(0..30), &WHOLE).unwrap(), (0, 30));
}

#[test]
fn a_first_event_waits_for_the_second_so_that_its_change_is_noticed() {
    let bench = Bench::new();
    let mut all = lines(0..3);
    let one_by_one = ContentCuts { batch: 1, request: 1, block: 1, label: "" };
    assert_eq!(bench.import(&all, &one_by_one).unwrap(), (3, 0));
    all[0] = line(9);
    assert!(is_changed(&bench.import(&all, &WHOLE)));
    // Grown contents of one event have no second event to be recognised by, nor share one.
    for from in [20, 30] {
        assert_eq!(bench.import(&lines(from..from + 1), &WHOLE).unwrap(), (1, 0));
        assert_eq!(bench.import(&lines(from..from + 2), &WHOLE).unwrap(), (1, 1));
        assert_eq!(bench.import(&lines(from..from + 5), &WHOLE).unwrap(), (3, 2));
    }
    assert_eq!(bench.log.head(), 13);
}
