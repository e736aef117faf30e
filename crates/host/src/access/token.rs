//! Tokens: JWT (RFC 7519). Ours are signed with HS256 and nothing else; those of an external issuer
//! (`foreign`) with RS256 or EdDSA and nothing else. The header's `alg` decides which of the two a
//! token must be, before anything else is read. The token never selects its own verification key:
//! HS256 uses our secrets only, the others the issuer's keys only, each for its own algorithm.
//!
//! Parsed by a strict parser of our own over `ring`, which TLS needs anyway. `jsonwebtoken` below
//! 10.3 treats claims of a wrong type as missing (CVE-2026-25537), and from 10 on adds a second
//! stack of cryptography: RSA, two curves and a random generator, or aws-lc-rs.

use super::derived_secrets::DerivedSecrets;
use super::foreign::{ForeignClaims, ForeignIssuer, TokenParts};
use super::jwks::Algorithm;
use super::rotation::{InUse, Reread};
#[cfg(any(test, feature = "fuzzing"))]
use super::token_secret::Secrets;
use crate::access::view::Folded;
use crate::cluster::ClusterKey;
use crate::identity::{AccountName, Grant, Grants, MAX_GRANTS, TokenId};
use crate::kept_file::FileCheck;
use crate::random;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Longest token, in bytes: the size that [`MAX_GRANTS`] roles may need.
pub(crate) const MAX_BYTES: usize = 8_192;
/// Accepted difference between the clocks of issuer and server, in seconds.
pub(crate) const SKEW_S: u64 = 30;
/// Longest lifetime of a token, in seconds. Use an API key, which can be listed, for anything
/// longer.
pub const MAX_LIFE_S: u64 = 366 * 86_400;
/// Latest accepted time, in seconds since 1970 UTC: the end of the year 9999.
pub(super) const MAX_TIME_S: u64 = 253_402_300_799;
/// A second, in µs.
pub(super) const SECOND_US: u64 = 1_000_000;
/// The header of every token issued here.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// Accepted `typ` of our tokens.
const OWN_TYPE: &str = "JWT";
/// Accepted `typ` of external tokens: any JWT, or an access token (RFC 9068).
const FOREIGN_TYPES: [&str; 4] = ["JWT", "at+jwt", "application/jwt", "application/at+jwt"];

/// Why a token is refused. Clients only learn that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// Longer than [`MAX_BYTES`].
    TooLong,
    /// Not three parts of Base64url, or the first or second is not a JSON object.
    Form,
    /// The header names another algorithm, none, another type, or an extension.
    Algorithm,
    /// Its issuer has no such key, or not for this algorithm, as far as known.
    Key,
    /// Not signed with a secret of ours, or not with the issuer's key.
    Signature,
    /// A claim is missing, has a wrong type or is out of range.
    Claims,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// It has another issuer.
    Issuer,
    /// It is for another audience.
    Audience,
}

/// The content of a genuine token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VerifiedToken {
    /// One of ours.
    Own(Claims),
    /// One of the external issuer.
    Foreign(ForeignClaims),
}

/// The content of a genuine token of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    /// The account (`sub`).
    pub(crate) account: AccountName,
    /// The most that it grants (`roles`).
    pub(crate) grants: Grants,
    /// Its id (`jti`), to revoke it alone.
    pub(crate) id: Option<TokenId>,
    /// The account's `tokens_valid_from_us` when it was issued; for a token without it, the time of
    /// issue.
    pub(crate) since_us: u64,
    /// When it expires (`exp`), in µs since 1970 UTC.
    pub(crate) expires_at_us: u64,
    /// The generation of the secret that signed it, where secrets are derived from a cluster's key.
    pub(crate) generation: Option<u64>,
}

impl Claims {
    /// When it is no longer accepted here, in µs since 1970 UTC.
    pub(crate) fn until_us(&self) -> u64 {
        self.expires_at_us + SKEW_S * SECOND_US
    }
}

/// A newly issued token.
pub struct IssuedToken {
    /// Sent as `Bearer`.
    pub token: Zeroizing<String>,
    /// Its id.
    pub id: TokenId,
    /// Its lifetime in seconds.
    pub expires_in_s: u64,
}

impl fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issued({})", self.id)
    }
}

/// Issues and verifies tokens.
#[derive(Debug)]
pub struct Tokens {
    secrets: OwnSecrets,
    foreign: Option<ForeignIssuer>,
}

