//! Sources: from a Kafka topic into a log.

mod definition;
mod parts;
mod pointer;
mod template;

pub use definition::{RecordData, SourceDefinition};
pub use parts::RecordParts;
pub use template::{Rendering, Template};
