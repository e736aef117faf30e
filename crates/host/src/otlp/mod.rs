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

use crate::settings::section;
use crate::setup::SetupError;

section! {
    /// Settings of the export to a collector.
    OtlpConfig from OtlpConfigArgs under "Export to a collector (OTLP)":
    /// Share of requests without a traceparent whose trace is exported, 0 to 1. A traceparent
    /// decides for its own request.
    otlp_sample: f64 = "WELLSPRING_OTLP_SAMPLE", 0.01;
    optional
    /// OpenTelemetry collector for metrics and traces, e.g. http://127.0.0.1:4318 (OTLP over HTTP,
    /// JSON). Requires a build with the feature otlp.
    otlp_endpoint: String = "WELLSPRING_OTLP_ENDPOINT";
}

impl OtlpConfig {
    /// Checks the settings that concern this section alone.
    ///
    /// # Errors
    /// A sentence about `otlp_sample`.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        if !(0.0..=1.0).contains(&self.otlp_sample) {
            return Err(format!("otlp_sample must be from 0 to 1, not {}", self.otlp_sample).into());
        }
        Ok(())
    }
}
