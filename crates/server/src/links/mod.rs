//! The shell of links: what the pure view needs from outside and HTTP does not own.

mod click;
pub(crate) mod limit;
pub(crate) mod peer;
mod redirect;
pub(crate) mod settings;
mod visit;
mod visitor;

pub(crate) use click::{Clicks, record_click};
pub(crate) use redirect::{Redirected, Redirects, Visiting};
pub(crate) use visit::{Told, Visit};
pub(crate) use visitor::{Visitor, VisitorKeys};

/// What every redirect carries besides its `Location`, whichever stack sends it. Nobody may keep
/// it, since the next visit is another click and the link may change; and its target learns no
/// more of where the visitor comes from than the host.
pub(crate) const REDIRECT_HEADERS: [(&str, &str); 2] = [
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("cache-control", "private, no-store"),
];
