//! What the parts of a request may hold, whoever wrote them.

use crate::invalid::Invalid;

/// Fields that the engine or the protocol sets, with the reason given to the user.
const NOT_OURS: [(&str, &str); 8] = [
    ("host", "it is made from the base URL"),
    ("content-length", "it is made from the body"),
    ("transfer-encoding", "bodies are sent with their length"),
    ("connection", "connections are the engine's: see keep-alive on the command line"),
    ("keep-alive", "connections are the engine's: see keep-alive on the command line"),
    ("proxy-connection", "connections are the engine's"),
    ("upgrade", "protocols are chosen on the command line"),
    ("expect", "requests are sent whole"),
];

/// The method in upper case.
///
/// # Errors
/// Says what is wrong with it.
pub fn method(text: &str) -> Result<String, Invalid> {
    if text.is_empty() || text.len() > 32 || !text.bytes().all(|b| b.is_ascii_alphabetic()) {
        return Err(format!("expected a method like GET or POST, found {text:?}").into());
    }
    Ok(text.to_ascii_uppercase())
}

/// Whether `byte` may stand in the target of a request. Bytes above 127 pass:
/// some servers are asked for such paths, and framing does not suffer.
pub(crate) fn path_byte(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Whether `byte` may stand in the value of a header field (RFC 9110, section 5.5).
pub(crate) fn header_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Checks path and query of a request.
///
/// # Errors
/// Says what is wrong with it.
pub fn path(text: &str) -> Result<(), Invalid> {
    if !text.starts_with('/') {
        return Err(format!("expected a path that begins with \"/\", found {text:?}").into());
    }
    if let Some(bad) = text.chars().find(|c| c.is_ascii() && !path_byte(*c as u8)) {
        return Err(format!(
            "the path contains {bad:?}, which must be percent-encoded (%{:02X})",
            bad as u32
        )
        .into());
    }
    if text.contains('#') {
        return Err("the path contains \"#\"; a fragment is never sent to a server".into());
    }
    Ok(())
}

/// The name of a header field, in lower case.
///
/// # Errors
/// Says what is wrong with it.
pub(crate) fn any_header_name(text: &str) -> Result<String, Invalid> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if text.is_empty() || !text.bytes().all(token) {
        return Err(format!("expected the name of a header field, found {text:?}").into());
    }
    Ok(text.to_ascii_lowercase())
}

/// The name of a header field, in lower case, if users may set it.
///
/// # Errors
/// Says what is wrong with it.
pub fn header_name(text: &str) -> Result<String, Invalid> {
    let name = any_header_name(text)?;
    match NOT_OURS.iter().find(|(there, _)| *there == name) {
        Some((_, why)) => Err(format!("the header {name:?} cannot be set: {why}").into()),
        None => Ok(name),
    }
}

/// Checks the value of a header field.
///
/// # Errors
/// Says what is wrong with it.
pub fn header_value(text: &str) -> Result<(), Invalid> {
    match text.bytes().find(|byte| !header_byte(*byte)) {
        Some(bad) => {
            Err(format!("a header's value contains the control character {:?}", bad as char).into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_the_framing_is_refused() {
        assert_eq!(method("patch").as_deref(), Ok("PATCH"));
        assert!(method("GET /").is_err() && method("").is_err());
        assert!(path("/a?b=c%20d").is_ok() && path("/ü").is_ok());
        assert!(path("a").unwrap_err().to_string().contains("begins with"));
        assert!(path("/a b").unwrap_err().to_string().contains("%20"));
        assert!(path("/a\r\nx: y").unwrap_err().to_string().contains("%0D"));
        assert!(path("/a#b").unwrap_err().to_string().contains("fragment"));
        assert_eq!(header_name("X-Trace").as_deref(), Ok("x-trace"));
        assert!(header_name("Host").unwrap_err().to_string().contains("base URL"));
        assert!(header_name("a b").is_err() && header_name("").is_err());
        assert!(header_value("a\tb é").is_ok() && header_value("a\nb").is_err());
    }
}
