//! Export to an OpenTelemetry collector: a span for some requests, and all figures every ten
//! seconds, as JSON over HTTP (decision 0011). Only with the feature `otlp`; without it there is
//! nothing here but the words that say so.
//!
//! ```text
//! request ─► begin: from traceparent, or by chance ─► end: a span ─► bounded queue ─┐
//!                                                                                  ├─► thread ─► POST
//!                                                     figures, every ten seconds ──┘
//! ```

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod context;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod figures;
#[cfg(feature = "otlp")]
mod live;
#[cfg(feature = "otlp")]
mod span;

#[cfg(not(feature = "otlp"))]
pub(crate) use absent::{Otlp, Trace, start};
#[cfg(feature = "otlp")]
pub(crate) use export::start;
#[cfg(feature = "otlp")]
pub(crate) use live::{Otlp, Trace};

use crate::audit::Done;
use wellspring_types::Position;

/// What a span tells of a request besides its trace.
#[cfg_attr(not(feature = "otlp"), allow(dead_code))]
pub(crate) struct Told<'a> {
    /// The request and its answer.
    pub(crate) done: &'a Done<'a>,
    /// The position the answer reflects.
    pub(crate) position: Option<Position>,
    /// When the log was handed something and when it had made it durable, on the monotonic clock, µs.
    pub(crate) commit_us: Option<(u64, u64)>,
    /// When the answer was known, on the monotonic clock, µs.
    pub(crate) now_us: u64,
}
