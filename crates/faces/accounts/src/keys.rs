//! `/v1/keys`: API keys. Their secrets are shown once, on creation.

use super::body::End;
use super::register::{AFTER, LIMIT};
use super::{body, body_of, execute, freshen, is_admin, optional_body_of, own_account, refusal};
use crate::problems;
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::access::json::{KeyDocument, NO_LABEL};
use wellspring_host::access::view::{Command, Key};
use wellspring_host::access::{Principal, api_key};
use wellspring_host::http::contract::Segment;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::identity::{AccountName, Grant, KeyId, Label};
use wellspring_host::wire::json::Fault;
use wellspring_host::wire::param::{Param, Text, Values, Words};
use wellspring_host::wire::problem::{self, Problem, of_fault};

/// Owner of the listed keys.
pub(super) static ACCOUNT: Param<Text> = Param::text(
    "account",
    "Account whose keys are listed. Administrators may name any account, others only their own.",
);
/// Whether to list keys that have ended.
pub(super) static REVOKED: Param<Words<bool>> = Param::words(
    "revoked",
    "Whether revoked keys are included.",
    &[("hide", false), ("show", true)],
    "hide",
);
/// The id of a key. An invalid id names no key.
pub(super) static ID: Segment<KeyId> = Segment {
    name: "id",
    what: "Id of the API key.",
    values: Values::Text(None),
    read: |text| KeyId::parse(text).map_err(|_| refusal::unknown_key(text)),
};

/// A page of keys, and the id after which the next page begins.
#[derive(Serialize)]
struct KeysPage<'a> {
    keys: Vec<KeyDocument<'a>>,
    next: Option<&'a str>,
}

/// `GET /v1/keys`: the caller's own, or those of an account, or all.
pub(crate) async fn list_keys(host: Arc<Host>, request: Box<Request>) -> Answer {
    freshen(&host, &request).await?;
    let own = own_account(&request.principal)?;
    let account = match (request.query(&ACCOUNT)?, is_admin(&request.principal)) {
        (Some(account), true) => Some(account),
        (None, true) => None,
        (asked, false) => match own {
            Some(own) if asked.is_none_or(|asked| asked == own.as_str()) => Some(own.as_str()),
            _ => {
                let detail = "only an administrator of everything may see the keys of other \
                              accounts";
                return Err(problem::FORBIDDEN.because(detail));
            }
        },
    };
    let revoked = request.query(&REVOKED)?;
    let limit = request.query(&LIMIT)? as usize;
    let state = host.access.state();
    let wanted = |key: &&Arc<Key>| {
        (revoked || !key.is_revoked()) && account.is_none_or(|name| key.owner().as_str() == name)
    };
    let after = request.query(&AFTER)?.unwrap_or_default();
    let mut keys: Vec<_> = state.keys_after(after).filter(wanted).take(limit + 1).collect();
    let is_last = keys.len() <= limit;
    keys.truncate(limit);
    let next = keys.last().filter(|_| !is_last).map(|key| key.id().as_str());
    let now_us = host.clock.wall_us();
    let keys = keys.iter().map(|key| KeyDocument::of(key, now_us, None)).collect();
    Ok(Response::of(200, &KeysPage { keys, next }))
}

/// `GET /v1/keys/{id}`.
pub(crate) async fn get_key(host: Arc<Host>, request: Box<Request>) -> Answer {
    freshen(&host, &request).await?;
    let key = key_of(&host, &request)?;
    Ok(Response::of(200, &KeyDocument::of(&key, host.clock.wall_us(), None)))
}

/// `POST /v1/keys`.
pub(crate) async fn add_key(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let own = own_account(&request.principal)?.cloned();
    let bytes = body_of(&mut request).await?;
    let faulty = |fault: Box<Fault>| of_fault(&fault, &bytes);
    let body::NewKey { label, grant, end, account } = body::read_key(&bytes).map_err(faulty)?;
    let is_own = account.is_none() || account == own;
    let Some(owner) = account.or(own) else {
        let detail = "account is missing: these credentials come from an external issuer and \
                      belong to no account";
        return Err(problem::INVALID.because(detail).field("account"));
    };
    if !is_own && !is_admin(&request.principal) {
        let detail = "only an administrator of everything may create keys for other accounts; \
                      leave account out";
        return Err(problem::FORBIDDEN.because(detail).field("account"));
    }
    let end_us = end.map(|end| end.at_us(host.clock.wall_us())).transpose().map_err(faulty)?;
    let label = match label {
        Some(label) => label,
        None => no_label()?,
    };
    let wanted = KeyRequest { label, grant, end_us, owner, in_place_of: None };
    make(&host, &request, wanted, None).await
}

