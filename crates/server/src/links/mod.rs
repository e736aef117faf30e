//! The shell of links: what the pure view needs from outside and HTTP does not own.

pub(crate) mod limit;
pub(crate) mod peer;
pub(crate) mod settings;
