//! The same content, however it is cut, is appended once.

use super::super::disclosure::Disclosure;
use super::super::event_json::RecordedTimes;
use super::super::read::push_line;
use super::super::sealing::EventSealer;
use super::chain::{Chain, Scope};
use super::flights::Flights;
use super::intake::{ChunkSealer, Intake, Stop};
use super::settings::{BadLine, Ending, Settings};
use crate::problems;
use proptest::prelude::*;
use wellspring_host::clock::push_rfc3339;
use wellspring_host::kept_types::KeptInLog;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Append, EncodedEvents, Log, Options, ReadOptions};
use wellspring_types::{DataKind, Event, EventId, Query};

/// The first moment of 2020.
const YEAR_2020_US: u64 = 1_577_836_800_000_000;

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
    times: RecordedTimes,
}

const WHOLE: ContentCuts = ContentCuts {
    batch: 1000,
    request: usize::MAX,
    block: usize::MAX,
    label: "",
    times: RecordedTimes::Metadata,
};

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
                times: cuts.times,
                subject_from: None,
                ending: if end == lines.len() { Ending::Here } else { Ending::Later },
                start: chain,
                kept: KeptInLog::default(),
            };
            let key_of = Box::new(|name: &[u8; 16]| format!("{:x}", u128::from_be_bytes(*name)));
            let sealer = ChunkSealer { sealer: EventSealer::refusing(), host: None };
            let mut flights = Flights::new(self.log.clone(), Effects::default(), settings.start);
            let mut intake = Intake::new(self.log.clone(), key_of, settings, sealer);
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

    /// The number, the time and the number of metadata entries of every event.
    fn times(&self) -> Vec<(u64, u64, usize)> {
        let mut events = self.log.snapshot().read(&Query::all(), ReadOptions::default());
        let mut all = Vec::new();
        while let Some(event) = events.next().unwrap() {
            let number = std::str::from_utf8(event.data()).unwrap().parse().unwrap();
            all.push((number, event.recorded_at_us(), event.metadata().count()));
        }
        all
    }

    /// All events as an answer writes them, without their positions.
    fn exported(&self) -> Vec<String> {
        let mut events = self.log.snapshot().read(&Query::all(), ReadOptions::default());
        let mut all = Vec::new();
        while let Some(event) = events.next().unwrap() {
            let mut line = Vec::new();
            push_line(&mut line, &event, &Disclosure::default());
            let line = String::from_utf8(line).unwrap();
            all.push(format!("{{{}", line.split_once(',').unwrap().1));
        }
        all
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
        ..WHOLE
    })
}

/// A line of an export; every third has no time.
fn recorded(number: usize, at_us: u64) -> String {
    let mut time = Vec::new();
    push_rfc3339(&mut time, at_us);
    let time = String::from_utf8(time).unwrap();
    let time = match number % 3 {
        0 => String::new(),
        _ => format!(",\"recorded_at\":\"{time}\""),
    };
    line(number).replace("}\n", &format!(",\"position\":7{time},\"history\":\"00\"}}\n"))
}

fn is_changed(outcome: &Result<(u64, u64), Box<Problem>>) -> bool {
    matches!(outcome, Err(problem) if problem.kind == &problems::IMPORT_CHANGED)
}

/// The text of a JSON value, with white space that nobody would write and texts that end lines.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\u000a\u00e9\ud83d\ude00\/""#.to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let members = prop::collection::vec(("[a-c ]{0,2}", inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|all| format!("[ {}\t]", all.join(" ,"))),
            members.prop_map(|all| {
                // Names may repeat.
                let all = all.iter().map(|(name, value)| format!("\"{name}\" :{value}"));
                format!("{{{} }}", all.collect::<Vec<_>>().join(", "))
            }),
        ]
    })
}

