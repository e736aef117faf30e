//! Kafka as a destination, and connections to it.

mod batch;
#[cfg(feature = "kafka")]
mod connector;
mod cursor_topic;
mod destination;
#[cfg(test)]
mod pump_tests;
#[cfg(test)]
mod simulation;
mod warnings;

#[cfg(feature = "kafka")]
pub use connector::connector;
pub use destination::{Connect, KafkaDestination, KafkaDestinationSettings};
pub use warnings::KafkaWarnings;
