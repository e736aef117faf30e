//! Refusals of access as answers.

use crate::problems;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_views::access::{MAX_ACCOUNTS, MAX_KEYS, MAX_KEYS_OF_ACCOUNT, MAX_REVOKED, Refusal};

/// The answer about an account that is not there.
pub(super) fn unknown_account(name: &str) -> Box<Problem> {
    problems::ACCOUNT_NOT_FOUND.because(format!("there is no account {name:?}"))
}

/// The answer about a key that is not there, or that is nothing to whoever asks.
pub(super) fn unknown_key(id: &str) -> Box<Problem> {
    problems::KEY_NOT_FOUND.because(format!(
        "there is no API key with the id {id:?}; pass the key's id, not its \
                          label or secret"
    ))
}

/// A command that was refused becomes an answer.
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
        // Whoever asked was let in because there were none.
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
        // Both are random: this is a miracle, and another try draws anew.
        Refusal::KeyTaken(_) | Refusal::SecretTaken => problem::INTERNAL.because(detail),
    }
}
