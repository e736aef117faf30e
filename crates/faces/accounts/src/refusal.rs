//! Answers to refused commands of access.

use crate::problems;
use wellspring_host::access::view::{
    AccessRefusal, MAX_ACCOUNTS, MAX_KEYS, MAX_KEYS_OF_ACCOUNT, MAX_REVOKED,
};
use wellspring_host::wire::problem::{self, Problem};

/// The answer for an unknown account.
pub(super) fn unknown_account(name: &str) -> Box<Problem> {
    problems::ACCOUNT_NOT_FOUND.because(format!("there is no account {name:?}"))
}

/// The answer for an unknown key, or one that the caller may not see.
pub(super) fn unknown_key(id: &str) -> Box<Problem> {
    problems::KEY_NOT_FOUND.because(format!(
        "there is no API key with the id {id:?}; pass the key's id, not its label or secret"
    ))
}

/// The answer to a refused command.
pub(super) fn of_refusal(refusal: AccessRefusal) -> Box<Problem> {
    let detail = refusal.to_string();
    match refusal {
        AccessRefusal::NameTaken(_) => problems::ACCOUNT_EXISTS.because(detail).field("name"),
        AccessRefusal::UnknownAccount(name) => unknown_account(name.as_str()),
        AccessRefusal::FirstIsAdmin => {
            let detail = format!("{detail}: give the role \"admin\"");
            problem::INVALID.because(detail).field("roles")
        }
        AccessRefusal::FirstHasPassword => problem::INVALID.because(detail).field("password"),
        // The caller was admitted because there were no accounts.
        AccessRefusal::NotFirst => problem::UNAUTHENTICATED.because(detail),
        AccessRefusal::LastAdmin(_) => problems::LAST_ADMIN.because(detail),
        AccessRefusal::Disabled(_) => problems::ACCOUNT_DISABLED.because(detail).field("account"),
        AccessRefusal::MoreThanOwner(_) => problem::INVALID.because(detail).field("role"),
        AccessRefusal::Log => problem::INVALID.because(detail).field("log"),
        AccessRefusal::TooLate => problem::INVALID.because(detail).field("expires_at"),
        AccessRefusal::UnknownKey(id) => unknown_key(id.as_str()),
        AccessRefusal::TooManyAccounts => {
            problems::TOO_MANY_ACCOUNTS.because(detail).limit(MAX_ACCOUNTS as u64)
        }
        AccessRefusal::TooManyKeys => {
            problems::TOO_MANY_KEYS.because(detail).limit(MAX_KEYS as u64)
        }
        AccessRefusal::TooManyKeysOf(_) => {
            problems::TOO_MANY_KEYS.because(detail).limit(MAX_KEYS_OF_ACCOUNT as u64)
        }
        AccessRefusal::KeyEnded(_) => problems::KEY_ENDED.because(detail),
        AccessRefusal::TooManyRevoked(_) => {
            problem::INTERNAL.because(detail).limit(MAX_REVOKED as u64)
        }
        // Both are random, so this is next to impossible; a retry generates new ones.
        AccessRefusal::KeyTaken(_) | AccessRefusal::SecretTaken => {
            problem::INTERNAL.because(detail)
        }
    }
}