/// Any event, and how many µs it was recorded after the one before it.
fn recorded_event() -> impl Strategy<Value = (Event, u64)> {
    let name = "[a-zé:\"\\\\]{1,12}";
    let name_of_metadata =
        prop_oneof![name, Just("recorded_at".to_owned()), Just("position".to_owned())];
    let data = prop_oneof![
        json().prop_map(|text| (DataKind::Json, text.into_bytes())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| (DataKind::Binary, bytes)),
    ];
    (
        name,
        Just(()).prop_flat_map(move |()| prop::collection::vec(name, 0..6)),
        data,
        proptest::option::of(any::<[u8; 16]>()),
        prop::collection::vec((name_of_metadata, any::<String>()), 0..4),
        0..5u64,
    )
        .prop_map(|(event_type, mut tags, (kind, data), id, mut metadata, after_us)| {
            let mut seen = std::collections::HashSet::new();
            tags.retain(|tag| seen.insert(tag.clone()));
            let mut seen = std::collections::HashSet::new();
            metadata.retain(|(name, _)| seen.insert(name.clone()));
            let id = id.map(EventId);
            (Event { event_type, tags, data, kind, id, metadata }, after_us)
        })
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
    fn an_export_comes_back_as_it_was_in_another_log(
        events in prop::collection::vec(recorded_event(), 1..40), cuts in cuts(),
    ) {
        let bench = Bench::new();
        let mut at_us = YEAR_2020_US;
        let mut ids = std::collections::HashSet::new();
        for (mut event, after_us) in events {
            at_us += after_us;
            event.id = event.id.filter(|id| ids.insert(*id));
            let mut encoded = EncodedEvents::new();
            encoded.push_recorded(&event.as_ref(), at_us).unwrap();
            bench.log.append(Append { events: encoded, ..Append::default() }).unwrap();
        }
        let exported = bench.exported();
        let other = Bench::new();
        let kept = ContentCuts { times: RecordedTimes::Kept, ..cuts };
        prop_assert_eq!(other.import(&exported, &kept).unwrap(), (exported.len() as u64, 0));
        prop_assert_eq!(other.exported(), exported.clone());
        let dropped = ContentCuts { times: RecordedTimes::Dropped, ..WHOLE };
        prop_assert_eq!(other.import(&exported, &dropped).unwrap(), (0, exported.len() as u64));
    }

    #[test]
    fn the_same_content_is_known_whatever_became_of_its_times(
        count in 1..80usize, first in cuts(), second in cuts(), order in 0..6usize,
    ) {
        use RecordedTimes::{Dropped, Kept, Metadata};
        let bench = Bench::new();
        // The times of events without one are later.
        let all: Vec<String> =
            (0..count).filter(|n| n % 3 != 0).map(|n| recorded(n, YEAR_2020_US + n as u64)).collect();
        let events = all.len() as u64;
        let orders = [
            [Kept, Metadata, Dropped], [Kept, Dropped, Metadata], [Metadata, Kept, Dropped],
            [Metadata, Dropped, Kept], [Dropped, Kept, Metadata], [Dropped, Metadata, Kept],
        ];
        let [one, two, three] = orders[order];
        let with = |times, cuts: &ContentCuts| ContentCuts { times, ..cuts.clone() };
        prop_assert_eq!(bench.import(&all, &with(one, &first)).unwrap(), (events, 0));
        prop_assert_eq!(bench.import(&all, &with(two, &second)).unwrap(), (0, events));
        prop_assert_eq!(bench.import(&all, &with(three, &first)).unwrap(), (0, events));
        for (number, time_us, metadata) in bench.times() {
            let is_own = time_us == YEAR_2020_US + number;
            prop_assert_eq!((is_own, metadata), (one == Kept, usize::from(one == Metadata)));
        }
        if events > 2 {
            let mut changed = all;
            let last = changed.len() - 1;
            changed[last] = recorded(count + count % 3 + 1, YEAR_2020_US);
            for times in [Kept, Metadata, Dropped] {
                let outcome = bench.import(&changed, &with(times, &second));
                prop_assert!(is_changed(&outcome), "{:?}", outcome);
                let problem = outcome.unwrap_err();
                prop_assert!(problem.detail.contains(&format!("position {events} (")), "{}", problem.detail);
            }
        }
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

/// A line with an id, made of a number.
fn named(id: usize, data: usize) -> String {
    let id = EventId((id as u128).to_be_bytes());
    format!("{{\"type\":\"T\",\"data\":{data},\"id\":\"{id}\"}}\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn an_id_that_comes_again_is_stored_once(
        ids in prop::collection::vec(0..60usize, 1..120), before in prop::collection::vec(0..60usize, 0..5),
        grown in prop::collection::vec(0..90usize, 0..40), first in cuts(), second in cuts(),
    ) {
        let bench = Bench::new();
        let mut stored = std::collections::HashSet::new();
        for id in before {
            if stored.insert(id) {
                let event = Event { id: Some(EventId((id as u128).to_be_bytes())), ..Event::json("T", &[], &id.to_string()) };
                let mut events = EncodedEvents::new();
                events.push(&event.as_ref()).unwrap();
                bench.log.append(Append { events, ..Append::default() }).unwrap();
            }
        }
        let outside = stored.len() as u64;
        let all: Vec<String> = ids.iter().map(|id| named(*id, *id)).collect();
        let added = ids.iter().filter(|id| stored.insert(**id)).count() as u64;
        prop_assert_eq!(bench.import(&all, &first).unwrap(), (added, 0));
        prop_assert_eq!(bench.import(&all, &second).unwrap(), (0, added));
        let more: Vec<String> = grown.iter().map(|id| named(*id, *id)).collect();
        let more_added = grown.iter().filter(|id| stored.insert(**id)).count() as u64;
        let all = [all, more].concat();
        prop_assert_eq!(bench.import(&all, &second).unwrap(), (more_added, added));
        prop_assert_eq!(bench.import(&all, &first).unwrap(), (0, added + more_added));
        prop_assert_eq!(bench.log.head(), outside + added + more_added);
    }
}

#[test]
fn an_id_with_another_content_is_a_bad_line() {
    for cuts in [WHOLE, ContentCuts { batch: 1, block: 1, ..WHOLE }] {
        let bench = Bench::new();
        let all = [named(1, 1), named(2, 2), named(3, 3), named(1, 9), named(2, 2), named(4, 4)];
        assert_eq!(bench.import(&all, &cuts).unwrap(), (4, 0), "the fourth line is skipped");
        assert_eq!(bench.import(&all, &cuts).unwrap(), (0, 4));
        assert_eq!(bench.contents(), ["1", "2", "3", "4"]);
    }
}

#[test]
fn a_changed_event_with_an_id_is_a_change() {
    let bench = Bench::new();
    let mut all: Vec<String> = (0..9).map(|id| named(id, id)).collect();
    bench.import(&all, &WHOLE).unwrap();
    all[5] = named(5, 50);
    assert!(is_changed(&bench.import(&all, &WHOLE)));
    all.remove(5);
    assert!(is_changed(&bench.import(&all, &WHOLE)));
    assert_eq!(bench.log.head(), 9);
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
fn a_time_that_does_not_fit_stops_the_import_before_its_chunk() {
    let keep = ContentCuts { batch: 2, times: RecordedTimes::Kept, ..WHOLE };
    let earlier = recorded(7, YEAR_2020_US - 1);
    let future = recorded(8, YEAR_2020_US * 10);
    for (bad, why) in
        [(earlier, "is before 2020-01-01T00:00:00.000005Z"), (future, "is in the future")]
    {
        let bench = Bench::new();
        let good = [1, 2, 4, 5, 5].map(|n| recorded(n, YEAR_2020_US + n as u64));
        let all = [&good[..], &[bad]].concat();
        let problem = bench.import(&all, &keep).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("recorded_at"), "{}", problem.detail);
        assert!(problem.detail.starts_with("line 6: "), "{}", problem.detail);
        assert!(problem.detail.contains(why), "{}", problem.detail);
        assert!(bench.log.head() <= 4, "the chunk of the line is not stored");
        // The rest goes in with the times as metadata, and what was stored is known.
        let added = 6 - bench.log.head();
        assert_eq!(bench.import(&all, &WHOLE).unwrap(), (added, 6 - added));
    }
}

#[test]
fn a_time_that_is_none_makes_its_line_invalid() {
    let none = line(10).replace("}\n", ",\"recorded_at\":\"yesterday\"}\n");
    let all = [recorded(1, YEAR_2020_US), none, recorded(2, YEAR_2020_US + 1)];
    let keep = ContentCuts { times: RecordedTimes::Kept, ..WHOLE };
    assert_eq!(Bench::new().import(&all, &keep).unwrap(), (2, 0), "the line is skipped");
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
    let one_by_one = ContentCuts { batch: 1, request: 1, block: 1, ..WHOLE };
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
