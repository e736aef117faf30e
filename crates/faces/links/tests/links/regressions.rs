//! Regressions, each by example.

use super::history::{Fate, Step};
use super::journal::{Entry, Journal};
use super::properties::folded;
use super::questions::encoded;
use wellspring_face_links::view::{
    Bucket, Change, Code, Command, Context, Create, LinkOutcome, LinkRefusal, Links, Lookup,
    Naming, StagedLinks, StatsRequest, TargetRule, TargetVerdict,
};
use wellspring_host::view::contract::{Decision, View};
use wellspring_types::{AppendCondition, Event, Query};

/// A history with every kind of step.
pub(crate) fn varied() -> Vec<Step> {
    let mut steps = Vec::new();
    for n in 0..12u8 {
        let fate = Fate::Appended;
        steps.push(Step::Create { naming: n % 5, pick: n * 7, url: n, expires: n, tags: n, fate });
        steps.push(Step::Fold(15));
        steps.push(Step::Clicks {
            pick: n * 4,
            count: if n == 7 { 250 } else { n },
            style: n.wrapping_mul(31),
        });
        steps.push(Step::Change { pick: n * 4, members: 0xff, url: n, expires: n, tags: n, fate });
    }
    steps.push(Step::Clicks { pick: 0, count: 250, style: 0b111 });
    steps
}

/// A view of events given by type, tag and data, appended a second apart.
fn view_of(events: &[(&str, &str, &str)]) -> (Links, Vec<Entry>) {
    let entry = |(at, &(event_type, tag, data)): (usize, &(&str, &str, &str))| Entry {
        position: at as u64 + 1,
        at_us: at as u64 * 1_000_000,
        event: Event::json(event_type, &[tag], data),
    };
    let entries: Vec<Entry> = events.iter().enumerate().map(entry).collect();
    (folded(&entries), entries)
}

fn code(text: &str) -> Code {
    Code::parse(text.as_bytes()).expect("a code")
}

const LINK: &str = r#"{"url":"https://example.com/","chosen":"alias"}"#;
const CLICK: &str = r#"{"visitor":"0123456789abcdef","agent":"Firefox"}"#;

#[test]
fn a_click_from_before_the_link_leaves_no_trace_when_it_is_applied_again() {
    let (mut view, entries) =
        view_of(&[("LinkClicked", "clicked:Yci", CLICK), ("LinkCreated", "link:Yci", LINK)]);
    let before = encoded(&view);
    view.apply(&entries[0]);
    assert_eq!(encoded(&view), before);
}

fn decide(view: &Links, staged: &StagedLinks, command: &Command) -> Decision<LinkOutcome> {
    let context = Context { key: [7; 16], reserved: |_| false, targets: Default::default() };
    Links::decide(view.folded(), staged, &context, command).expect("no refusal")
}

fn create(naming: Naming) -> Command {
    let url = "https://example.com/".to_owned();
    Command::Create(Create {
        url,
        naming,
        expires_at_us: None,
        max_clicks: None,
        tags: Vec::new(),
        sealed: None,
    })
}

/// The conflict of a decision based on the first `folded` entries.
fn conflict(entries: Vec<Entry>, folded: u64, decision: &Decision<LinkOutcome>) -> Option<u64> {
    let journal = Journal { entries, now_us: 0 };
    let items = decision.unless.clone();
    journal.conflict(&AppendCondition::no_match_after(Query { items }, folded))
}

#[test]
fn a_deletion_from_before_the_link_forbids_nothing() {
    let (view, mut entries) =
        view_of(&[("LinkDeleted", "link:Yci", "{}"), ("LinkCreated", "link:Yci", LINK)]);
    let deletion = decide(&view, &StagedLinks::default(), &Command::Delete { code: code("Yci") });
    assert_eq!(conflict(entries.clone(), 2, &deletion), None);
    entries.push(Entry { position: 3, ..entries[0].clone() });
    assert_eq!(conflict(entries, 2, &deletion), Some(3));
}

