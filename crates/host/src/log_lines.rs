//! The lines of the server's log, on standard error.

use crate::settings::{LogFormat, ProcessConfig};
use std::io;

/// From now on lines are written, in the format and from the level on that are configured. A line that
/// cannot be written, as the reader of standard error has gone, is lost without a word.
///
/// # Errors
/// A sentence about `log_level`.
pub fn begin(config: &ProcessConfig) -> Result<(), String> {
    let level = level(&config.log_level)?;
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    // It would tell of such a line on standard error, and panic there.
    let lines = lines.log_internal_errors(false);
    match config.log_format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}

/// The least severity that is written.
///
/// # Errors
/// A sentence about `log_level`.
pub(crate) fn level(text: &str) -> Result<tracing::Level, String> {
    text.parse()
        .map_err(|_| format!("--log-level must be error, warn, info, debug or trace, not {text:?}"))
}
