//! Idempotency keys: their owners, and their names in the log.
//!
//! A log's request keys share one name space. So that no request can use or find another client's
//! key with the same text:
//! - with accounts, the name is the account's and a digest of the key. No account can make
//!   another's;
//! - a bulk puts `#` and the number of each batch behind its name, and no name of a single request
//!   holds a `#`: a key that does is kept as a digest, and so is one that leaves a bulk no room;
//! - otherwise, on an open server, the key is its own name, as it always was.

use crate::http::Request;
use crate::http::contract::IDEMPOTENCY_KEY;
use crate::http::header_names;
use crate::wire::problem::{self, Problem};
use sha2::{Digest, Sha256};
use wellspring_types::valid::check_text;
use wellspring_types::{Invalid, limits};

/// Prefix of digested names on an open server; client keys that start with it are digested, too.
const DIGESTED: &str = "sha256:";
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
    // Replaced bytes would make one key of several.
    let key = std::str::from_utf8(value.as_bytes())
        .map_err(|_| {
            problem::INVALID.because("Idempotency-Key must be UTF-8").field("Idempotency-Key")
        })?
        .to_owned();
    check_text(&key, limits::MAX_REQUEST_KEY_BYTES)
        .map_err(|reason| Invalid { field: "Idempotency-Key".into(), reason })?;
    let account = request.principal.account().map(|account| account.as_str());
    Ok(Some(stored_name(account, key, key_use)))
}

/// The name in the log of a chunk of an import, whose own name is 32 hexadecimal digits. No client
/// can forge it: no request key contains a `#`, and the suffix of a bulk's key is a short number.
pub fn import_name(request: &Request) -> impl Fn(&[u8; 16]) -> String + Send + 'static {
    let account = request.principal.account().map(|account| format!("{}:", account.as_str()));
    let account = account.unwrap_or_default();
    move |chunk| {
        let mut name = format!("{account}import#");
        for byte in chunk {
            name.push_str(&format!("{byte:02x}"));
        }
        assert!(name.len() <= limits::MAX_REQUEST_KEY_BYTES, "{name}");
        name
    }
}

fn stored_name(account: Option<&str>, key: String, key_use: KeyUse) -> String {
    let needs_digest = key.starts_with(DIGESTED)
        || match key_use {
            KeyUse::Request => key.contains('#'),
            KeyUse::Batches => key.len() + BATCH_SUFFIX_BYTES > limits::MAX_REQUEST_KEY_BYTES,
        };
    let name = match account {
        Some(account) => format!("{account}:{}", digest_of(account, &key)),
        None if needs_digest => format!("{DIGESTED}{}", digest_of("", &key)),
        None => return key,
    };
    assert!(name.len() + BATCH_SUFFIX_BYTES <= limits::MAX_REQUEST_KEY_BYTES, "{name}");
    name
}

fn digest_of(account: &str, key: &str) -> String {
    let digest = Sha256::new().chain_update(account).chain_update([0]).chain_update(key);
    digest.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
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

    fn name(account: &str, key: &str, key_use: KeyUse) -> String {
        let account = (!account.is_empty()).then_some(account);
        stored_name(account, key.to_owned(), key_use)
    }

    #[test]
    fn a_key_belongs_to_its_account() {
        let names = ["", "ann", "bob"].map(|account| name(account, "order-7", KeyUse::Request));
        assert_eq!(names[0], "order-7", "what an open server has stored is found again");
        assert!(names[1] != names[2] && names[1] != names[0]);
        // No client can forge another's key.
        assert_ne!(name("bob", &names[1], KeyUse::Request), names[1]);
        assert_eq!(name("ann", "order-7", KeyUse::Request), names[1]);
        // A bulk that is asked to use the longest keys has room for the numbers of its batches.
        let longest = |last: &str| name("", &format!("{}{last}", "k".repeat(254)), KeyUse::Batches);
        assert!(longest("a").len() + BATCH_SUFFIX_BYTES <= limits::MAX_REQUEST_KEY_BYTES);
        assert_ne!(longest("a"), longest("b"));
        assert_eq!(name("", &"k".repeat(240), KeyUse::Batches), "k".repeat(240), "as it was");
        let longest = name(&"a".repeat(64), &"k".repeat(255), KeyUse::Request);
        assert!(longest.len() + BATCH_SUFFIX_BYTES <= limits::MAX_REQUEST_KEY_BYTES);
    }

    #[test]
    fn no_key_of_a_single_request_is_that_of_a_batch() {
        for account in ["", "ann"] {
            let batch = format!("{}#0", name(account, "K", KeyUse::Batches));
            for key in ["K#0", &batch] {
                assert_ne!(name(account, key, KeyUse::Request), batch);
            }
            assert!(!name(account, "K#0", KeyUse::Request).contains('#'));
        }
        let digested = name("", "K#0", KeyUse::Request);
        assert_ne!(name("", &digested, KeyUse::Request), digested, "it cannot be written by hand");
    }
}
