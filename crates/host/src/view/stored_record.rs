//! A stored event as views see it.

use crate::view::contract::LogEvent;
use wellspring_log::RecordView;
use wellspring_types::Position;

/// A record of the log.
pub(super) struct StoredRecord<'a>(pub(super) RecordView<'a>);

impl LogEvent for StoredRecord<'_> {
    fn position(&self) -> Position {
        self.0.position()
    }

    fn recorded_at_us(&self) -> u64 {
        self.0.recorded_at_us()
    }

    fn event_type(&self) -> &str {
        self.0.event_type()
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.0.tags()
    }

    fn data(&self) -> &[u8] {
        self.0.data()
    }
}
