//! Which parts of a recorded request are secrets.

/// Header fields that let somebody in.
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

/// Query parameters that let somebody in.
const PARAMETERS: [&str; 11] = [
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "client_secret",
    "key",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
];

/// Whether a header (name in lower case) is a secret.
pub(super) fn is_secret_header(name: &str) -> bool {
    HEADERS.contains(&name)
}

/// Whether a query parameter is a secret.
pub(super) fn is_secret_parameter(name: &str) -> bool {
    PARAMETERS.iter().any(|there| name.eq_ignore_ascii_case(there))
}

/// A name for a variable, made of a header's or parameter's.
pub(super) fn var_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    match wellspring_load::scenario::names::check_name(&plain) {
        Ok(()) => plain,
        Err(_) => format!("value_{plain}"),
    }
}
