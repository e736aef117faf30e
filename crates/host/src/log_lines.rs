//! The lines of the server's log, on standard error.

use crate::settings::{LogFormat, ProcessConfig};
use crate::setup::SetupError;
use std::io;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts writing lines in the configured format, from the configured level. A line that cannot be
/// written, because the reader of standard error has gone, is silently lost.
///
/// # Errors
/// A sentence about `log_level`.
pub fn begin(config: &ProcessConfig) -> Result<(), SetupError> {
    let level = level(&config.log_level)?;
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    // The Kafka client logs a line for each transaction; its users log what matters.
    let client = if level > tracing::Level::INFO { level } else { tracing::Level::ERROR };
    // And that of Raft each message that is late; what matters is said by the engine.
    let raft = if level > tracing::Level::INFO { level.into() } else { LevelFilter::OFF };
    let targets = Targets::new().with_default(level).with_target("krafka", client);
    let targets = targets.with_target("openraft", raft);
    // It would report such a line on standard error, and panic there.
    let lines = lines.log_internal_errors(false);
    match config.log_format {
        LogFormat::Text => lines.with_ansi(false).finish().with(targets).init(),
        LogFormat::Json => lines.json().flatten_event(true).finish().with(targets).init(),
    }
    Ok(())
}

/// The minimum severity that is written.
///
/// # Errors
/// A sentence about `log_level`.
pub(crate) fn level(text: &str) -> Result<tracing::Level, SetupError> {
    text.parse().map_err(|_| {
        SetupError::new(format!(
            "--log-level must be error, warn, info, debug or trace, not {text:?}"
        ))
    })
}
