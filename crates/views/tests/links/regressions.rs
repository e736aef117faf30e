//! Faults that were found, each by example.

use super::history::{Fate, Step};
use super::journal::Entry;
use super::properties::folded;
use super::questions::encoded;
use wellspring_types::Event;
use wellspring_views::links::{Code, Links};
use wellspring_views::view::View;

/// A history with something of everything.
pub(crate) fn varied() -> Vec<Step> {
    let mut steps = Vec::new();
    for n in 0..12u8 {
        let fate = Fate::Appended;
        steps.push(Step::Create { naming: n % 5, pick: n * 7, url: n, expires: n, tags: n, fate });
        steps.push(Step::Fold(15));
        steps.push(Step::Clicks { pick: n * 4, count: if n == 7 { 250 } else { n }, style: n.wrapping_mul(31) });
        steps.push(Step::Change { pick: n * 4, members: 0xff, url: n, expires: n, tags: n, fate });
    }
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
