//! Sources: from a Kafka topic into a log, each record once.
//!
//! Every append of events carries one `SourceAdvanced`, the cursor of its partition, under the
//! condition that there is no newer one. So a record and the cursor behind it are durable together,
//! and of two servers that run the same source the slower is refused, reads the newest cursor and
//! goes on from there. Nothing rests on the ids of events.

mod advance;
mod beginning;
mod definition;
mod intake;
mod interruption;
mod mapping;
mod origin;
mod parts;
mod pump;
mod rejects;
mod template;

pub use definition::{RecordData, SourceDefinition};
pub use origin::{RECORD_REJECTED, SOURCE_ADVANCED};
pub use parts::RecordParts;
pub use pump::{SourcePump, SourcePumpSettings};
pub use template::{Rendering, Template};