#[test]
fn rubbish_that_opens_links_opens_them() {
    let (view, entries) = view_of(&[("LinksOpened", "links", "rubbish")]);
    let creation = decide(&view, &StagedLinks::default(), &create(Naming::Automatic));
    assert_eq!(creation.events.len(), 1);
    assert_eq!(conflict(entries, 1, &creation), None);
    // An event without its tag is ignored, since no condition would have matched it.
    let (view, _) = view_of(&[("LinksOpened", "linked", "{}")]);
    assert_eq!(decide(&view, &StagedLinks::default(), &create(Naming::Automatic)).events.len(), 2);
}

#[test]
fn a_change_that_comes_to_nothing_leaves_the_creation_before_it_staged() {
    let (view, mut staged) = (Links::new(), StagedLinks::default());
    let creation = decide(&view, &staged, &create(Naming::Alias(code("Yci"))));
    Links::stage(&mut staged, &creation, 1);
    let url = Some("https://changed.example/".to_owned());
    let change = Command::Change(Change {
        code: code("Yci"),
        url,
        enabled: None,
        expires_at_us: None,
        max_clicks: None,
        tags: None,
        sealed: None,
    });
    let changed = decide(&view, &staged, &change);
    Links::stage(&mut staged, &changed, 2);
    Links::settle(&mut staged, 2);
    let context = Context { key: [7; 16], reserved: |_| false, targets: Default::default() };
    let again =
        Links::decide(view.folded(), &staged, &context, &create(Naming::Alias(code("Yci"))));
    assert_eq!(again.err(), Some(LinkRefusal::AliasTaken(code("Yci"))));
    Links::settle(&mut staged, 1);
    decide(&view, &staged, &create(Naming::Alias(code("Yci"))));
}

