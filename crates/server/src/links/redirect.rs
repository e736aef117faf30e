//! Where a link leads, for a thread that serves nothing but redirects and ingest.

use super::click::Clicks;
use super::visit::Visit;
use super::visitor::Visitor;
use crate::http::Shell;
use crate::http::problem::Problem;
use crate::http::routes;
use crate::ingest::Intake;
use std::sync::Arc;
use wellspring_types::Invalid;
use wellspring_views::links::Code;

/// A request for a link.
pub(crate) struct Visiting<'a> {
    /// The code, 1 to 10 letters and digits.
    pub(crate) code: &'a [u8],
    /// What is recorded of the visit.
    pub(crate) visit: &'a Visit,
    /// Who visits.
    pub(crate) visitor: &'a mut Visitor,
    /// Monotonic time of this turn of the loop, µs.
    pub(crate) now_us: u64,
}

/// What became of a request for a link.
#[derive(Debug)]
pub(crate) enum Redirected {
    /// The click is recorded, and where the link leads is appended.
    Found,
    /// It leads nowhere: answer this, go on with the connection.
    Refused(Box<Problem>),
    /// For the general stack, which can wait. Something may have been appended.
    Foreign,
}
