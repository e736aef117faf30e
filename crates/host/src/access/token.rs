//! Tokens: JWT (RFC 7519). Ours are signed with HS256, and nothing else; those of another issuer
//! (`foreign`) with RS256 or EdDSA, and nothing else. The header's `alg` says which of the two a
//! token has to be, before anything else of it is looked at. With what it is then verified is not
//! its to choose: HS256 with our secrets alone, the others with the issuer's keys alone, each with
//! what the key itself is for.
//!
//! Read by a strict reader of our own over `ring`, which is there for TLS. `jsonwebtoken` below
//! 10.3 takes claims of a wrong type for claims that are missing (CVE-2026-25537), and from 10 on
//! brings a second stack of cryptography: RSA, two curves and a random generator, or aws-lc-rs.

use super::derived::DerivedSecrets;
use super::foreign::{Cut, Foreign, ForeignClaims};
use super::jwks::Algorithm;
use super::rotation::{InUse, Reread};
#[cfg(any(test, feature = "fuzzing"))]
use super::token_secret::Secrets;
use crate::cluster::ClusterKey;
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
use wellspring_views::access::{AccountName, Folded, Grant, Grants, MAX_GRANTS, TokenId};
use zeroize::Zeroizing;

/// Longest token, in bytes: what [`MAX_GRANTS`] roles may need.
pub(crate) const MAX_BYTES: usize = 8_192;
/// How far the clock of who issued a token may be from that of who reads it, in seconds.
pub(crate) const SKEW_S: u64 = 30;
/// Longest life of a token, in seconds. What has to live longer is an API key, which can be listed.
pub const MAX_LIFE_S: u64 = 366 * 86_400;
/// Latest time that is believed, seconds since 1970 UTC: the end of the year 9999.
pub(super) const MAX_TIME_S: u64 = 253_402_300_799;
/// A second, in µs.
pub(super) const SECOND_US: u64 = 1_000_000;
/// Of every token that is issued here.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// What `typ` may be in a token of ours.
const OWN_TYPE: &str = "JWT";
/// What `typ` may be in a token of another issuer: any JWT, or an access token (RFC 9068).
const FOREIGN_TYPES: [&str; 4] = ["JWT", "at+jwt", "application/jwt", "application/at+jwt"];

/// Why a token is refused. Clients are told only that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// Longer than [`MAX_BYTES`].
    TooLong,
    /// Not three parts of Base64url, or the first or second not a JSON object.
    Form,
    /// The header asks for another algorithm, for none, for another type, or for an extension.
    Algorithm,
    /// Its issuer has no such key, or not for this algorithm, as far as is known here.
    Key,
    /// Not signed with a secret of ours, or not with the issuer's key.
    Signature,
    /// A claim is missing, of a wrong type or out of its range.
    Claims,
    /// Its time is over.
    Expired,
    /// Its time is to come.
    NotYet,
    /// It is of somebody else.
    Issuer,
    /// It is for somebody else.
    Audience,
}

/// What a genuine token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verified {
    /// One of ours.
    Own(Claims),
    /// One of the other issuer.
    Foreign(ForeignClaims),
}

/// What a genuine token of ours says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Whose it is (`sub`).
    pub(crate) account: AccountName,
    /// What it may be used for at most (`roles`).
    pub(crate) grants: Grants,
    /// What names it (`jti`), to revoke it alone.
    pub(crate) id: Option<TokenId>,
    /// The account's `tokens_valid_from_us` that it was issued under; of a token that does not say,
    /// when it was issued.
    pub(crate) since_us: u64,
    /// When it ends (`exp`), µs since 1970 UTC.
    pub(crate) expires_at_us: u64,
    /// The generation of the secret that it was signed with, where those are derived from a
    /// cluster's key.
    pub(crate) generation: Option<u64>,
}

