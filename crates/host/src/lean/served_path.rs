//! A fast path as one lean thread serves it: prepared answers, and the head that is likely to be
//! repeated.

use super::answer::Sheet;
use super::repeat::Repeat;
use crate::fast::{AnyFastPath, Varying};

/// An active fast path.
pub(crate) struct Lane<P> {
    pub(crate) path: Box<dyn AnyFastPath>,
    /// Its forms.
    pub(crate) sheets: Vec<Sheet>,
    /// The last head for it.
    pub(crate) repeat: Option<Repeat<P>>,
    /// The varying parts of the current answer.
    pub(crate) varying: Varying,
}

impl<P> Lane<P> {
    /// A path before its first request.
    pub(crate) fn new(path: Box<dyn AnyFastPath>) -> Lane<P> {
        let sheets = path.forms().iter().map(Sheet::of).collect();
        Lane { path, sheets, repeat: None, varying: Varying::new() }
    }
}