/// The secrets that sign our own tokens.
#[derive(Debug)]
enum OwnSecrets {
    /// The secrets in a file of the data folder.
    InFile(InUse),
    /// The secrets derived from the key of a cluster.
    Derived(DerivedSecrets),
}

/// The source of the signing secret, which decides how it is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretSource {
    /// A file of this node: rotated by [`Tokens::rotate`] and [`Tokens::retire`].
    File,
    /// The key of the cluster: rotated by commands to the view of accounts.
    ClusterKey,
}

/// The secret whose signature matches.
enum SignedBy {
    /// A secret of the file.
    File,
    /// The derived secret of this generation.
    Generation(u64),
}

impl OwnSecrets {
    fn sign(&self, message: &[u8]) -> hmac::Tag {
        match self {
            OwnSecrets::InFile(secrets) => secrets.now().sign(message),
            OwnSecrets::Derived(secrets) => secrets.sign(message),
        }
    }

    fn signed_by(&self, message: &[u8], tag: &[u8]) -> Option<SignedBy> {
        match self {
            OwnSecrets::InFile(secrets) => {
                secrets.now().verifies(message, tag).then_some(SignedBy::File)
            }
            OwnSecrets::Derived(secrets) => {
                secrets.signed_by(message, tag).map(SignedBy::Generation)
            }
        }
    }

    /// The file's secrets; others are not stored here and cannot be replaced.
    fn in_file(&self) -> io::Result<&InUse> {
        match self {
            OwnSecrets::InFile(secrets) => Ok(secrets),
            OwnSecrets::Derived(_) => {
                Err(io::Error::other("the token secret is derived from the cluster's key"))
            }
        }
    }
}

/// The header, as far as it is read.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    alg: Cow<'a, str>,
    #[serde(borrow, default)]
    typ: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kid: Option<Cow<'a, str>>,
    /// Critical extensions: none are supported. `null` counts as one, too.
    #[serde(default, deserialize_with = "given")]
    crit: bool,
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(from).map(|_| true)
}

/// The claims as written. Each claim must have the right type, or the token is refused; unknown
/// claims are ignored.
#[derive(Serialize, Deserialize)]
struct WrittenClaims<'a> {
    #[serde(borrow)]
    sub: Cow<'a, str>,
    /// For clients; not read.
    #[serde(borrow, default)]
    username: Cow<'a, str>,
    roles: Vec<String>,
    iat: u64,
    exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    jti: Option<Cow<'a, str>>,
    /// Whether it names an audience: our tokens name none. `null` counts as one, too.
    #[serde(default, skip_serializing, deserialize_with = "given")]
    aud: bool,
    /// In µs since 1970 UTC. Our own claim: `iat` counts in seconds, which is too coarse to tell a
    /// token from before a password change from one right after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
}

impl Tokens {
    /// Signs and verifies with these secrets. Tokens that name an audience are meant for another
    /// service (RFC 7519, 4.1.3).
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn new(secrets: Secrets) -> Tokens {
        Tokens { secrets: OwnSecrets::InFile(InUse::of(secrets)), foreign: None }
    }

