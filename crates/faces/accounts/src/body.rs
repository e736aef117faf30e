//! Parsing the bodies of access requests. Passwords are overwritten in memory after use.

use wellspring_host::access::token;
use wellspring_host::clock::parse_rfc3339;
use wellspring_host::identity::{AccountName, Grant, Grants, Label, Role};
use wellspring_host::wire::json::{Cursor, Fault, FaultKind, ReadResult};
use wellspring_host::wire::json::{document, missing, once, rule, unknown};
use wellspring_host::wire::params::percent_decode;
use zeroize::Zeroizing;

/// Largest body, in bytes: room for the longest password with every character escaped, and for the
/// most roles.
pub(super) const MAX_BODY_BYTES: usize = 16 << 10;
/// Longest lifetime of a key given in seconds: a hundred years.
const MAX_KEY_LIFE_S: u64 = 3_155_760_000;
/// Longest overlap of a key and its replacement, in s: 30 days.
const MAX_OVERLAP_S: u64 = 30 * 86_400;

/// A request for a token.
pub(super) struct Login {
    /// As sent; it may not be a valid account name.
    pub(super) username: String,
    pub(super) password: Zeroizing<String>,
    /// Requested lifetime of the token, in s.
    pub(super) life_s: Option<u64>,
    /// Requested roles, if fewer than the account's.
    pub(super) roles: Option<Grants>,
}

/// Parses the body of `POST /auth/token` as JSON.
pub(super) fn read_login(body: &[u8]) -> ReadResult<Login> {
    const KNOWN: &str = "username, password, grant_type, expires_in_s, roles";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut username, mut password, mut grant_type) = (None, None, None);
        let (mut life_s, mut roles) = (None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "username" => once(&mut username, at, value.string()?.into_owned()),
                "password" => once(&mut password, at, read_secret(value)?),
                "grant_type" => once(&mut grant_type, at, read_grant_type(value)?),
                "expires_in_s" => once(&mut life_s, at, read_seconds(value, 1, token::MAX_LIFE_S)?),
                "roles" => once(&mut roles, at, read_roles(value)?),
                _ => unknown(at, KNOWN),
            }
        })?;
        let Some(username) = username else { return missing("username", start) };
        let Some(password) = password else { return missing("password", start) };
        Ok(Login { username, password, life_s, roles })
    })
}

fn read_grant_type(value: &mut Cursor<'_>) -> ReadResult<()> {
    let at = value.at();
    if value.string()? == "password" { Ok(()) } else { rule(at, "must be \"password\"") }
}

/// Parses the same as a form (RFC 6749, 4.3.2). Unknown parameters are ignored, as that requires.
///
/// # Errors
/// The field at fault.
pub(super) fn read_login_form(body: &[u8]) -> ReadResult<Login> {
    let (mut username, mut password, mut grant_type) = (None, None, None);
    let (mut life_s, mut roles) = (None, None);
    let text = std::str::from_utf8(body).unwrap_or_default();
    if text.trim_start().starts_with('{') {
        return rule(0, "looks like JSON; send the header Content-Type: application/json");
    }
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text| {
            let decoded = percent_decode(text, true).map(Zeroizing::new);
            decoded.or_else(|_| rule(0, "is not percent-encoded UTF-8"))
        };
        let name = decoded(name)?;
        let value = decoded(value).map_err(|fault| fault.within(&name))?;
        let read = match name.as_str() {
            "username" => once(&mut username, 0, value.as_str().to_owned()),
            "password" => once(&mut password, 0, value),
            "grant_type" => once(&mut grant_type, 0, value.as_str().to_owned()),
            "expires_in_s" => parse_life(&value).and_then(|seconds| once(&mut life_s, 0, seconds)),
            "scope" => parse_scope(&value).and_then(|scope| once(&mut roles, 0, scope)),
            _ => Ok(()),
        };
        read.map_err(|fault| fault.within(&name))?;
    }
    match grant_type.as_deref() {
        Some("password") => {}
        Some(_) => {
            return rule(0, "must be password").map_err(|fault| fault.within("grant_type"));
        }
        None => return missing("grant_type", 0),
    }
    let Some(username) = username else { return missing("username", 0) };
    let Some(password) = password else { return missing("password", 0) };
    Ok(Login { username, password, life_s, roles: roles.flatten() })
}

fn parse_life(text: &str) -> ReadResult<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(seconds @ 1..=token::MAX_LIFE_S) if digits => Ok(seconds),
        _ => rule(0, format!("must be from 1 to {}", token::MAX_LIFE_S)),
    }
}

/// A scope is empty, `default`, or roles separated by spaces.
fn parse_scope(text: &str) -> ReadResult<Option<Grants>> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() || words == ["default"] {
        return Ok(None);
    }
    let grants: Option<Vec<Grant>> = words.into_iter().map(Grant::parse).collect();
    let Some(grants) = grants else { return rule(0, ROLE_RULE) };
    Grants::new(grants).map(Some).or_else(|fault| rule(0, format!("is invalid: {fault}")))
}

