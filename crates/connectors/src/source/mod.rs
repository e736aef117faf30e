//! Sources: copy a Kafka topic into a log, each record once.
//!
//! Every append contains one `SourceAdvanced`, the cursor of its partition, on the condition that
//! no newer one exists. Records and cursor thus become durable together. If two servers run the
//! same source, the slower one is refused, reads the newest cursor and continues from there. Event
//! ids play no part in this.

mod advance;
mod beginning;
mod definition;
mod intake;
mod interruption;
mod mapping;
mod origin;
mod parts;
mod pump;
mod reject_reason;
mod rejects;
mod template;

pub use advance::oldest_cursor;
pub use definition::{RecordData, SourceDefinition};
pub use origin::{RECORD_REJECTED, SOURCE_ADVANCED};
pub use parts::RecordParts;
pub use pump::{SourcePump, SourcePumpSettings};
pub use template::{Rendering, Template};