    /// The same, and also accepts tokens of an external issuer.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn trusting(self, foreign: ForeignIssuer) -> Tokens {
        Tokens { foreign: Some(foreign), ..self }
    }

    /// Signs and verifies with the secret of a data folder, and generates one if there is none.
    /// Also accepts tokens of an external issuer, if configured.
    ///
    /// # Errors
    /// As [`Secrets::open`].
    pub(crate) fn open(data: &Path, foreign: Option<ForeignIssuer>) -> io::Result<Tokens> {
        Ok(Tokens { secrets: OwnSecrets::InFile(InUse::open(data)?), foreign })
    }

    /// Signs and verifies with secrets derived from the key of a cluster, of the folded
    /// generations. Also accepts tokens of an external issuer, if configured.
    pub(crate) fn derived(
        key: Arc<ClusterKey>,
        folded: Arc<Folded>,
        foreign: Option<ForeignIssuer>,
    ) -> Tokens {
        Tokens { secrets: OwnSecrets::Derived(DerivedSecrets::new(key, folded)), foreign }
    }

    /// The source of the signing secret.
    pub fn source(&self) -> SecretSource {
        match self.secrets {
            OwnSecrets::InFile(_) => SecretSource::File,
            OwnSecrets::Derived(_) => SecretSource::ClusterKey,
        }
    }

    /// The external issuer, if configured.
    pub(crate) fn foreign(&self) -> Option<&ForeignIssuer> {
        self.foreign.as_ref()
    }

    /// Counts the replacements of secrets and issuer's keys. A token verified under another number
    /// must be verified again. Read it before verifying.
    pub(crate) fn generation(&self) -> u64 {
        let foreign = self.foreign.as_ref().map_or(0, ForeignIssuer::generation);
        let own = match &self.secrets {
            OwnSecrets::InFile(secrets) => secrets.generation(),
            // A token's content depends on its generation, which is judged with the accounts.
            OwnSecrets::Derived(_) => 0,
        };
        own.wrapping_add(foreign)
    }

    /// Generates a new signing secret and writes it to the data folder. Tokens signed with the
    /// previous one stay valid; older ones are invalidated.
    ///
    /// # Errors
    /// As `Secrets::open`; also if there is no file. Nothing has changed then.
    pub fn rotate(&self, data: &Path) -> io::Result<()> {
        self.secrets.in_file()?.rotate(data)
    }

    /// Ends a rotation: from now on only tokens signed with the newest secret are valid.
    ///
    /// # Errors
    /// As `Secrets::open`; also if there is no file. Nothing has changed then.
    pub fn retire(&self, data: &Path) -> io::Result<()> {
        self.secrets.in_file()?.retire(data)
    }

    /// Checks that the data folder holds the secrets in use, and writes them again if it does not.
    ///
    /// # Errors
    /// The file can be neither read nor written.
    pub(super) fn keep(&self, data: &Path) -> io::Result<FileCheck> {
        match &self.secrets {
            OwnSecrets::InFile(secrets) => secrets.keep(data),
            OwnSecrets::Derived(_) => Ok(FileCheck::Sound),
        }
    }

    /// Reloads the secrets of the data folder if another process has replaced them.
    ///
    /// # Errors
    /// As [`Secrets::open`], once for each wrong file: the previous secrets stay in use.
    pub(crate) fn reread(&self, data: &Path) -> io::Result<Reread> {
        match &self.secrets {
            OwnSecrets::InFile(secrets) => secrets.reread(data),
            OwnSecrets::Derived(_) => Ok(Reread::Same),
        }
    }

    /// The signature of a message, for tests that forge everything else.
    #[cfg(any(test, feature = "testing"))]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.secrets.sign(message).as_ref().to_vec()
    }

    /// Issues a token for a number of seconds (1 to [`MAX_LIFE_S`]), at a time in µs since 1970
    /// UTC. `since_us` is the account's `tokens_valid_from_us`, read before its password was
    /// verified.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(crate) fn issue(
        &self,
        account: &AccountName,
        grants: &Grants,
        since_us: u64,
        life_s: u64,
        now_us: u64,
    ) -> io::Result<IssuedToken> {
        let expires_in_s = life_s.clamp(1, MAX_LIFE_S);
        let id = format!("{:032x}", u128::from_be_bytes(random::bytes()?));
        let iat = now_us / SECOND_US;
        let written = WrittenClaims {
            sub: account.as_str().into(),
            username: account.as_str().into(),
            roles: grants.iter().map(Grant::to_string).collect(),
            iat,
            exp: iat + expires_in_s,
            nbf: None,
            jti: Some(id.as_str().into()),
            aud: false,
            since: Some(since_us),
        };
        let json = serde_json::to_vec(&written)?;
        let mut token = Zeroizing::new(String::with_capacity(MAX_BYTES));
        URL_SAFE_NO_PAD.encode_string(HEADER, &mut token);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(json, &mut token);
        let tag = self.secrets.sign(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(tag, &mut token);
        let id = TokenId::parse(&id).map_err(io::Error::other)?;
        Ok(IssuedToken { token, id, expires_in_s })
    }

    /// The content of a token that is genuine, for this server and within its validity (now in µs
    /// since 1970 UTC). No claim is read before the signature is verified.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub(crate) fn verify(&self, token: &[u8], now_us: u64) -> Result<VerifiedToken, TokenFault> {
        if token.len() > MAX_BYTES {
            return Err(TokenFault::TooLong);
        }
        let [header, claims, tag] = parts(token).ok_or(TokenFault::Form)?;
        let signed = &token[..header.len() + 1 + claims.len()];
        let header = decode(header)?;
        let header = read_header(&header)?;
        let (claims, tag) = (decode(claims)?, decode(tag)?);
        if header.alg == "HS256" {
            header.must_be_typed(&[OWN_TYPE])?;
            return self.verify_own(signed, &claims, &tag, now_us).map(VerifiedToken::Own);
        }
        let algorithm = Algorithm::parse(&header.alg).ok_or(TokenFault::Algorithm)?;
        let foreign = self.foreign.as_ref().ok_or(TokenFault::Algorithm)?;
        header.must_be_typed(&FOREIGN_TYPES)?;
        let key_id = header.kid.as_deref();
        let token = TokenParts { key_id, signed, claims: &claims, signature: &tag };
        foreign.verify(algorithm, &token, now_us).map(VerifiedToken::Foreign)
    }

    fn verify_own(
        &self,
        signed: &[u8],
        claims: &[u8],
        tag: &[u8],
        now_us: u64,
    ) -> Result<Claims, TokenFault> {
        let signed_by = self.secrets.signed_by(signed, tag).ok_or(TokenFault::Signature)?;
        if claims.first() != Some(&b'{') {
            return Err(TokenFault::Form);
        }
        let written = serde_json::from_str(text(claims)?).map_err(|_| TokenFault::Claims)?;
        let claims = check_claims(&written, now_us)?;
        Ok(match signed_by {
            SignedBy::File => claims,
            SignedBy::Generation(generation) => Claims { generation: Some(generation), ..claims },
        })
    }
}

