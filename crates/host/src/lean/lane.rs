//! A fast path as one lean thread serves it: its answers written down, the head that is likely to
//! come again.

use super::answer::Sheet;
use super::repeat::Repeat;
use crate::fast::{AnyFastPath, Varying};

/// A fast path at work.
pub(crate) struct Lane<P> {
    pub(crate) path: Box<dyn AnyFastPath>,
    /// Its forms.
    pub(crate) sheets: Vec<Sheet>,
    /// The last head that was for it.
    pub(crate) repeat: Option<Repeat<P>>,
    /// What varies of the answer at hand.
    pub(crate) varying: Varying,
}

impl<P> Lane<P> {
    /// A path that nobody has asked for anything.
    pub(crate) fn new(path: Box<dyn AnyFastPath>) -> Lane<P> {
        let sheets = path.forms().iter().map(Sheet::of).collect();
        Lane { path, sheets, repeat: None, varying: Varying::new() }
    }
}