/// Reads `{"everywhere"?}`.
pub(super) fn read_logout(body: &[u8]) -> ReadResult<bool> {
    read_one_flag(body, "everywhere")
}

/// Reads `{"retire"?}`.
pub(super) fn read_rotate(body: &[u8]) -> ReadResult<bool> {
    read_one_flag(body, "retire")
}

fn read_one_flag(body: &[u8], name: &'static str) -> ReadResult<bool> {
    document(body, |cursor| {
        let mut flag = None;
        cursor.object(|key, value| {
            let at = value.at();
            if key == name { once(&mut flag, at, value.boolean()?) } else { unknown(at, name) }
        })?;
        Ok(flag.unwrap_or(false))
    })
}

/// An account to create.
pub(super) struct NewAccount {
    pub(super) name: AccountName,
    pub(super) password: Option<Zeroizing<String>>,
    pub(super) roles: Grants,
}

/// Parses the body of `POST /v1/accounts`.
pub(super) fn read_account(body: &[u8]) -> ReadResult<NewAccount> {
    const KNOWN: &str = "name, password, roles";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut name, mut password, mut roles) = (None, None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "name" => once(&mut name, at, read_name(value)?),
                "password" if value.null()? => Ok(()),
                "password" => once(&mut password, at, read_secret(value)?),
                "roles" => once(&mut roles, at, read_roles(value)?),
                _ => unknown(at, KNOWN),
            }
        })?;
        let Some(name) = name else { return missing("name", start) };
        let Some(roles) = roles else { return missing("roles", start) };
        Ok(NewAccount { name, password, roles })
    })
}

/// The changes of an account.
pub(super) struct AccountChange {
    pub(super) roles: Option<Grants>,
    pub(super) enabled: Option<bool>,
}

/// Parses the body of `PATCH /v1/accounts/{name}`.
pub(super) fn read_change(body: &[u8]) -> ReadResult<AccountChange> {
    const KNOWN: &str = "roles, enabled";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut roles, mut enabled) = (None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "roles" => once(&mut roles, at, read_roles(value)?),
                "enabled" => once(&mut enabled, at, value.boolean()?),
                _ => unknown(at, KNOWN),
            }
        })?;
        if roles.is_none() && enabled.is_none() {
            return rule(start, format!("names nothing to change; known fields: {KNOWN}"));
        }
        Ok(AccountChange { roles, enabled })
    })
}

/// A password to set.
pub(super) struct NewPassword {
    pub(super) password: Zeroizing<String>,
    /// The current password, to change one's own.
    pub(super) current: Option<Zeroizing<String>>,
}

/// Parses the body of `PUT /v1/accounts/{name}/password`.
pub(super) fn read_password(body: &[u8]) -> ReadResult<NewPassword> {
    const KNOWN: &str = "password, current";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut password, mut current) = (None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "password" => once(&mut password, at, read_secret(value)?),
                "current" => once(&mut current, at, read_secret(value)?),
                _ => unknown(at, KNOWN),
            }
        })?;
        let Some(password) = password else { return missing("password", start) };
        Ok(NewPassword { password, current })
    })
}

/// The expiry of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At a time, in µs since 1970 UTC.
    At(u64),
    /// This many seconds from now.
    In(u64),
}

impl End {
    /// The expiry for a request at `now_us`; both in µs since 1970 UTC.
    ///
    /// # Errors
    /// It is in the past.
    pub(super) fn at_us(self, now_us: u64) -> ReadResult<u64> {
        match self {
            End::In(seconds) => Ok(now_us.saturating_add(seconds * 1_000_000)),
            End::At(moment_us) if moment_us > now_us => Ok(moment_us),
            End::At(_) => Err(Fault::of("expires_at", 0, FaultKind::Rule("is in the past".into()))),
        }
    }
}

/// A key to create.
pub(super) struct NewKey {
    pub(super) label: Option<Label>,
    pub(super) grant: Grant,
    pub(super) end: Option<End>,
    /// Its owner, if not the caller.
    pub(super) account: Option<AccountName>,
}

/// Parses the body of `POST /v1/keys`.
pub(super) fn read_key(body: &[u8]) -> ReadResult<NewKey> {
    const KNOWN: &str = "label, role, log, expires_at, expires_in_s, account";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut label, mut role, mut log, mut account) = (None, None, None, None);
        let mut end = KeyExpiry::default();
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "label" | "log" | "account" | "expires_at" | "expires_in_s" if value.null()? => {
                    Ok(())
                }
                "label" => once(&mut label, at, read_label(value)?),
                "role" => once(&mut role, at, read_role(value)?),
                "log" => once(&mut log, at, read_log(value)?),
                "account" => once(&mut account, at, read_name(value)?),
                "expires_at" | "expires_in_s" => end.read(key, value),
                _ => unknown(at, KNOWN),
            }
        })?;
        let Some(role) = role else { return missing("role", start) };
        Ok(NewKey { label, grant: Grant { role, log }, end: end.one(start)?, account })
    })
}

