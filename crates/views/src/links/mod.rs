//! Links: the first view. What is pure about a link shortener: codes and the
//! order they are given in, which targets a link may have, which hosts are
//! welcome, and what a click's headers say of its visitor.

pub mod code;
pub mod permutation;

pub use code::{Code, CodeFault, CodeText, MAX_CODE_CHARS};
pub use permutation::Permutation;
