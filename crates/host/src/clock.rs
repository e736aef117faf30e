//! The door through which time enters the server. Formatting is in [`wellspring_types::moment`].

use std::sync::Arc;
use wellspring_log::{Clock, SystemClock};

/// The clock of the whole process, logs included: a lease's end is only meaningful on the clock
/// that granted it.
pub fn system() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

pub use wellspring_types::moment::{MOMENT_RULE, parse_rfc3339, push_rfc3339};
