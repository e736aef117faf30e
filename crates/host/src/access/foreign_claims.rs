//! The claims of an external token. Each claim that is read must occur once and have the right
//! type, or the token is refused; others are ignored. Which claims hold the roles and the name is
//! configurable, so serde cannot derive this.

use super::token::{TokenFault, text};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// The claims required of every external token.
pub(super) const STANDARD: [&str; 5] = ["iss", "aud", "exp", "iat", "nbf"];

/// The configured claims.
pub(super) struct Names<'a> {
    /// The claim with the roles.
    pub(super) roles: &'a str,
    /// The claim with the name.
    pub(super) account: &'a str,
}

/// The content of a token. Times in seconds since 1970 UTC.
#[derive(Debug, Default)]
pub(super) struct WrittenClaims {
    pub(super) issuer: Option<String>,
    /// Empty if missing.
    pub(super) audience: Vec<String>,
    pub(super) exp: Option<u64>,
    pub(super) iat: Option<u64>,
    pub(super) nbf: Option<u64>,
    pub(super) account: Option<String>,
    /// Empty if missing.
    pub(super) roles: Vec<String>,
}

impl WrittenClaims {
    /// Reads the claims, a JSON object.
    ///
    /// # Errors
    /// [`TokenFault::Form`]: not an object. [`TokenFault::Claims`].
    pub(super) fn read(json: &[u8], names: &Names<'_>) -> Result<WrittenClaims, TokenFault> {
        if json.first() != Some(&b'{') {
            return Err(TokenFault::Form);
        }
        let mut reader = serde_json::Deserializer::from_str(text(json)?);
        let written = names.deserialize(&mut reader).map_err(|_| TokenFault::Claims)?;
        reader.end().map_err(|_| TokenFault::Claims)?;
        Ok(written)
    }
}

impl<'de> DeserializeSeed<'de> for &Names<'_> {
    type Value = WrittenClaims;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<WrittenClaims, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &Names<'_> {
    type Value = WrittenClaims;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("claims")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WrittenClaims, A::Error> {
        let mut written = WrittenClaims::default();
        let (mut audience, mut roles) = (None, None);
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "iss" => once(&mut written.issuer, &mut map)?,
                "aud" => once::<OneOrMore, A>(&mut audience, &mut map)?,
                "exp" => once(&mut written.exp, &mut map)?,
                "iat" => once(&mut written.iat, &mut map)?,
                "nbf" => once(&mut written.nbf, &mut map)?,
                name if name == self.account => once(&mut written.account, &mut map)?,
                name if name == self.roles => once::<OneOrMore, A>(&mut roles, &mut map)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        written.audience = audience.map(OneOrMore::whole).unwrap_or_default();
        written.roles = roles.map(OneOrMore::words).unwrap_or_default();
        Ok(written)
    }
}

/// Reads a claim that must not be repeated.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    place: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    match place.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(A::Error::custom("a claim is repeated")),
    }
}

/// A string, or a list of strings.
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    /// The string, or those of the list.
    fn whole(self) -> Vec<String> {
        match self {
            OneOrMore::One(text) => vec![text],
            OneOrMore::More(texts) => texts,
        }
    }

    /// The words of the string (RFC 6749, 3.3), or the strings of the list.
    fn words(self) -> Vec<String> {
        match self {
            OneOrMore::One(text) => text.split(' ').map(str::to_owned).collect(),
            OneOrMore::More(texts) => texts,
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OneOrMore, D::Error> {
        from.deserialize_any(OneOrMoreVisitor)
    }
}

struct OneOrMoreVisitor;

impl<'de> Visitor<'de> for OneOrMoreVisitor {
    type Value = OneOrMore;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMore, E> {
        Ok(OneOrMore::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(OneOrMore::More(texts))
    }
}
