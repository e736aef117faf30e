//! Cycles among the rooms of a crate, and their report.

use crate::modules::Arrow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

/// The rooms from which arrows lead back to themselves, directly or over others.
pub(crate) fn in_circles(arrows: &[Arrow]) -> BTreeSet<String> {
    let rooms: BTreeSet<&str> = arrows.iter().map(|arrow| arrow.from.as_str()).collect();
    rooms.into_iter().filter(|room| circle(arrows, room).is_some()).map(str::to_owned).collect()
}

/// A shortest circle through `room`: its rooms in the order of the arrows, `room` first.
pub(crate) fn circle(arrows: &[Arrow], room: &str) -> Option<Vec<String>> {
    let mut reached_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut unread = VecDeque::from([room]);
    while let Some(from) = unread.pop_front() {
        for arrow in arrows.iter().filter(|arrow| arrow.from == from) {
            if arrow.to == room {
                let back = std::iter::successors(Some(from), |at| reached_from.get(at).copied());
                let mut found: Vec<String> = back.map(str::to_owned).collect();
                found.reverse();
                return Some(found);
            }
            if !reached_from.contains_key(arrow.to.as_str()) {
                reached_from.insert(&arrow.to, from);
                unread.push_back(&arrow.to);
            }
        }
    }
    None
}

/// The cycle, and for each of its arrows one place, with the name used. `folder` precedes the file
/// names.
pub(crate) fn report(arrows: &[Arrow], circle: &[String], folder: &str) -> String {
    let mut text = format!("{folder}: rooms in a circle: {} -> {}", circle.join(" -> "), circle[0]);
    for (from, to) in circle.iter().zip(circle.iter().cycle().skip(1)) {
        let mut these = arrows.iter().filter(|arrow| arrow.from == *from && arrow.to == *to);
        let first = these.next().expect("an arrow of the circle");
        let (file, line) = &first.place;
        _ = write!(text, "\n  {from} takes {} from {to}: {folder}/{file}:{line}", first.name);
        let others = these.count();
        if others > 0 {
            _ = write!(text, " (and {others} more)");
        }
    }
    text
}

#[cfg(test)]
fn arrow(from: &str, to: &str, line: usize) -> Arrow {
    let place = (format!("{from}.rs"), line);
    Arrow { from: from.to_owned(), to: to.to_owned(), name: format!("{to}::X"), place }
}

#[test]
fn a_circle_is_found_and_told_with_its_places() {
    let arrows = [
        arrow("a", "b", 1),
        arrow("b", "c", 2),
        arrow("b", "c", 3),
        arrow("c", "a", 4),
        arrow("c", "d", 5),
        arrow("e", "a", 6),
    ];
    let found = in_circles(&arrows);
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b", "c"]);
    let circle = circle(&arrows, "b").expect("a circle");
    let expected = "crates/x/src: rooms in a circle: b -> c -> a -> b\
        \n  b takes c::X from c: crates/x/src/b.rs:2 (and 1 more)\
        \n  c takes a::X from a: crates/x/src/c.rs:4\
        \n  a takes b::X from b: crates/x/src/a.rs:1";
    assert_eq!(report(&arrows, &circle, "crates/x/src"), expected);
}

#[test]
fn floors_without_a_circle_are_let_be() {
    let arrows = [arrow("a", "b", 1), arrow("a", "c", 2), arrow("b", "d", 3), arrow("c", "d", 4)];
    assert_eq!(in_circles(&arrows), BTreeSet::new());
}