impl Claims {
    /// When it is no longer accepted here, µs since 1970 UTC.
    pub(crate) fn until_us(&self) -> u64 {
        self.expires_at_us + SKEW_S * SECOND_US
    }
}

/// A token that was just issued.
pub struct Issued {
    /// What is sent as `Bearer`.
    pub token: Zeroizing<String>,
    /// What names it.
    pub id: TokenId,
    /// How long it lives, in seconds.
    pub expires_in_s: u64,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issued({})", self.id)
    }
}

/// Issues tokens and reads them.
#[derive(Debug)]
pub struct Tokens {
    secrets: OwnSecrets,
    foreign: Option<Foreign>,
}

/// What our own tokens are signed with.
#[derive(Debug)]
enum OwnSecrets {
    /// What lies in a file of the data folder.
    InFile(InUse),
    /// What is derived from the key of a cluster.
    Derived(DerivedSecrets),
}

/// Where the secret that signs tokens comes from, and so how it is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretSource {
    /// From a file of this node: by [`Tokens::rotate`] and [`Tokens::retire`].
    File,
    /// From the key of the cluster: by commands to the view of accounts.
    ClusterKey,
}

/// Whose signature is right.
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

    /// Those of a file; of others nothing is kept here that could be replaced.
    fn in_file(&self) -> io::Result<&InUse> {
        match self {
            OwnSecrets::InFile(secrets) => Ok(secrets),
            OwnSecrets::Derived(_) => {
                Err(io::Error::other("the secret of tokens is derived from the cluster's key"))
            }
        }
    }
}

/// A header, as far as anybody looks at it.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    alg: Cow<'a, str>,
    #[serde(borrow, default)]
    typ: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kid: Option<Cow<'a, str>>,
    /// Extensions that must be understood: none are. `null` is one too.
    #[serde(default, deserialize_with = "given")]
    crit: bool,
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(from).map(|_| true)
}

/// The claims as they are written. A claim that is there has the right type, or the token is
/// refused; others are passed over.
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
    /// Whether it names an audience: ours name none. `null` is one too.
    #[serde(default, skip_serializing, deserialize_with = "given")]
    aud: bool,
    /// In µs since 1970 UTC. Ours: `iat` counts in seconds, which is too coarse to tell a token
    /// from before a password's change from one right after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
}

impl Tokens {
    /// Signs and verifies with these secrets. Tokens that name an audience are for somebody else
    /// (RFC 7519, 4.1.3).
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn new(secrets: Secrets) -> Tokens {
        Tokens { secrets: OwnSecrets::InFile(InUse::of(secrets)), foreign: None }
    }

