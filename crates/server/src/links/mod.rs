//! The shell of links: what the pure view needs from outside and HTTP does not own.

mod click;
mod redirect;
mod refusal;
pub(crate) mod settings;
mod targets;
mod visit;
mod visitor;

pub(crate) use click::Clicks;
pub(crate) use redirect::{Redirected, Redirects, Visiting};
pub(crate) use refusal::{deleted, of_lookup, unknown, with_error};
pub(crate) use visit::{Told, Visit};
pub(crate) use visitor::{Visitor, VisitorKeys, turn_daily};

/// `Cache-Control` of every redirect: the next visit is another click, and the link may change.
pub(crate) const REDIRECT_CACHING: &str = "private, no-store";
