//! What there is without the feature: the same names, nothing behind them.

use super::Told;
use crate::config::Config;
use crate::http::Shell;
use crate::stats::family::Family;
use hyper::HeaderMap;
use std::convert::Infallible;
use std::sync::Arc;

/// No export.
pub(crate) struct Otlp;

/// The trace of a request. There is none.
pub(crate) struct Trace(Infallible);

/// A thread that exports. There is none.
pub(crate) struct Exporter(Infallible);

impl Otlp {
    /// No export.
    ///
    /// # Errors
    /// One is asked for.
    pub(crate) fn open(config: &Config) -> Result<Otlp, String> {
        match config.otlp_endpoint {
            None => Ok(Otlp),
            Some(_) => Err("--otlp-endpoint needs a program built with `cargo build --features \
                            otlp`; this one was built without"
                .to_owned()),
        }
    }

    /// Whether anything is exported.
    pub(crate) fn is_on(&self) -> bool {
        false
    }

    /// No trace.
    pub(crate) fn begin(&self, _: &HeaderMap, _: u64) -> Option<Trace> {
        None
    }

    /// Never called.
    pub(crate) fn end(&self, trace: Trace, _: &Told<'_>, _: u64) {
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
pub(crate) fn start(_: &Arc<Shell>) -> Result<Option<Exporter>, String> {
    Ok(None)
}