/// `DELETE /v1/keys/{id}`. Also for a key that has ended.
pub(crate) async fn revoke_key(host: Arc<Host>, request: Box<Request>) -> Answer {
    let key = key_of(&host, &request)?;
    if !request.principal.may_end(key.grant()) {
        let detail =
            format!("credentials with fewer rights cannot revoke a key with {}", key.grant());
        return Err(problem::FORBIDDEN.because(detail));
    }
    let id = key.id().clone();
    let position = execute(&host, &request, &[Command::RevokeKey { id }]).await?;
    Ok(Response::empty(204).at(position))
}

/// `POST /v1/keys/{id}/rotate`: creates a replacement with the same grant and lifetime; the old key
/// ends at once, or after an overlap in which both are valid.
pub(crate) async fn rotate_key(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let old = key_of(&host, &request)?;
    let bytes = optional_body_of(&mut request).await?;
    let faulty = |fault: Box<Fault>| of_fault(&fault, &bytes);
    let body::Rotation { overlap_s, end } = body::read_rotation(&bytes).map_err(faulty)?;
    let now_us = host.clock.wall_us();
    if old.is_revoked() || old.expires_at_us().is_some_and(|end_us| end_us <= now_us) {
        let detail = format!("the key {} has ended; POST /v1/keys creates a new one", old.id());
        return Err(problems::KEY_ENDED.because(detail));
    }
    let end_us = match end.map(|end: End| end.at_us(now_us)).transpose().map_err(faulty)? {
        Some(end_us) => Some(end_us),
        None => old.life_us().map(|life_us| now_us.saturating_add(life_us)),
    };
    let id = old.id().clone();
    let (in_place_of, ends) = match overlap_s {
        0 => (Some(id), None),
        _ => {
            let expires_at_us = now_us + overlap_s * 1_000_000;
            (None, Some(Command::EndKey { id, expires_at_us }))
        }
    };
    let (label, grant) = (old.label().clone(), old.grant().clone());
    let wanted = KeyRequest { label, grant, end_us, owner: old.owner().clone(), in_place_of };
    make(&host, &request, wanted, ends).await
}

/// A key to create.
struct KeyRequest {
    label: Label,
    grant: Grant,
    /// Its expiry, in µs since 1970 UTC.
    end_us: Option<u64>,
    owner: AccountName,
    /// The key that it replaces.
    in_place_of: Option<KeyId>,
}

/// Creates a key, and makes the accompanying changes, in one append. Only the answer ever contains
/// its secret.
async fn make(host: &Host, request: &Request, wanted: KeyRequest, more: Option<Command>) -> Answer {
    let KeyRequest { label, grant, end_us, owner, in_place_of } = wanted;
    may_give(&request.principal, &grant)?;
    let api_key::NewKey { id, secret, digest } = api_key::draw()
        .map_err(|error| problem::INTERNAL.because(format!("cannot generate a key: {error}")))?;
    let (key, now_us) = (id.clone(), host.clock.wall_us());
    let expires_at_us = end_us;
    let add = Command::AddKey {
        id: key,
        label,
        digest,
        grant,
        expires_at_us,
        owner,
        in_place_of,
        now_us,
    };
    let commands: Vec<Command> = std::iter::once(add).chain(more).collect();
    let position = execute(host, request, &commands).await?;
    let state = host.access.state();
    let key = state.key(id.as_str()).ok_or_else(|| refusal::unknown_key(id.as_str()))?;
    let document = KeyDocument::of(key, host.clock.wall_us(), Some(&secret));
    let response = Response::of(201, &document).with("location", format!("/v1/keys/{id}"));
    Ok(response.with("cache-control", "no-store".to_owned()).at(position))
}

/// A key grants no more than the credential that creates it: a token for reading creates no keys
/// that write.
fn may_give(principal: &Principal, grant: &Grant) -> Result<(), Box<Problem>> {
    let has = principal.role_on(grant.log.as_deref());
    if has >= Some(grant.role) {
        return Ok(());
    }
    let has = has.map_or("no access".to_owned(), |role| format!("the role {role}"));
    let detail = format!("only credentials with {grant} can create such a key; these grant {has}");
    Err(problem::FORBIDDEN.because(detail).field("role"))
}

/// The key in the path, if it is the caller's own or the caller is an administrator; to others it
/// does not exist.
fn key_of(host: &Host, request: &Request) -> Result<Arc<Key>, Box<Problem>> {
    let own = own_account(&request.principal)?;
    let state = host.access.state();
    let id = request.segment(&ID)?;
    let key = state.key(id.as_str()).cloned();
    let visible = |key: &Arc<Key>| Some(key.owner()) == own || is_admin(&request.principal);
    key.filter(visible).ok_or_else(|| refusal::unknown_key(id.as_str()))
}

fn no_label() -> Result<Label, Box<Problem>> {
    Label::parse(NO_LABEL).map_err(|fault| problem::INTERNAL.because(fault.to_string()))
}
