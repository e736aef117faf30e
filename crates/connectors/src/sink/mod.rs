//! Sinks: the pump from a log to another system, and the interface to that system.

mod definition;
mod destination;
mod envelope;
mod pump;

pub use definition::{
    DeliveryMode, KafkaTarget, PayloadFormat, SinkDefinition, StartAt, Target, TopicToCreate,
    WebhookTarget,
};
pub use destination::{BatchLimits, DeliveryEnd, Destination};
pub use envelope::{cloud_event, partition_key};
pub use pump::{CursorKeeper, Pump, PumpSettings};
