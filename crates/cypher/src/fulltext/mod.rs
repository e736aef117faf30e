//! Searches for words: how texts are divided, what questions mean, and how answers are ranked.
//! Everything is computed from the texts themselves.

mod matching;
mod query;
mod ranking;
mod words;

pub(crate) use query::TextQuery;
pub(crate) use ranking::{Document, Ranking};
pub(crate) use words::words;
