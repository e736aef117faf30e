//! Answers of the server as the tools read them.

use crate::exit::{Code, Failure};
use serde::Deserialize;

/// Reads the JSON document that an answer is.
///
/// # Errors
/// It is not an answer of a Wellspring server.
pub(crate) fn read<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer).map_err(|error| {
        let message = format!("not an answer of a Wellspring server; check --url ({error})");
        Failure::new(Code::Unavailable, message)
    })
}
