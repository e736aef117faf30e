//! A text with the matches marked: HTML whose only tags are `<em>` and `</em>`.

use super::index::Match;
use super::near::{TypedPart, is_near};
use super::query::Query;
use super::words::{Word, words};
use tantivy::tokenizer::TextAnalyzer;

/// Approximate size of an excerpt in bytes.
const EXCERPT_BYTES: usize = 240;
/// Approximate bytes before the first match.
const BEFORE_BYTES: usize = 40;

/// The shown part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// Around most matches, or the beginning.
    Excerpt,
}

/// A text with the matches marked.
pub(super) fn highlight(
    analyzer: &mut TextAnalyzer,
    query: &Query,
    matched: Match,
    text: &str,
    extent: Extent,
) -> String {
    let words = words(analyzer, text);
    let marked = marked(&words, query, matched);
    let (from, to) = match extent {
        Extent::Excerpt if text.len() > EXCERPT_BYTES => excerpt(text, &words, &marked),
        Extent::Excerpt | Extent::Whole => (0, text.len()),
    };
    let mut out = String::with_capacity(to - from + 32);
    if from > 0 {
        out.push('…');
    }
    let mut at = from;
    for (word, is_marked) in words.iter().zip(&marked) {
        if *is_marked && word.bytes.start >= at && word.bytes.end <= to {
            push_escaped(&mut out, &text[at..word.bytes.start]);
            out.push_str("<em>");
            push_escaped(&mut out, &text[word.bytes.clone()]);
            out.push_str("</em>");
            at = word.bytes.end;
        }
    }
    push_escaped(&mut out, &text[at..to]);
    if to < text.len() {
        out.push('…');
    }
    out
}

/// The words that match the query.
fn marked(words: &[Word], query: &Query, matched: Match) -> Vec<bool> {
    let is_it = |word: &str, typed: &str, whole: TypedPart| match matched {
        Match::Near if typed.chars().count() >= super::compile::SHORTEST_NEAR => {
            is_near(word, typed, whole)
        }
        Match::Exact | Match::Near => match whole {
            TypedPart::Word => word == typed,
            TypedPart::Beginning => word.starts_with(typed),
        },
    };
    let begins = |word: &str| {
        let beginning = query.beginning.as_deref();
        beginning.is_some_and(|beginning| is_it(word, beginning, TypedPart::Beginning))
    };
    let of_word = |Word { word, .. }: &Word| {
        begins(word) || query.words.iter().any(|typed| is_it(word, typed, TypedPart::Word))
    };
    let mut marked: Vec<bool> = words.iter().map(of_word).collect();
    for phrase in &query.phrases {
        for at in 0..(words.len() + 1).saturating_sub(phrase.len()) {
            let here = &words[at..at + phrase.len()];
            if here.iter().map(|word| &word.word).eq(phrase) {
                marked[at..at + phrase.len()].fill(true);
            }
        }
    }
    marked
}

/// The range of an excerpt: at word boundaries, around most of the marked words.
fn excerpt(text: &str, words: &[Word], marked: &[bool]) -> (usize, usize) {
    let hits: Vec<&Word> = words
        .iter()
        .zip(marked)
        .filter(|(_, is_marked)| **is_marked)
        .map(|(word, _)| word)
        .collect();
    let (mut best, mut most, mut last) = (0, 0, 0);
    for (first, hit) in hits.iter().enumerate() {
        let end = hit.bytes.start + EXCERPT_BYTES - BEFORE_BYTES;
        last = last.max(first);
        while last < hits.len() && hits[last].bytes.end <= end {
            last += 1;
        }
        if last - first > most {
            (best, most) = (hit.bytes.start, last - first);
        }
    }
    let from = match best.saturating_sub(BEFORE_BYTES) {
        0 => 0,
        least => {
            let next = words.iter().map(|word| word.bytes.start).find(|start| *start >= least);
            next.unwrap_or(0).min(best)
        }
    };
    let ends = words.iter().map(|word| word.bytes.end).filter(|end| *end > from);
    let to = ends.take_while(|end| *end <= from + EXCERPT_BYTES).last();
    // A word longer than an excerpt is cut.
    let to = to.unwrap_or_else(|| text.floor_char_boundary(from + EXCERPT_BYTES));
    let is_last = words.last().is_none_or(|word| word.bytes.end <= to);
    (from, if is_last && text.len() - to < BEFORE_BYTES { text.len() } else { to })
}

fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::{analyzer, split};
    use super::*;

    fn marked(typed: &str, matched: Match, text: &str, extent: Extent) -> String {
        let mut analyzer = analyzer();
        let query = Query::read(typed, |text| split(&mut analyzer.clone(), text));
        highlight(&mut analyzer, &query, matched, text, extent)
    }

    #[test]
    fn what_was_found_is_marked_and_all_else_is_escaped() {
        for (typed, text, expected) in [
            ("cook", "Cooking & <b>", "<em>Cooking</em> &amp; &lt;b&gt;"),
            ("creme br", "A Crème \"brûlée\"", "A <em>Crème</em> &quot;<em>brûlée</em>&quot;"),
            ("\"a b\"", "a b a c b", "<em>a</em> <em>b</em> a c b"),
            ("x", "it's", "it&#39;s"),
            ("\"a b c\"", "a", "a"),
        ] {
            assert_eq!(marked(typed, Match::Exact, text, Extent::Whole), expected, "{typed}");
        }
        let near = marked("dumies", Match::Near, "RPCs for Dummies", Extent::Whole);
        assert_eq!(near, "RPCs for <em>Dummies</em>");
    }

    #[test]
    fn of_a_long_text_the_part_with_most_of_it_is_shown() {
        let text = format!(
            "{}one {}one two one. {}",
            "x ".repeat(300),
            "y ".repeat(300),
            "z ".repeat(300)
        );
        let shown = marked("one two", Match::Exact, &text, Extent::Excerpt);
        assert!(shown.starts_with("…y y") && shown.ends_with("z…"), "{shown}");
        assert!(shown.contains("<em>one</em> <em>two</em> <em>one</em>."), "{shown}");
        assert!((200..300).contains(&shown.len()), "{shown}");
        let shown = marked("nothing", Match::Exact, &text, Extent::Excerpt);
        assert!(shown.starts_with("x x") && shown.ends_with("x…"), "{shown}");
        for odd in
            ["é".repeat(500), "!".repeat(500), format!("{}é", "!".repeat(239)), "…".repeat(200)]
        {
            assert!(!marked("é", Match::Exact, &odd, Extent::Excerpt).is_empty());
        }
    }
}
