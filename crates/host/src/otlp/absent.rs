//! The room without the feature: the same names with nothing behind them.

use super::OtlpConfig;
use crate::record::RequestRecord;
use crate::setup::SetupError;
use crate::stats::family::Family;
use hyper::HeaderMap;
use std::convert::Infallible;
use std::sync::Arc;
use wellspring_log::Clock;

/// No export.
pub struct Otlp;

/// The trace of a request. There is none.
pub(crate) struct Trace(Infallible);

/// A thread that exports. There is none.
pub(crate) struct Exporter(Infallible);

impl Otlp {
    /// No export.
    ///
    /// # Errors
    /// An export is configured.
    pub(crate) fn open(config: &OtlpConfig) -> Result<Otlp, SetupError> {
        match config.otlp_endpoint {
            None => Ok(Otlp),
            Some(_) => Err("--otlp-endpoint: this program was built without OpenTelemetry. Use a \
                            released program, or build with --features otlp"
                .into()),
        }
    }

    /// Whether anything is exported.
    pub fn is_on(&self) -> bool {
        false
    }

    /// No trace.
    pub(crate) fn begin(&self, _: &HeaderMap) -> Option<Trace> {
        None
    }

    /// Never called.
    pub(crate) fn end(&self, trace: Trace, _: &RequestRecord<'_>, _: u64) {
        match trace.0 {}
    }

    /// No figures.
    pub(crate) fn families(&self) -> Vec<Family> {
        Vec::new()
    }
}

impl Exporter {
    /// Never called.
    pub(crate) fn stop(self) {
        match self.0 {}
    }
}

/// Starts nothing.
pub(crate) fn start(
    _: &Otlp,
    _: &Arc<dyn Clock>,
    _: impl Fn() -> Vec<Family> + Send + 'static,
) -> Result<Option<Exporter>, SetupError> {
    Ok(None)
}
