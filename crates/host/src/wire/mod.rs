//! What clients and server say to each other, without a transport: JSON read and written, the
//! parameters of a URL, and every error there is. No I/O, no clock.

pub mod authority;
pub mod json;
pub mod kinds;
pub mod param;
pub mod params;
pub mod problem;