#[test]
fn a_referrer_too_long_to_be_one_is_none() {
    let long =
        format!(r#"{{"visitor":"0","agent":"curl","referrer":"{}"}}"#, "a".repeat(1_000_000));
    let (view, _) =
        view_of(&[("LinkCreated", "link:Yci", LINK), ("LinkClicked", "clicked:Yci", &long)]);
    assert!(encoded(&view).len() < 200);
    let request = StatsRequest { bucket: Bucket::Day, from_us: None, to_us: None };
    let stats = view.folded().stats(code("Yci"), &request).expect("a link");
    assert_eq!((stats.referrers[0].referrer.as_ref(), stats.referrers[0].clicks), (None, 1));
}

#[test]
fn a_target_is_judged_when_it_is_folded_and_again_by_the_rule_a_snapshot_is_read_under() {
    let rule = |refused: &'static str| {
        TargetRule::of(move |target| {
            let is_refused = target.host() == refused;
            if is_refused { TargetVerdict::Refused } else { TargetVerdict::Followed }
        })
    };
    let context = |refused| Context { key: [7; 16], reserved: |_| false, targets: rule(refused) };
    let lookup = |view: &Links| view.folded().lookup(code("Yci"), 0, &mut Vec::new());
    let (_, entries) = view_of(&[
        ("LinkCreated", "link:Yci", LINK),
        ("LinkChanged", "link:Yci", r#"{"tags":["a"]}"#),
        ("LinkChanged", "link:Yci", r#"{"url":"https://other.example/"}"#),
        ("LinkDeleted", "link:Yci", "{}"),
    ]);
    let mut view = Links::with_context(&context("example.com"));
    for (entry, expected) in
        entries.iter().zip([Lookup::Refused, Lookup::Refused, Lookup::Found, Lookup::Deleted])
    {
        view.apply(entry);
        assert_eq!(lookup(&view), expected, "at position {}", entry.position);
        let bytes = encoded(&view);
        let same = Links::restore(&context("example.com"), &mut &*bytes).expect("a snapshot");
        assert_eq!((lookup(&same), encoded(&same)), (expected, bytes.clone()));
        let other = Links::restore(&context("other.example"), &mut &*bytes).expect("a snapshot");
        let turned = match expected {
            Lookup::Refused => Lookup::Found,
            Lookup::Found => Lookup::Refused,
            other => other,
        };
        assert_eq!((lookup(&other), encoded(&other)), (turned, bytes), "no verdict is kept");
    }
}

#[test]
fn a_deterministic_link_whose_codes_are_taken_is_refused_after_so_many() {
    let (mut view, mut taken) = (Links::new(), 0);
    let command = create(Naming::Deterministic);
    let context = Context { key: [7; 16], reserved: |_| false, targets: Default::default() };
    loop {
        let decided = Links::decide(view.folded(), &StagedLinks::default(), &context, &command);
        let code = match decided {
            Ok(Decision { outcome: LinkOutcome::Created(code), .. }) => code,
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => {
                assert_eq!(refusal, LinkRefusal::CandidatesTaken);
                break;
            }
        };
        taken += 1;
        let data = r#"{"url":"https://other.example/","chosen":"alias"}"#;
        let event = Event::json("LinkCreated", &[&format!("link:{code}")], data);
        view.apply(&Entry { position: taken, at_us: taken, event });
    }
    assert_eq!(taken, 64);
}

#[test]
fn clicks_that_are_decided_count_once_whether_they_are_folded_yet_or_not() {
    let limited = r#"{"url":"https://example.com/","chosen":"alias","max_clicks":3}"#;
    let (mut view, _) = view_of(&[("LinkCreated", "link:Yci", limited)]);
    let mut staged = StagedLinks::default();
    let context = Context { key: [7; 16], reserved: |_| false, targets: Default::default() };
    let data = br#"{"visitor":"0123456789abcdef","agent":"curl"}"#.to_vec();
    let click = Command::Click { code: code("Yci"), data };
    let lookup = |view: &Links| view.folded().lookup(code("Yci"), 0, &mut Vec::new());
    assert_eq!(lookup(&view), Lookup::Limited);
    let mut events = Vec::new();
    for ticket in 1..=3 {
        let decision = decide(&view, &staged, &click);
        Links::stage(&mut staged, &decision, ticket);
        events.extend(decision.events);
    }
    let again = |view: &Links, staged: &StagedLinks| {
        Links::decide(view.folded(), staged, &context, &click).map(|decision| decision.outcome)
    };
    let used_up = Err(LinkRefusal::UsedUp(code("Yci")));
    assert_eq!(again(&view, &staged), used_up);
    // One that came to nothing leaves room for another.
    Links::settle(&mut staged, 2);
    assert_eq!(again(&view, &staged), Ok(LinkOutcome::Clicked(code("Yci"))));
    for (position, event) in (2..).zip([&events[0], &events[2]]) {
        view.apply(&Entry { position, at_us: position, event: event.clone() });
    }
    Links::settle(&mut staged, 1);
    Links::settle(&mut staged, 3);
    let decision = decide(&view, &staged, &click);
    view.apply(&Entry { position: 4, at_us: 4, event: decision.events[0].clone() });
    assert_eq!(again(&view, &staged), used_up);
    // From a snapshot, too; and a change of the maximum counts from the beginning.
    let bytes = encoded(&view);
    let restored = Links::decode(&mut &bytes[..]).expect("a snapshot");
    assert_eq!((again(&restored, &staged), encoded(&restored)), (used_up, bytes));
    let changes = [
        (r#"{"max_clicks":4}"#, Lookup::Limited, true),
        (r#"{"max_clicks":0}"#, Lookup::Limited, true),
        (r#"{"max_clicks":null}"#, Lookup::Found, true),
        (r#"{"max_clicks":2}"#, Lookup::Limited, false),
    ];
    for (position, (data, expected, may)) in (5..).zip(changes) {
        let event = Event::json("LinkChanged", &["link:Yci"], data);
        view.apply(&Entry { position, at_us: position, event });
        assert_eq!((lookup(&view), again(&view, &staged).is_ok()), (expected, may), "{data}");
    }
}
