//! Parses the credential in a request's headers: none, one, or malformed. Verification happens
//! elsewhere. Credentials are never printed.

use super::api_key;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use std::fmt;
use zeroize::Zeroizing;

/// Longest header value accepted as a credential, in bytes.
pub(crate) const MAX_BYTES: usize = 8_192;

/// A credential as sent in the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential<'a> {
    /// A token.
    Token(&'a [u8]),
    /// An API key, in `X-API-Key` or as a Bearer.
    Key(&'a [u8]),
    /// Base64 of a name and a password: [`basic`] reads it.
    Basic(&'a [u8]),
}

impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Token(_) => "Token(…)",
            Credential::Key(_) => "Key(…)",
            Credential::Basic(_) => "Basic(…)",
        })
    }
}

/// A fault of the headers themselves (400, WIRE §5). Does not reveal their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CredentialFault {
    /// A repeated header: proxies on the way may pick another value than this server.
    Twice,
    /// Both `Authorization` and `X-API-Key`.
    Both,
    /// Longer than [`MAX_BYTES`].
    TooLong,
    /// Neither `Bearer` nor `Basic`.
    Scheme,
    /// No token after the scheme, or a character that tokens cannot contain.
    Token,
    /// An empty `X-API-Key`, or one that is not visible ASCII.
    Key,
    /// Not Base64 of UTF-8 without control characters.
    Basic,
    /// No colon between name and password.
    Colon,
}

impl fmt::Display for CredentialFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CredentialFault::Twice => "a header with credentials is repeated; send it once",
            CredentialFault::Both => "send either Authorization or X-API-Key, not both",
            CredentialFault::TooLong => "the credentials are longer than 8192 bytes",
            CredentialFault::Scheme => "the scheme of Authorization must be Bearer or Basic",
            CredentialFault::Token => {
                "Authorization must consist of the scheme, a space and a token"
            }
            CredentialFault::Key => "X-API-Key must consist of visible ASCII characters",
            CredentialFault::Basic => {
                "the Basic credentials must be Base64 of UTF-8 text without control characters"
            }
            CredentialFault::Colon => "the Basic credentials must be Base64 of name:password",
        })
    }
}

impl std::error::Error for CredentialFault {}

/// The credential of a request; `None` if it has none.
///
/// # Arguments
/// All values of `Authorization` and of `X-API-Key`, as received.
///
/// # Errors
/// [`CredentialFault`].
pub(crate) fn presented<'a>(
    authorization: impl IntoIterator<Item = &'a [u8]>,
    api_key: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<Credential<'a>>, CredentialFault> {
    match (one(authorization)?, one(api_key)?) {
        (Some(_), Some(_)) => Err(CredentialFault::Both),
        (Some(value), None) => of_authorization(value).map(Some),
        (None, Some(value)) => {
            let visible = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
            if visible { Ok(Some(Credential::Key(value))) } else { Err(CredentialFault::Key) }
        }
        (None, None) => Ok(None),
    }
}

/// Whether a value of `Authorization` is, or tries to be, a name and a password.
pub(crate) fn is_basic(authorization: &[u8]) -> bool {
    let value = authorization.trim_ascii_start();
    value.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"Basic"))
}

/// Whether a request has any header for credentials.
pub(crate) fn are_shown(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || headers.contains_key("x-api-key")
}

/// Replaces a Bearer that is Base64 of a token or an API key by that: clients of Neo4j's Query API
/// encode it once more. No token is such Base64 itself, because tokens have dots and keys a prefix.
pub(crate) fn decode_bearer(headers: &mut HeaderMap) {
    let decoded = headers.get(AUTHORIZATION).and_then(|value| twice_encoded(value.as_bytes()));
    if let Some(value) = decoded
        && let Ok(mut value) = HeaderValue::from_bytes(&value)
    {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
}

fn twice_encoded(value: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let Ok(Credential::Token(token)) = of_authorization(value.trim_ascii()) else { return None };
    if value.len() > MAX_BYTES || token.contains(&b'.') {
        return None;
    }
    let inner = Zeroizing::new(STANDARD.decode(token).ok()?);
    let is_token = inner.starts_with(api_key::PREFIX)
        || inner.iter().filter(|byte| **byte == b'.').count() == 2;
    let header = || Zeroizing::new([b"Bearer ", &inner[..]].concat());
    (is_token && is_token68(&inner)).then(header)
}

/// The single value of a header, trimmed.
fn one<'a>(
    values: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<&'a [u8]>, CredentialFault> {
    let mut values = values.into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(CredentialFault::Twice);
    }
    if value.len() > MAX_BYTES {
        Err(CredentialFault::TooLong)
    } else {
        Ok(Some(value.trim_ascii()))
    }
}

fn of_authorization(value: &[u8]) -> Result<Credential<'_>, CredentialFault> {
    let end = value.iter().position(|&byte| byte == b' ').unwrap_or(value.len());
    let (scheme, token) = (&value[..end], value[end..].trim_ascii_start());
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer");
    if !is_bearer && !scheme.eq_ignore_ascii_case(b"Basic") {
        return Err(CredentialFault::Scheme);
    }
    if !is_token68(token) {
        return Err(CredentialFault::Token);
    }
    Ok(match is_bearer {
        true if token.starts_with(api_key::PREFIX) => Credential::Key(token),
        true => Credential::Token(token),
        false => Credential::Basic(token),
    })
}

/// Whether the text is a token68 (RFC 9110, 11.2): at least one of these characters, then only `=`.
fn is_token68(text: &[u8]) -> bool {
    let body = text.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last + 1);
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
    body > 0 && text[..body].iter().all(fits)
}

