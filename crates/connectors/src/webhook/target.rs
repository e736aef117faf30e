//! Checks of a webhook's target.

use super::endpoint::Endpoint;
use crate::definition_error::DefinitionError;
use crate::sink::WebhookTarget;
use hyper::header::{HeaderName, HeaderValue};

/// Headers that frame a message or control its connection.
const OF_THE_CONNECTION: [&str; 9] = [
    "connection",
    "host",
    "content-length",
    "expect",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Checks a target: its URL ([`check_url`](super::check_url)), the names and values of its headers,
/// and that its numbers are not 0.
///
/// # Errors
/// What is wrong, as a sentence without its full stop. It quotes neither the URL nor a header's
/// value.
pub fn check_target(target: &WebhookTarget) -> Result<(), DefinitionError> {
    Endpoint::parse(&target.url)?;
    for (name, value) in &target.headers {
        check_header(name, value)?;
    }
    for (name, _) in &target.secret_headers {
        header_name(name)?;
    }
    if target.in_flight == 0 {
        return Err("at least one concurrent request must be allowed".into());
    }
    if target.timeout_ms == 0 {
        return Err("a request needs a timeout of at least 1 ms".into());
    }
    if target.max_tries == Some(0) {
        return Err("an event needs at least one attempt".into());
    }
    Ok(())
}

/// Checks a header that a target sets.
///
/// # Errors
/// What is wrong with it, without the value.
pub fn check_header(name: &str, value: &str) -> Result<(), DefinitionError> {
    header_name(name)?;
    header_value(name, value).map(drop)
}

/// The name of a header that a target may set.
pub(super) fn header_name(name: &str) -> Result<HeaderName, DefinitionError> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("{name:?} cannot be the name of a header"))?;
    let lower = parsed.as_str();
    let ours = lower == "idempotency-key"
        || ["webhook-", "wellspring-"].iter().any(|prefix| lower.starts_with(prefix));
    if ours || OF_THE_CONNECTION.contains(&lower) {
        return Err(
            format!("the header {lower} cannot be set, because the sink sets it itself").into()
        );
    }
    Ok(parsed)
}

/// The value of a header: visible ASCII, spaces and tabs.
pub(super) fn header_value(name: &str, value: &str) -> Result<HeaderValue, DefinitionError> {
    HeaderValue::from_str(value).map_err(|_| {
        DefinitionError::new(format!(
            "the value of the header {name} contains characters other than visible ASCII"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> WebhookTarget {
        WebhookTarget {
            url: "https://hooks.example/".into(),
            secret: None,
            headers: vec![("X-Team".into(), "shipping".into())],
            secret_headers: vec![("Authorization".into(), "token".into())],
            ca_file: None,
            in_flight: 1,
            timeout_ms: 1,
            max_tries: Some(1),
            dead_letter_log: None,
        }
    }

    #[test]
    fn a_target_is_checked() {
        assert_eq!(check_target(&target()), Ok(()));
        let with = |change: fn(&mut WebhookTarget)| {
            let mut target = target();
            change(&mut target);
            check_target(&target).expect_err("must be refused").to_string()
        };
        with(|target| target.url = "hooks.example".into());
        with(|target| target.in_flight = 0);
        with(|target| target.timeout_ms = 0);
        with(|target| target.max_tries = Some(0));
        with(|target| target.secret_headers[0].0 = "Webhook-Signature".into());
        let refusal = with(|target| target.headers[0].1 = "hunter2\r\nX-More: 1".into());
        assert!(refusal.contains("X-Team") && !refusal.contains("hunter2"), "{refusal}");
        for name in ["", "a b", "a\r\nb", "a:b", "Content-Length", "transfer-encoding", "TE"] {
            assert!(header_name(name).is_err(), "{name:?}");
        }
    }
}
