//! Idempotency keys: their owners, and their names in the log.
//!
//! A log's request keys share one name space. So that no request can use or find another client's
//! key with the same text:
//! - a caller with an account, or that an external issuer vouches for, has names that are a digest
//!   of the [`Holder`] and the key, behind `holder:`;
//! - the server's own requests have names behind [`SERVER_KEYS`];
//! - a bulk puts `#` and the number of each batch behind its name, and no name of a single request
//!   holds a `#`: a key that does is kept as a digest, and so is one that leaves a bulk no room;
//! - otherwise, on an open server, the key is its own name, as it always was, unless it begins like
//!   one of the names above.

use crate::access::Holder;
use crate::http::Request;
use crate::http::contract::IDEMPOTENCY_KEY;
use crate::http::header_names;
use crate::wire::effects::Repeat;
use crate::wire::problem::{self, Problem};
use sha2::{Digest, Sha256};
use wellspring_log::SERVER_KEYS;
use wellspring_types::valid::check_text;
use wellspring_types::{Invalid, hex, limits};

/// Prefix of digested names on an open server.
const DIGESTED: &str = "sha256:";
/// Prefix of the names of a holder's keys.
const HELD: &str = "holder:";
/// What a key on an open server may not begin with to be its own name.
const RESERVED: [&str; 3] = [DIGESTED, HELD, SERVER_KEYS];
/// Bytes that a bulk needs after its name.
const BATCH_SUFFIX_BYTES: usize = 15;

/// The use of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// One request.
    Request,
    /// The batches of a bulk.
    Batches,
}

/// The name in the log of the request's `Idempotency-Key`, if it has one.
///
/// # Errors
/// 422 `invalid`: it is empty, too long, no UTF-8, or contains control characters.
pub fn idempotency_key(request: &Request, key_use: KeyUse) -> Result<Option<String>, Box<Problem>> {
    debug_assert!(request.contract.reads(&IDEMPOTENCY_KEY), "the key is not declared");
    let Some(value) = request.headers.get(&header_names::IDEMPOTENCY_KEY) else { return Ok(None) };
    request.effects.read_key();
    name_of_key(request.principal.holder(), value.as_bytes(), key_use).map(Some)
}

/// The name in the log of an `Idempotency-Key` of this holder.
///
/// # Errors
/// As of [`idempotency_key`].
pub fn name_of_key(
    holder: Holder<'_>,
    value: &[u8],
    key_use: KeyUse,
) -> Result<String, Box<Problem>> {
    // Replaced bytes would make one key of several.
    let key = std::str::from_utf8(value)
        .map_err(|_| {
            problem::INVALID.because("Idempotency-Key must be UTF-8").field("Idempotency-Key")
        })?
        .to_owned();
    check_key(&key, "Idempotency-Key")?;
    Ok(stored_name(holder, key, key_use))
}

/// The name in the log of a key that stands in the body, in this field, for what an earlier request
/// of the same caller has done under it.
///
/// # Errors
/// 422 `invalid`, 413 `too-large`: it is empty, too long, or contains control characters.
pub fn named_key(request: &Request, key: String, field: &str) -> Result<String, Box<Problem>> {
    check_key(&key, field)?;
    Ok(stored_name(request.principal.holder(), key, KeyUse::Request))
}

fn check_key(key: &str, field: &str) -> Result<(), Invalid> {
    check_text(key, limits::MAX_REQUEST_KEY_BYTES)
        .map_err(|reason| Invalid { field: field.into(), reason })
}

/// Refuses a key: a client that sends one relies on it.
///
/// # Errors
/// 422 `invalid`: there is one.
pub fn refuse_key(request: &Request) -> Result<(), Box<Problem>> {
    if !request.headers.contains_key(&header_names::IDEMPOTENCY_KEY) {
        return Ok(());
    }
    let detail = match request.contract.repeat {
        Repeat::Safe => {
            "the content of the request is its own key: send it again without Idempotency-Key"
        }
        Repeat::Unsafe => {
            "this request does not read Idempotency-Key, and a retry could be executed again; send \
             it without the key"
        }
    };
    Err(problem::INVALID.because(detail).field(IDEMPOTENCY_KEY.name))
}

