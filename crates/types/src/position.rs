//! Where an event stands in its log.

/// Place of an event in its log: dense and 1-based. `0` never names an event;
/// as an exclusive lower bound it means "from the beginning".
pub type Position = u64;
