//! Ranks the answers to a question by BM25: words that are rare, occur often and in short texts
//! weigh more.

use super::matching::{Counts, PlainWords};
use super::query::TextQuery;

/// A document: the words of its texts, by the key of their property.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) texts: Vec<(String, Vec<String>)>,
}

impl Document {
    /// Number of its words.
    pub(crate) fn len(&self) -> usize {
        self.texts.iter().map(|(_, words)| words.len()).sum()
    }
}

/// A question and what is known of the documents so far.
pub(crate) struct Ranking<D> {
    query: TextQuery,
    plain: PlainWords,
    /// Number of documents, and of their words.
    documents: u64,
    words: u64,
    /// The number of documents in which each leaf occurs.
    found_in: Vec<u64>,
    /// The answers.
    answers: Vec<Answer<D>>,
}

struct Answer<D> {
    document: D,
    counts: Counts,
    words: usize,
}

/// How soon further occurrences of a word weigh less.
const SATURATION: f64 = 1.2;
/// How much the length of a document matters.
const LENGTH_WEIGHT: f64 = 0.75;

impl<D> Ranking<D> {
    /// Of no documents yet.
    pub(crate) fn new(query: TextQuery) -> Self {
        let (plain, found_in) = (query.plain_words(), vec![0; query.leaves.len()]);
        Self { query, plain, documents: 0, words: 0, found_in, answers: Vec::new() }
    }

    /// Bytes that an answer takes.
    pub(crate) fn answer_bytes(&self) -> u64 {
        (size_of::<Answer<D>>() + self.found_in.len() * size_of::<u32>()) as u64
    }

    /// Steps that a document takes.
    pub(crate) fn steps_of(&self, content: &Document) -> u64 {
        let words = content.len() * (8 + self.query.compared());
        let texts = content.texts.len() * self.query.leaves.len();
        1 + (words + texts) as u64 / 8
    }

    /// Takes a document, and says whether it is an answer. One without words is not counted.
    pub(crate) fn take(&mut self, document: D, content: &Document) -> bool {
        let words = content.len();
        if words == 0 {
            return false;
        }
        self.documents += 1;
        self.words += words as u64;
        let counts = self.query.count(&self.plain, content);
        for (found_in, count) in self.found_in.iter_mut().zip(&counts) {
            *found_in += u64::from(*count > 0);
        }
        let is_answer = self.query.root.is_met(&counts);
        if is_answer {
            self.answers.push(Answer { document, counts, words });
        }
        is_answer
    }

    /// The answers with their scores, the best first; among equals those that were taken first.
    pub(crate) fn finish(self) -> Vec<(D, f64)> {
        let mut counted = vec![false; self.found_in.len()];
        self.query.root.each_counted(&mut |at| {
            if let Some(counted) = counted.get_mut(at) {
                *counted = true;
            }
        });
        let average = self.words as f64 / self.documents.max(1) as f64;
        let weights = self.found_in.iter().zip(&self.query.leaves).zip(counted);
        let weights = weights.map(|((found_in, leaf), is_counted)| {
            let (all, found_in) = (self.documents as f64, *found_in as f64);
            let rarity = (1.0 + (all - found_in + 0.5) / (found_in + 0.5)).ln();
            if is_counted { rarity * leaf.boost } else { 0.0 }
        });
        let weights: Vec<f64> = weights.collect();
        let score = |answer: &Answer<D>| {
            let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * answer.words as f64 / average;
            let scores = answer.counts.iter().zip(&weights).map(|(count, weight)| {
                let count = f64::from(*count);
                weight * count * (SATURATION + 1.0) / (count + SATURATION * length)
            });
            scores.sum::<f64>()
        };
        let scored = self.answers.into_iter().map(|answer| {
            let score = score(&answer);
            (answer.document, score)
        });
        let mut scored: Vec<(D, f64)> = scored.collect();
        scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        scored
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Ranking, TextQuery, words};

    fn ranked(question: &str, texts: &[&str]) -> Vec<usize> {
        let mut ranking = Ranking::new(TextQuery::read(question).unwrap());
        for (at, text) in texts.iter().enumerate() {
            let document = Document { texts: vec![("k".to_owned(), words(text).collect())] };
            ranking.take(at, &document);
        }
        ranking.finish().into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn the_best_answers_come_first() {
        let texts = ["a b c d e f", "a", "b b a", "x", "", "rare a b"];
        assert_eq!(ranked("a", &texts), [1, 2, 5, 0]);
        assert_eq!(ranked("rare a", &texts), [5, 1, 2, 0]);
        assert_eq!(ranked("a AND NOT b", &texts), [1]);
        assert_eq!(ranked("\"b c\"", &texts), [0]);
        assert_eq!(ranked("k:x j:a", &texts), [3]);
        assert_eq!(ranked("-a", &texts), [] as [usize; 0]);
        assert_eq!(ranked("*:* -a", &texts), [3]);
        assert_eq!(ranked("rar* b^0.1", &texts), [5, 2, 0]);
    }

    proptest::proptest! {
        #[test]
        fn any_question_is_answered_or_refused(
            question in "[ab:()\"*?~^+!\\\\&|.0-9 -]{0,40}", text in "[abc ]{0,20}",
        ) {
            if let Ok(query) = TextQuery::read(&question) {
                let mut ranking = Ranking::new(query);
                let document = Document { texts: vec![("a".to_owned(), words(&text).collect())] };
                let is_answer = ranking.take((), &document);
                let answers = ranking.finish();
                assert_eq!(answers.len(), usize::from(is_answer));
                assert!(answers.iter().all(|(_, score)| score.is_finite() && *score >= 0.0));
            }
        }
    }
}