/// The name in the log of a chunk of an import, whose own name is 32 hexadecimal digits. No client
/// can forge it: no request key contains a `#`, and the suffix of a bulk's key is a short number.
///
/// An account is known by its name alone, so that imports of earlier versions are known again. One
/// that took over the name of another finds the other's chunks known, which have the same content.
pub fn import_name(request: &Request) -> impl Fn(&[u8; 16]) -> String + Send + 'static {
    let holder = match request.principal.holder() {
        Holder::AnyCaller => String::new(),
        Holder::Account { name, .. } => format!("{name}:"),
        holder @ Holder::Subject(_) => format!("{HELD}{}:", digest_of(holder, "")),
    };
    move |chunk| {
        let name = format!("{holder}import#{}", hex::digits(chunk));
        assert!(name.len() <= limits::MAX_REQUEST_KEY_BYTES, "{name}");
        name
    }
}

fn stored_name(holder: Holder<'_>, key: String, key_use: KeyUse) -> String {
    let needs_digest = RESERVED.iter().any(|prefix| key.starts_with(prefix))
        || match key_use {
            KeyUse::Request => key.contains('#'),
            KeyUse::Batches => key.len() + BATCH_SUFFIX_BYTES > limits::MAX_REQUEST_KEY_BYTES,
        };
    let prefix = match holder {
        Holder::AnyCaller if needs_digest => DIGESTED,
        Holder::AnyCaller => return key,
        Holder::Account { .. } | Holder::Subject(_) => HELD,
    };
    format!("{prefix}{}", digest_of(holder, &key))
}

fn digest_of(holder: Holder<'_>, key: &str) -> String {
    let digest = Sha256::new().chain_update(holder.to_string()).chain_update([0]).chain_update(key);
    hex::digits(&digest.finalize()[..16])
}

/// Tells a retry from another request with the same key.
pub fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&Sha256::digest(bytes)[..16]);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Holder<'static> = Holder::Account { name: "ann", added_at: 3 };
    const ANN_AGAIN: Holder<'static> = Holder::Account { name: "ann", added_at: 9 };
    const BOB: Holder<'static> = Holder::Account { name: "bob", added_at: 3 };
    const SUBJECT: Holder<'static> = Holder::Subject("jwt:ann");
    const OTHER_SUBJECT: Holder<'static> = Holder::Subject("jwt:bob");

    fn name(holder: Holder<'_>, key: &str, key_use: KeyUse) -> String {
        stored_name(holder, key.to_owned(), key_use)
    }

    #[test]
    fn a_key_belongs_to_its_holder() {
        let all = [Holder::AnyCaller, ANN, ANN_AGAIN, BOB, SUBJECT, OTHER_SUBJECT];
        let names = all.map(|holder| name(holder, "order-7", KeyUse::Request));
        assert_eq!(names[0], "order-7", "what an open server has stored is found again");
        for (at, one) in names.iter().enumerate() {
            assert!(!names[at + 1..].contains(one), "{one}");
            // No client can write another's name by hand.
            for holder in all {
                assert!(at == 0 || name(holder, one, KeyUse::Request) != *one, "{one}");
            }
        }
        assert_eq!(name(ANN, "order-7", KeyUse::Request), names[1]);
        let of_server = format!("{SERVER_KEYS}x");
        assert_ne!(name(Holder::AnyCaller, &of_server, KeyUse::Request), of_server);
    }

    #[test]
    fn the_longest_key_leaves_a_bulk_room() {
        let longest = |last: &str| {
            name(Holder::AnyCaller, &format!("{}{last}", "k".repeat(254)), KeyUse::Batches)
        };
        assert!(longest("a").len() + BATCH_SUFFIX_BYTES <= limits::MAX_REQUEST_KEY_BYTES);
        assert_ne!(longest("a"), longest("b"));
        let kept = "k".repeat(240);
        assert_eq!(name(Holder::AnyCaller, &kept, KeyUse::Batches), kept, "as it was");
    }

    #[test]
    fn no_key_of_a_single_request_is_that_of_a_batch() {
        for holder in [Holder::AnyCaller, ANN, SUBJECT] {
            let batch = format!("{}#0", name(holder, "K", KeyUse::Batches));
            for key in ["K#0", &batch] {
                assert_ne!(name(holder, key, KeyUse::Request), batch);
            }
            assert!(!name(holder, "K#0", KeyUse::Request).contains('#'));
        }
        let digested = name(Holder::AnyCaller, "K#0", KeyUse::Request);
        let again = name(Holder::AnyCaller, &digested, KeyUse::Request);
        assert_ne!(again, digested, "it cannot be written by hand");
    }
}