/// A name and a password.
pub(crate) struct Login {
    /// As sent; it may not be a valid account name.
    pub(crate) username: String,
    /// Overwritten when dropped.
    pub(crate) password: Zeroizing<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Users sometimes type the password in the name field.
        f.write_str("Login(…)")
    }
}

/// Parses Basic credentials: Base64 of UTF-8 (RFC 7617), split at the first colon.
///
/// # Errors
/// [`CredentialFault::Basic`], [`CredentialFault::Colon`].
pub(crate) fn basic(token: &[u8]) -> Result<Login, CredentialFault> {
    // Allocated at its maximum size, so that it never moves and leaves a copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(token.len()));
    STANDARD.decode_vec(token, &mut bytes).map_err(|_| CredentialFault::Basic)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| CredentialFault::Basic)?;
    if text.chars().any(char::is_control) {
        return Err(CredentialFault::Basic);
    }
    let (username, password) = text.split_once(':').ok_or(CredentialFault::Colon)?;
    Ok(Login { username: username.to_owned(), password: Zeroizing::new(password.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorization(value: &[u8]) -> Result<Option<Credential<'_>>, CredentialFault> {
        presented([value], [])
    }

    #[test]
    fn none_one_and_malformed_are_told_apart() {
        assert_eq!(presented([], []), Ok(None));
        let token = Ok(Some(Credential::Token(b"a.b.c")));
        for value in ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c ", "\tBearer a.b.c"] {
            assert_eq!(authorization(value.as_bytes()), token, "{value:?}");
        }
        assert_eq!(authorization(b"Bearer wsk_x"), Ok(Some(Credential::Key(b"wsk_x"))));
        assert_eq!(authorization(b"Basic eDp5"), Ok(Some(Credential::Basic(b"eDp5"))));
        assert_eq!(presented([], [&b" wsk_x "[..]]), Ok(Some(Credential::Key(b"wsk_x"))));
        for (value, fault) in [
            (&b""[..], CredentialFault::Scheme),
            (b"Digest x", CredentialFault::Scheme),
            (b"a.b.c", CredentialFault::Scheme),
            (b"Bearer:a.b.c", CredentialFault::Scheme),
            (b"Bearer", CredentialFault::Token),
            (b"Bearer ", CredentialFault::Token),
            (b"Bearer a b", CredentialFault::Token),
            (b"Bearer a,b", CredentialFault::Token),
            (b"Bearer a=b", CredentialFault::Token),
            (b"Bearer ==", CredentialFault::Token),
            (b"Bearer \xff", CredentialFault::Token),
            (b"Basic", CredentialFault::Token),
        ] {
            assert_eq!(authorization(value), Err(fault), "{value:?}");
        }
        for value in [&b""[..], b"a b", b"\xc3\xa4", b"a\nb"] {
            assert_eq!(presented([], [value]), Err(CredentialFault::Key));
        }
    }

    #[test]
    fn what_stands_twice_or_is_huge_is_refused() {
        let one: &[u8] = b"Bearer a";
        assert_eq!(presented([one, one], []), Err(CredentialFault::Twice));
        assert_eq!(presented([], [&b"k"[..], b"k"]), Err(CredentialFault::Twice));
        assert_eq!(presented([one], [&b"k"[..]]), Err(CredentialFault::Both));
        let mut huge = b"Bearer ".to_vec();
        huge.resize(MAX_BYTES, b'a');
        assert!(authorization(&huge).is_ok());
        huge.push(b'a');
        assert_eq!(authorization(&huge), Err(CredentialFault::TooLong));
        assert_eq!(presented([], [huge.as_slice()]), Err(CredentialFault::TooLong));
    }

    #[test]
    fn a_token_that_is_encoded_once_more_is_decoded() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            decode_bearer(&mut headers);
            headers[AUTHORIZATION].to_str().unwrap().to_owned()
        };
        for token in ["a.b.c", "wsk_x"] {
            let encoded = STANDARD.encode(token);
            assert_eq!(of(&format!("Bearer {encoded}")), format!("Bearer {token}"));
        }
        for same in ["Bearer a.b.c", "Bearer wsk_x", "Bearer YQ==", "Basic d3NrX3g="] {
            assert_eq!(of(same), same);
        }
    }

    #[test]
    fn names_and_passwords_are_split_at_the_first_colon() {
        let login = |text: &[u8]| basic(STANDARD.encode(text).as_bytes());
        let found = login("ann:pä:ß".as_bytes()).unwrap();
        assert_eq!((found.username.as_str(), found.password.as_str()), ("ann", "pä:ß"));
        let found = login(b":").unwrap();
        assert_eq!((found.username.as_str(), found.password.as_str()), ("", ""));
        assert_eq!(login(b"ann").unwrap_err(), CredentialFault::Colon);
        for text in [&b"ann:\xff"[..], b"ann:a\0", b"a\n:b", "a:\u{85}".as_bytes()] {
            assert_eq!(login(text).unwrap_err(), CredentialFault::Basic);
        }
        for token in ["!", "YTpi=", "YTpiY", "YTp-", "YTo=YTo="] {
            assert_eq!(basic(token.as_bytes()).unwrap_err(), CredentialFault::Basic, "{token}");
        }
    }

    #[test]
    fn nothing_is_printed() {
        let login = basic(STANDARD.encode("canary:canary").as_bytes()).unwrap();
        let all = format!(
            "{login:?}{:?}{:?}{:?}",
            authorization(b"Bearer canary"),
            authorization(b"Bearer wsk_canary"),
            authorization(b"Basic canary")
        );
        assert!(!all.contains("canary"), "{all}");
    }
}
