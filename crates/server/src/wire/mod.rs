//! What clients and server say to each other, without a transport: JSON read and written, the
//! parameters of a URL, and every error there is. No I/O, no clock.

pub(crate) mod authority;
pub(crate) mod json;
pub(crate) mod param;
pub(crate) mod params;
pub(crate) mod problem;
