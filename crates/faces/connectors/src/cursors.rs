//! The cursor of a sink whose destination stores none: in the log `system`, so that a new leader
//! continues from it.

use crate::view::{ConnectorKey, ConnectorView, advanced};
use std::sync::Arc;
use wellspring_connectors::{Cursor, CursorStore, Fault};
use wellspring_host::view::Live;
use wellspring_log::{Append, EncodedEvents};

/// The cursor of one sink.
pub(crate) struct SystemCursor {
    live: Arc<Live<ConnectorView>>,
    key: ConnectorKey,
    /// The last saved cursor, which the view may not show yet.
    saved: Option<Cursor>,
}

impl SystemCursor {
    /// The cursor of a sink, which the view shows by now if there is one.
    pub(crate) fn new(live: Arc<Live<ConnectorView>>, key: ConnectorKey) -> SystemCursor {
        SystemCursor { live, key, saved: None }
    }
}

impl CursorStore for SystemCursor {
    fn load(&self) -> Option<Cursor> {
        self.saved
            .or_else(|| self.live.folded()?.read(|connectors| connectors.get(&self.key)?.cursor()))
    }

    fn save(&mut self, cursor: Cursor) -> Result<(), Fault> {
        let failed = |why: String| Fault::transient(format!("cannot save the cursor: {why}"));
        let mut events = EncodedEvents::new();
        let event = advanced(&self.key, cursor);
        events.push(&event.as_ref()).map_err(|invalid| failed(invalid.to_string()))?;
        let append = Append { events, ..Append::default() };
        self.live.log().append(append).map_err(|error| failed(error.to_string()))?;
        self.saved = Some(cursor);
        Ok(())
    }
}
