//! Kafka as a destination, and how it is reached.

mod connection;

pub use connection::{KafkaConnection, SaslUser};
