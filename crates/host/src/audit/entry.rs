//! One audit entry: facts about a request, as tags for queries and as JSON. Never a credential, a
//! query string or a body.

use crate::identity::Method;
use crate::names::is_name;
use crate::record::RequestRecord;
use crate::wire::json::{push_string, push_u64};
use wellspring_types::valid::check_tags;

/// Longest stored path, in bytes; longer paths are truncated.
const PATH_BYTES: usize = 256;

/// The log, if its name is valid: a path may contain anything in its place, at any length.
fn log_of<'a>(record: &RequestRecord<'a>) -> Option<&'a str> {
    Some(record.log).filter(|log| is_name(log))
}

fn key_of<'a>(record: &'a RequestRecord<'_>) -> Option<&'a str> {
    match record.authentication() {
        Method::Key(id) => Some(id.as_str()),
        _ => None,
    }
}

/// The tags by which the entry of a request can be queried.
pub(super) fn tags(record: &RequestRecord<'_>) -> Vec<String> {
    let client = record.client.map(|client| client.to_string());
    let tags = [
        ("account", record.account()),
        ("subject", record.subject()),
        ("claimed", record.claimed()),
        ("key", key_of(record)),
        ("log", log_of(record)),
        ("client", client.as_deref()),
    ];
    let tags = tags.into_iter().filter_map(|(name, value)| Some(format!("{name}:{}", value?)));
    tags.filter(|tag| check_tags(&[tag]).is_ok()).collect()
}

/// The entry of a request, as JSON.
pub(super) fn data(record: &RequestRecord<'_>) -> Vec<u8> {
    let client = record.client.map(|client| client.to_string());
    let texts = [
        ("account", record.account()),
        ("subject", record.subject()),
        ("claimed", record.claimed()),
        ("by", Some(record.authentication().as_str())),
        ("key", key_of(record)),
        ("method", Some(record.method)),
        ("route", record.route.path),
        ("path", Some(beginning(record.path))),
        ("log", log_of(record)),
        ("client", client.as_deref()),
        ("request", Some(record.request_id)),
    ];
    let mut out = b"{\"status\":".to_vec();
    push_u64(&mut out, record.status.into());
    for (name, value) in texts {
        let Some(value) = value else { continue };
        out.push(b',');
        push_string(&mut out, name);
        out.push(b':');
        push_string(&mut out, value);
    }
    out.push(b'}');
    out
}

/// The stored part of a path.
fn beginning(path: &str) -> &str {
    let is_end = |&at: &usize| path.is_char_boundary(at);
    let end = (0..=path.len().min(PATH_BYTES)).rev().find(is_end).unwrap_or(0);
    &path[..end]
}