    /// The same, and accepts tokens of another issuer besides.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn trusting(self, foreign: Foreign) -> Tokens {
        Tokens { foreign: Some(foreign), ..self }
    }

    /// Signs and verifies with the secret of a data folder, and draws one if there is none. Accepts
    /// tokens of another issuer besides if there is one.
    ///
    /// # Errors
    /// As [`Secrets::open`].
    pub(crate) fn open(data: &Path, foreign: Option<Foreign>) -> io::Result<Tokens> {
        Ok(Tokens { secrets: OwnSecrets::InFile(InUse::open(data)?), foreign })
    }

    /// Signs and verifies with secrets derived from the key of a cluster, of the generations that
    /// are folded. Accepts tokens of another issuer besides if there is one.
    pub(crate) fn derived(
        key: Arc<ClusterKey>,
        folded: Arc<Folded>,
        foreign: Option<Foreign>,
    ) -> Tokens {
        Tokens { secrets: OwnSecrets::Derived(DerivedSecrets::new(key, folded)), foreign }
    }

    /// Where the secret that signs comes from.
    pub fn source(&self) -> SecretSource {
        match self.secrets {
            OwnSecrets::InFile(_) => SecretSource::File,
            OwnSecrets::Derived(_) => SecretSource::ClusterKey,
        }
    }

    /// The other issuer, if there is one.
    pub(crate) fn foreign(&self) -> Option<&Foreign> {
        self.foreign.as_ref()
    }

    /// Counts how often the secrets and the issuer's keys have been replaced. What was verified
    /// under another number has to be verified again. To be read before the token is verified.
    pub(crate) fn generation(&self) -> u64 {
        let foreign = self.foreign.as_ref().map_or(0, Foreign::generation);
        let own = match &self.secrets {
            OwnSecrets::InFile(secrets) => secrets.generation(),
            // What a token says holds with its generation, which is judged with the accounts.
            OwnSecrets::Derived(_) => 0,
        };
        own.wrapping_add(foreign)
    }

    /// Draws a new secret that signs from now on, and writes it to the data folder. Tokens signed
    /// with the one before still count, those signed with the one before that no longer do.
    ///
    /// # Errors
    /// As `Secrets::open`, and it is no file's. Everything is then as it was.
    pub fn rotate(&self, data: &Path) -> io::Result<()> {
        self.secrets.in_file()?.rotate(data)
    }

    /// Ends a rotation: only tokens signed with the newest secret count from now on.
    ///
    /// # Errors
    /// As `Secrets::open`, and it is no file's. Everything is then as it was.
    pub fn retire(&self, data: &Path) -> io::Result<()> {
        self.secrets.in_file()?.retire(data)
    }

    /// Reads the secrets of the data folder anew if another process has replaced them.
    ///
    /// # Errors
    /// As [`Secrets::open`], once for each file that is wrong: the secrets before stay in use.
    pub(crate) fn reread(&self, data: &Path) -> io::Result<Reread> {
        match &self.secrets {
            OwnSecrets::InFile(secrets) => secrets.reread(data),
            OwnSecrets::Derived(_) => Ok(Reread::Same),
        }
    }

    /// The signature of a message. For tests that forge everything else.
    #[cfg(any(test, feature = "testing"))]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.secrets.sign(message).as_ref().to_vec()
    }

    /// Issues a token for so many seconds (1 to [`MAX_LIFE_S`]), at a time in µs since 1970 UTC.
    /// `since_us` is the account's `tokens_valid_from_us`, looked up before its password was
    /// verified.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub(crate) fn issue(
        &self,
        account: &AccountName,
        grants: &Grants,
        since_us: u64,
        life_s: u64,
        now_us: u64,
    ) -> io::Result<Issued> {
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
        Ok(Issued { token, id, expires_in_s })
    }

    /// What a token says, if it is genuine, for us, and in its time (now in µs since 1970 UTC).
    /// Nothing of what it claims is looked at before its signature is.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub(crate) fn verify(&self, token: &[u8], now_us: u64) -> Result<Verified, TokenFault> {
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
            return self.verify_own(signed, &claims, &tag, now_us).map(Verified::Own);
        }
        let algorithm = Algorithm::parse(&header.alg).ok_or(TokenFault::Algorithm)?;
        let foreign = self.foreign.as_ref().ok_or(TokenFault::Algorithm)?;
        header.must_be_typed(&FOREIGN_TYPES)?;
        let key_id = header.kid.as_deref();
        let token = Cut { key_id, signed, claims: &claims, signature: &tag };
        foreign.verify(algorithm, &token, now_us).map(Verified::Foreign)
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

/// Base64url without padding. Bits that mean nothing must be 0, so that a token is written one way.
fn decode(part: &[u8]) -> Result<Vec<u8>, TokenFault> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Form)
}

/// JSON is UTF-8, also in the members that are passed over, where serde does not look.
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
    /// The token says no type, or one of these.
    fn must_be_typed(&self, types: &[&str]) -> Result<(), TokenFault> {
        let is = |typ: &str| types.iter().any(|known| typ.eq_ignore_ascii_case(known));
        if self.typ.as_deref().is_none_or(is) { Ok(()) } else { Err(TokenFault::Algorithm) }
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
