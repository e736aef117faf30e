//! What clients and server exchange, without a transport: JSON reading and writing, the parameters
//! of a URL, and all problems. No I/O, no clock.

pub mod authority;
pub mod effects;
pub mod json;
pub mod kinds;
pub mod ndjson;
pub mod param;
pub mod params;
pub mod problem;
