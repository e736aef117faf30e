//! Sources: from a Kafka topic into a log.

mod definition;
mod template;

pub use definition::{RecordData, SourceDefinition};
pub use template::Template;
