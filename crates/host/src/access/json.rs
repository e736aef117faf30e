//! Accounts and keys as JSON, without any secret or digest.

use crate::clock::push_rfc3339;
use crate::wire::json::{push_list, push_string};
use wellspring_views::access::{Account, Grant, Grants, Key};

/// The label of a key created without one.
pub const NO_LABEL: &str = "no label";

/// Appends `{"name","roles","enabled","has_password","added_at"}`.
pub fn push_account(out: &mut Vec<u8>, account: &Account) {
    out.extend_from_slice(b"{\"name\":");
    push_string(out, account.name().as_str());
    out.extend_from_slice(b",\"roles\":");
    push_roles(out, account.grants().iter());
    push_flag(out, b",\"enabled\":", !account.is_disabled());
    push_flag(out, b",\"has_password\":", account.password().is_some());
    out.extend_from_slice(b",\"added_at\":");
    push_moment(out, Some(account.added_at_us()));
    out.push(b'}');
}

/// Appends `{"id","label","account","role","log","added_at","expires_at","state"}` at a time (µs
/// since 1970 UTC), and the secret if it is to be shown.
pub fn push_key(out: &mut Vec<u8>, key: &Key, now_us: u64, secret: Option<&str>) {
    out.extend_from_slice(b"{\"id\":");
    push_string(out, key.id().as_str());
    if let Some(secret) = secret {
        out.extend_from_slice(b",\"secret\":");
        push_string(out, secret);
    }
    out.extend_from_slice(b",\"label\":");
    push_string(out, key.label().as_str());
    out.extend_from_slice(b",\"account\":");
    push_string(out, key.owner().as_str());
    out.extend_from_slice(b",\"role\":");
    push_string(out, key.grant().role.as_str());
    out.extend_from_slice(b",\"log\":");
    push_optional(out, key.grant().log.as_deref());
    out.extend_from_slice(b",\"added_at\":");
    push_moment(out, Some(key.added_at_us()));
    out.extend_from_slice(b",\"expires_at\":");
    push_moment(out, key.expires_at_us());
    out.extend_from_slice(b",\"state\":");
    push_string(out, state_of(key, now_us));
    out.push(b'}');
}

/// The state of a key: `live`, `expired` or `revoked`.
fn state_of(key: &Key, now_us: u64) -> &'static str {
    let ended = |end_us| end_us <= now_us;
    match key.expires_at_us() {
        _ if key.is_revoked() => "revoked",
        Some(end_us) if ended(end_us) => "expired",
        _ => "live",
    }
}

/// Appends a page: its items, and the start of the next page.
pub fn push_page<T>(
    out: &mut Vec<u8>,
    name: &str,
    items: &[T],
    next: Option<&str>,
    push: impl FnMut(&mut Vec<u8>, &T),
) {
    out.push(b'{');
    push_string(out, name);
    out.push(b':');
    push_list(out, items, push);
    out.extend_from_slice(b",\"next\":");
    push_optional(out, next);
    out.push(b'}');
}

/// Appends roles as strings: `["reader","writer:orders"]`.
pub fn push_roles<'a>(out: &mut Vec<u8>, grants: impl Iterator<Item = &'a Grant>) {
    push_list(out, grants, |out, grant| push_string(out, &grant.to_string()));
}

/// Roles as an OAuth scope: `reader writer:orders`.
pub fn scope_of(grants: &Grants) -> String {
    let words: Vec<String> = grants.iter().map(Grant::to_string).collect();
    words.join(" ")
}

/// Appends a string or `null`.
pub fn push_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => push_string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends a time in µs since 1970 UTC, or `null`.
pub fn push_moment(out: &mut Vec<u8>, moment_us: Option<u64>) {
    match moment_us {
        Some(moment_us) => {
            out.push(b'"');
            push_rfc3339(out, moment_us);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
}

fn push_flag(out: &mut Vec<u8>, name: &[u8], flag: bool) {
    out.extend_from_slice(name);
    let word: &[u8] = if flag { b"true" } else { b"false" };
    out.extend_from_slice(word);
}
