//! Which parts of a recorded request are secrets.

/// Header fields that carry credentials.
const HEADERS: [&str; 9] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
    "x-csrf-token",
    "x-xsrf-token",
];

/// Whether a header (name in lower case) is a secret.
pub(super) fn is_secret_header(name: &str) -> bool {
    HEADERS.contains(&name)
}

/// A name for a variable, made of a header's or parameter's.
pub(super) fn var_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    match crate::scenario::names::check_name(&plain) {
        Ok(()) => plain,
        Err(_) => format!("value_{plain}"),
    }
}