/// A key to replace another.
pub(super) struct Rotation {
    /// How long the other stays valid, in s.
    pub(super) overlap_s: u64,
    /// Expiry of the new one, if not after the same lifetime.
    pub(super) end: Option<End>,
}

/// Parses the body of `POST /v1/keys/{id}/rotate`.
pub(super) fn read_rotation(body: &[u8]) -> ReadResult<Rotation> {
    const KNOWN: &str = "overlap_s, expires_at, expires_in_s";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut overlap_s, mut end) = (None, KeyExpiry::default());
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "overlap_s" | "expires_at" | "expires_in_s" if value.null()? => Ok(()),
                "overlap_s" => once(&mut overlap_s, at, read_seconds(value, 0, MAX_OVERLAP_S)?),
                "expires_at" | "expires_in_s" => end.read(key, value),
                _ => unknown(at, KNOWN),
            }
        })?;
        Ok(Rotation { overlap_s: overlap_s.unwrap_or(0), end: end.one(start)? })
    })
}

/// Both ways to give the expiry of a key; only one may be used.
#[derive(Default)]
struct KeyExpiry {
    at_us: Option<u64>,
    in_s: Option<u64>,
}

impl KeyExpiry {
    fn read(&mut self, key: &str, value: &mut Cursor<'_>) -> ReadResult<()> {
        let at = value.at();
        if key == "expires_in_s" {
            return once(&mut self.in_s, at, read_seconds(value, 1, MAX_KEY_LIFE_S)?);
        }
        match parse_rfc3339(&value.string()?) {
            Some(moment_us) => once(&mut self.at_us, at, moment_us),
            None => rule(at, wellspring_host::clock::MOMENT_RULE),
        }
    }

    fn one(&self, start: usize) -> ReadResult<Option<End>> {
        match (self.at_us, self.in_s) {
            (Some(_), Some(_)) => {
                let rule = "cannot be combined with expires_at; remove one of them".to_owned();
                Err(Fault::of("expires_in_s", start, FaultKind::Rule(rule)))
            }
            (Some(at_us), None) => Ok(Some(End::At(at_us))),
            (None, Some(in_s)) => Ok(Some(End::In(in_s))),
            (None, None) => Ok(None),
        }
    }
}

fn read_secret(value: &mut Cursor<'_>) -> ReadResult<Zeroizing<String>> {
    value.string().map(|text| Zeroizing::new(text.into_owned()))
}

fn read_name(value: &mut Cursor<'_>) -> ReadResult<AccountName> {
    let at = value.at();
    AccountName::parse(&value.string()?).or_else(|fault| rule(at, format!("is invalid: {fault}")))
}

fn read_label(value: &mut Cursor<'_>) -> ReadResult<Label> {
    let at = value.at();
    Label::parse(&value.string()?).or_else(|fault| rule(at, format!("is invalid: {fault}")))
}

fn read_seconds(value: &mut Cursor<'_>, least: u64, most: u64) -> ReadResult<u64> {
    let at = value.at();
    match value.u64()? {
        seconds if (least..=most).contains(&seconds) => Ok(seconds),
        _ => rule(at, format!("must be from {least} to {most}")),
    }
}

/// The rule for a role, in words.
const ROLE_RULE: &str = "must be reader, writer, operator or admin, followed by a colon and the \
                         log's name for a single log: writer:orders";

fn read_roles(value: &mut Cursor<'_>) -> ReadResult<Grants> {
    let at = value.at();
    let mut grants = Vec::new();
    value.array(|_, value| {
        let at = value.at();
        match Grant::parse(&value.string()?) {
            Some(grant) => grants.push(grant),
            None => return rule(at, ROLE_RULE),
        }
        Ok(())
    })?;
    Grants::new(grants).or_else(|fault| rule(at, format!("are invalid: {fault}")))
}

fn read_role(value: &mut Cursor<'_>) -> ReadResult<Role> {
    let at = value.at();
    match Role::parse(&value.string()?) {
        Some(role) => Ok(role),
        None => {
            rule(at, "must be reader, writer, operator or admin; name the log in the field log")
        }
    }
}

fn read_log(value: &mut Cursor<'_>) -> ReadResult<String> {
    let at = value.at();
    let log = value.string()?;
    if wellspring_host::names::is_name(&log) {
        return Ok(log.into_owned());
    }
    rule(at, format!("must be the name of a log: {}", wellspring_host::names::NAME_RULE))
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