fn check_claims(written: &WrittenClaims<'_>, now_us: u64) -> Result<Claims, TokenFault> {
    let WrittenClaims { sub, roles, iat, exp, nbf, jti, aud, since, .. } = written;
    if *aud {
        return Err(TokenFault::Audience);
    }
    let now_s = now_us / SECOND_US;
    let sane = *exp <= MAX_TIME_S && iat < exp && exp - iat <= MAX_LIFE_S;
    if !sane || roles.len() > MAX_GRANTS {
        return Err(TokenFault::Claims);
    }
    if now_s >= exp + SKEW_S {
        return Err(TokenFault::Expired);
    }
    if (*iat).max(nbf.unwrap_or(0)) > now_s + SKEW_S {
        return Err(TokenFault::NotYet);
    }
    let grants = roles.iter().map(|role| Grant::parse(role)).collect::<Option<Vec<Grant>>>();
    let id = jti.as_deref().map(TokenId::parse).transpose();
    Ok(Claims {
        account: AccountName::parse(sub).map_err(|_| TokenFault::Claims)?,
        grants: Grants::new(grants.ok_or(TokenFault::Claims)?).map_err(|_| TokenFault::Claims)?,
        id: id.map_err(|_| TokenFault::Claims)?,
        since_us: since.unwrap_or(iat * SECOND_US),
        expires_at_us: exp * SECOND_US,
        generation: None,
    })
}

/// The three parts between two dots.
fn parts(token: &[u8]) -> Option<[&[u8]; 3]> {
    let mut parts = token.split(|&byte| byte == b'.');
    let three = [parts.next()?, parts.next()?, parts.next()?];
    (parts.next().is_none() && three.iter().all(|part| !part.is_empty())).then_some(three)
}

/// Base64url without padding. Unused bits must be 0, so that each token has one encoding.
fn decode(part: &[u8]) -> Result<Vec<u8>, TokenFault> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Form)
}

/// JSON is UTF-8, also in ignored members, which serde does not examine.
pub(super) fn text(json: &[u8]) -> Result<&str, TokenFault> {
    std::str::from_utf8(json).map_err(|_| TokenFault::Form)
}

fn read_header(json: &[u8]) -> Result<Header<'_>, TokenFault> {
    if json.first() != Some(&b'{') {
        return Err(TokenFault::Form);
    }
    let header: Header<'_> = serde_json::from_str(text(json)?).map_err(|_| TokenFault::Form)?;
    if header.crit { Err(TokenFault::Algorithm) } else { Ok(header) }
}

impl Header<'_> {
    /// The token has no type, or one of these.
    fn must_be_typed(&self, types: &[&str]) -> Result<(), TokenFault> {
        let is = |typ: &str| types.iter().any(|known| typ.eq_ignore_ascii_case(known));
        if self.typ.as_deref().is_none_or(is) { Ok(()) } else { Err(TokenFault::Algorithm) }
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
