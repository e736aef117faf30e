//! The index against an independent linear search.

use super::index::{EarlierEntry, ItemText, Match, Searcher, Writer, create};
use super::query::Query;
use super::words::{analyzer, split};
use crate::view::{ItemId, TopicId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
struct Text {
    name: String,
    description: String,
    topic: TopicId,
    withdrawn: bool,
}

/// The words according to the oracle.
fn words(text: &str) -> Vec<String> {
    let plain = text.to_lowercase().replace('è', "e").replace('û', "u").replace('é', "e");
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Whether a text matches; `typed` as parts of words, phrases and whether the last is a prefix.
fn has(item: &Text, typed: &[Part]) -> bool {
    let texts = [words(&item.name), words(&item.description)];
    let any = |is: &dyn Fn(&Vec<String>) -> bool| texts.iter().any(is);
    typed.iter().enumerate().all(|(at, part)| match part {
        Part::Word(word) => {
            let wanted = words(word);
            let last = wanted.len().saturating_sub(1);
            // Trailing non-words do not change which word is last.
            let is_last = typed[at + 1..].iter().all(Part::is_nothing);
            wanted.iter().enumerate().all(|(i, wanted)| {
                any(&|text| {
                    text.iter().any(|word| {
                        if is_last && i == last { word.starts_with(wanted) } else { word == wanted }
                    })
                })
            })
        }
        Part::Phrase(phrase) => {
            let wanted: Vec<String> = words(&phrase.join(" "));
            wanted.is_empty()
                || any(&|text| text.windows(wanted.len()).any(|window| window == wanted))
        }
    })
}

#[derive(Debug, Clone)]
enum Part {
    Word(String),
    Phrase(Vec<String>),
}

impl Part {
    fn is_nothing(&self) -> bool {
        match self {
            Part::Word(word) => words(word).is_empty(),
            Part::Phrase(phrase) => words(&phrase.join(" ")).is_empty(),
        }
    }

    fn typed(&self) -> String {
        match self {
            Part::Word(word) => word.clone(),
            Part::Phrase(phrase) => format!("\"{}\"", phrase.join(" ")),
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "cook", "Cooking", "cookery", "for", "FOR", "the", "crème", "Creme", "brûlée", "a", "an",
        "c++", "wi-fi", "wi", "20", "2001", "日本", "—", "!",
    ])
    .prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = Text> {
    let words = |most| prop::collection::vec(word(), 0..most).prop_map(|words| words.join(" "));
    (words(4), words(9), 1..3_u32, prop::bool::weighted(0.15)).prop_map(
        |(name, description, topic, withdrawn)| Text { name, description, topic, withdrawn },
    )
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => word().prop_map(Part::Word),
        1 => prop::collection::vec(word(), 0..4).prop_map(Part::Phrase),
    ]
}

fn put(writer: &mut Writer, id: ItemId, text: &Text, before: EarlierEntry) {
    let Text { name, description, topic, withdrawn } = text;
    let described = (!withdrawn).then_some(ItemText { name, description, topic: *topic });
    let entry = writer.entry(id, described);
    writer.put(entry, before).unwrap();
}

fn find(searcher: &Searcher, typed: &str, topic: Option<TopicId>) -> (Vec<ItemId>, usize, Match) {
    let mut analyzer = analyzer();
    let query = Query::read(typed, |text| split(&mut analyzer, text));
    let found = searcher.find(&query, topic, 1_000).unwrap();
    let scores: Vec<f32> = found.best.iter().map(|(_, score)| *score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    (found.best.iter().map(|(id, _)| *id).collect(), found.total, found.matched)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn exactly_what_has_all_of_it_is_found(
        rounds in prop::collection::vec(prop::collection::vec((1..30_u32, text()), 1..12), 1..4),
        asked in prop::collection::vec((prop::collection::vec(part(), 1..4), prop::option::of(1..3_u32)), 1..12),
    ) {
        let (mut writer, searcher) = create().unwrap();
        let mut items: BTreeMap<ItemId, Text> = BTreeMap::new();
        for round in rounds {
            for (id, text) in round {
                put(&mut writer, id, &text, EarlierEntry::Perhaps);
                items.insert(id, text);
            }
            writer.commit().unwrap();
            writer.tidy().unwrap();
            for (parts, topic) in &asked {
                let typed = parts.iter().map(Part::typed).collect::<Vec<_>>().join(" ");
                let (found, total, matched) = find(&searcher, &typed, *topic);
                prop_assert_eq!(found.len(), total);
                let found: BTreeSet<ItemId> = found.into_iter().collect();
                prop_assert_eq!(found.len(), total, "none twice");
                let is_nothing = parts.iter().all(Part::is_nothing);
                let expected: BTreeSet<ItemId> = items
                    .iter()
                    .filter(|(_, item)| !item.withdrawn && topic.is_none_or(|topic| topic == item.topic))
                    .filter(|(_, item)| !is_nothing && has(item, parts))
                    .map(|(id, _)| *id)
                    .collect();
                if expected.is_empty() && !found.is_empty() {
                    prop_assert_eq!(matched, Match::Near, "{}", typed);
                } else {
                    prop_assert_eq!(matched, Match::Exact);
                    prop_assert_eq!(found, expected, "{}", typed);
                }
            }
        }
        prop_assert_eq!(searcher.items(), items.values().filter(|item| !item.withdrawn).count() as u64);
    }

    #[test]
    fn whatever_is_typed_is_answered(typed in "[a-zé \"'*+()!~:^\\\\日0-9]{0,80}") {
        let (mut writer, searcher) = create().unwrap();
        put(&mut writer, 1, &plain("Cooking for the Impatient", "quick, easy"), EarlierEntry::Nothing);
        writer.commit().unwrap();
        find(&searcher, &typed, None);
    }
}

fn plain(name: &str, description: &str) -> Text {
    Text { name: name.to_owned(), description: description.to_owned(), topic: 1, withdrawn: false }
}

fn index_of(texts: &[(&str, &str)]) -> Searcher {
    let (mut writer, searcher) = create().unwrap();
    for (id, (name, description)) in (1..).zip(texts) {
        put(&mut writer, id, &plain(name, description), EarlierEntry::Nothing);
    }
    writer.commit().unwrap();
    searcher
}

#[test]
fn an_empty_index_is_searched_before_anything_is_written() {
    let (mut writer, searcher) = create().unwrap();
    assert_eq!(find(&searcher, "cooking", None), (vec![], 0, Match::Exact));
    writer.tidy().unwrap();
    writer.commit().unwrap();
    assert_eq!(find(&searcher, "cooking", None), (vec![], 0, Match::Exact));
    put(&mut writer, 1, &plain("Cooking", ""), EarlierEntry::Perhaps);
    writer.commit().unwrap();
    assert_eq!(find(&searcher, "cooking", None), (vec![1], 1, Match::Exact));
}

#[test]
fn names_count_more_than_descriptions_and_whole_words_more_than_beginnings() {
    let searcher = index_of(&[
        ("Distributed systems", "all about cooking"),
        ("Cookingware", "pots"),
        ("Cooking", "for everybody"),
        ("Gardening", "without any"),
        ("Pots", "none"),
        ("Pots", "none"),
    ]);
    let (found, total, _) = find(&searcher, "cooking", None);
    assert_eq!((found[0], total), (3, 3));
    // Among equals, the one added first.
    assert_eq!(find(&searcher, "\"pots\"", None).0, [5, 6, 2]);
}

#[test]
fn a_slip_is_forgiven_if_nothing_else_is_found() {
    let searcher = index_of(&[("RPCs for Dummies", ""), ("Dumplings", ""), ("Cats", "")]);
    assert_eq!(find(&searcher, "dumplings", None), (vec![2], 1, Match::Exact));
    assert_eq!(find(&searcher, "dumimes", None), (vec![1], 1, Match::Near));
    assert_eq!(find(&searcher, "dunmi", None), (vec![1], 1, Match::Near));
    assert_eq!(find(&searcher, "rpcs dunmi", None), (vec![1], 1, Match::Near));
    assert_eq!(find(&searcher, "cta", None), (vec![], 0, Match::Exact), "too short");
    assert_eq!(find(&searcher, "?!", None), (vec![], 0, Match::Exact));
}
