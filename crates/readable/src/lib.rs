//! Figures and words as people and machines read them: numbers with units ([`numbers`]),
//! durations ([`duration`]), pages of Prometheus ([`prometheus`]), what of a foreign text is shown
//! ([`text`]), the name that was meant by a mistyped one ([`nearest`]), errors that are a sentence
//! ([`sentence_error`]). Pure.

#![forbid(unsafe_code)]

pub mod duration;
pub mod nearest;
pub mod numbers;
pub mod prometheus;
mod sentence;
pub mod text;
