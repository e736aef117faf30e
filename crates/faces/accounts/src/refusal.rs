//! Answers to refused commands of access.

use crate::problems;
use wellspring_host::access::view::{
    MAX_ACCOUNTS, MAX_KEYS, MAX_KEYS_OF_ACCOUNT, MAX_REVOKED, Refusal,
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
pub(super) fn of_refusal(refusal: Refusal) -> Box<Problem> {
    let detail = refusal.to_string();
    match refusal {
        Refusal::NameTaken(_) => problems::ACCOUNT_EXISTS.because(detail).field("name"),
        Refusal::UnknownAccount(name) => unknown_account(name.as_str()),
        Refusal::FirstIsAdmin => {
            let detail = format!("{detail}: give the role \"admin\"");
            problem::INVALID.because(detail).field("roles")
        }
        Refusal::FirstHasPassword => problem::INVALID.because(detail).field("password"),
        // The caller was admitted because there were no accounts.
        Refusal::NotFirst => problem::UNAUTHENTICATED.because(detail),
        Refusal::LastAdmin(_) => problems::LAST_ADMIN.because(detail),
        Refusal::Disabled(_) => problems::ACCOUNT_DISABLED.because(detail).field("account"),
        Refusal::MoreThanOwner(_) => problem::INVALID.because(detail).field("role"),
        Refusal::Log => problem::INVALID.because(detail).field("log"),
        Refusal::TooLate => problem::INVALID.because(detail).field("expires_at"),
        Refusal::UnknownKey(id) => unknown_key(id.as_str()),
        Refusal::TooManyAccounts => {
            problems::TOO_MANY_ACCOUNTS.because(detail).limit(MAX_ACCOUNTS as u64)
        }
        Refusal::TooManyKeys => problems::TOO_MANY_KEYS.because(detail).limit(MAX_KEYS as u64),
        Refusal::TooManyKeysOf(_) => {
            problems::TOO_MANY_KEYS.because(detail).limit(MAX_KEYS_OF_ACCOUNT as u64)
        }
        Refusal::KeyEnded(_) => problems::KEY_ENDED.because(detail),
        Refusal::TooManyRevoked(_) => problem::INTERNAL.because(detail).limit(MAX_REVOKED as u64),
        // Both are random, so this is next to impossible; a retry generates new ones.
        Refusal::KeyTaken(_) | Refusal::SecretTaken => problem::INTERNAL.because(detail),
    }
}
