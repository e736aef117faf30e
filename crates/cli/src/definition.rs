//! Definitions of sinks, sources and consumers on the command line: their file, and the place in a
//! log where they begin.

use crate::argument_error::ArgumentError;
use crate::exit::{Code, Failure};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::Path;
use wellspring_host::clock::parse_rfc3339;

/// Reads a file with a definition; `-` is standard input.
///
/// # Errors
/// [`Code::NoInput`]: it cannot be read.
pub(crate) fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut definition = Vec::new();
    let read_in = match file.to_str() {
        Some("-") => std::io::stdin().read_to_end(&mut definition).map(drop),
        _ => std::fs::read(file).map(|bytes| definition = bytes),
    };
    read_in.map_err(|error| Failure::new(Code::NoInput, format!("{}: {error}", file.display())))?;
    Ok(definition)
}

/// Reads `beginning`, `now`, a position or a time, as the API takes it.
pub(crate) fn start(text: &str) -> Result<Value, ArgumentError> {
    match (text, text.parse::<u64>()) {
        ("beginning" | "now", _) => Ok(json!(text)),
        (_, Ok(position)) => Ok(json!(position)),
        _ if parse_rfc3339(text).is_some() => Ok(json!(text)),
        _ => Err("must be beginning, now, a position or a time".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_something_begins_is_a_word_a_position_or_a_time() {
        assert_eq!(start("now"), Ok(json!("now")));
        assert_eq!(start("17"), Ok(json!(17)));
        assert!(start("2026-11-29T10:00:00Z").is_ok());
        assert!(start("-1").is_err() && start("end").is_err());
    }
}
