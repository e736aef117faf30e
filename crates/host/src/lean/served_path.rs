//! A fast path as one lean thread serves it: prepared answers, and the head that is likely to be
//! repeated.

use super::answer::EncodedForm;
use super::repeat::Repeat;
use crate::fast::{AnyFastPath, Varying};

/// An active fast path.
pub(crate) struct ServedPath<P> {
    pub(crate) path: Box<dyn AnyFastPath>,
    pub(crate) forms: Vec<EncodedForm>,
    /// The last head for it.
    pub(crate) repeat: Option<Repeat<P>>,
    /// The varying parts of the current answer.
    pub(crate) varying: Varying,
}

impl<P> ServedPath<P> {
    /// A path before its first request.
    pub(crate) fn new(path: Box<dyn AnyFastPath>) -> ServedPath<P> {
        let forms = path.forms().iter().map(EncodedForm::of).collect();
        ServedPath { path, forms, repeat: None, varying: Varying::new() }
    }
}
