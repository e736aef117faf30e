//! A query in the search engine's terms.

use super::index::{Fields, Match};
use super::query::Query;
use crate::view::TopicId;
use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, FuzzyTermQuery, Occur, PhraseQuery,
    Query as Compiled, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

/// Weight of a name relative to a description.
const NAME_BOOST: f32 = 3.0;
/// Score of a word that only starts with the typed one, or is similar to it. Whole words score by
/// their rarity.
const OTHER_WORD: f32 = 0.5;
/// Shorter words must match exactly: too many others are similar.
pub(super) const SHORTEST_NEAR: usize = 4;

/// A query for the index. Every part must occur, each in the name or in the description.
pub(super) fn compile(
    fields: Fields,
    query: &Query,
    topic: Option<TopicId>,
    matched: Match,
) -> Box<dyn Compiled> {
    if query.is_empty() {
        return Box::new(EmptyQuery);
    }
    let mut all: Vec<(Occur, Box<dyn Compiled>)> = Vec::new();
    let mut must = |part: Box<dyn Compiled>| all.push((Occur::Must, part));
    for word in &query.words {
        must(in_either(fields, |field| whole_word(field, word, matched)));
    }
    if let Some(beginning) = &query.beginning {
        must(in_either(fields, |field| begun_word(field, beginning, matched)));
    }
    for phrase in &query.phrases {
        must(in_either(fields, |field| {
            let terms = phrase.iter().map(|word| Term::from_field_text(field, word));
            Box::new(PhraseQuery::new(terms.collect()))
        }));
    }
    if let Some(topic) = topic {
        let of_topic = Term::from_field_u64(fields.topic, topic.into());
        let of_topic = TermQuery::new(of_topic, IndexRecordOption::Basic);
        must(Box::new(ConstScoreQuery::new(Box::new(of_topic), 0.0)));
    }
    Box::new(BooleanQuery::new(all))
}

fn in_either(fields: Fields, part: impl Fn(Field) -> Box<dyn Compiled>) -> Box<dyn Compiled> {
    let of_name = BoostQuery::new(part(fields.name), NAME_BOOST);
    Box::new(BooleanQuery::union(vec![Box::new(of_name), part(fields.description)]))
}

fn exactly(field: Field, word: &str) -> Box<dyn Compiled> {
    let term = Term::from_field_text(field, word);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

/// Typos tolerated in a word.
fn slips(word: &str, matched: Match) -> u8 {
    (matched == Match::Near && word.chars().count() >= SHORTEST_NEAR).into()
}

fn whole_word(field: Field, word: &str, matched: Match) -> Box<dyn Compiled> {
    match slips(word, matched) {
        0 => exactly(field, word),
        slips => {
            let near = FuzzyTermQuery::new(Term::from_field_text(field, word), slips, true);
            either(field, word, near)
        }
    }
}

fn begun_word(field: Field, beginning: &str, matched: Match) -> Box<dyn Compiled> {
    let term = Term::from_field_text(field, beginning);
    either(field, beginning, FuzzyTermQuery::new_prefix(term, slips(beginning, matched), true))
}

/// The exact word has its own score in addition.
fn either(field: Field, word: &str, others: FuzzyTermQuery) -> Box<dyn Compiled> {
    let others = BoostQuery::new(Box::new(others), OTHER_WORD);
    Box::new(BooleanQuery::union(vec![exactly(field, word), Box::new(others)]))
}
