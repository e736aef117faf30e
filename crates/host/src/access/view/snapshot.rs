//! Access as bytes: one JSON object, which is readable because accounts and keys are few. It is
//! taken from one state, so it covers exactly the events up to its position.

use super::state::{Access, Account, Folded, Key, State};
use super::{
    AccountName, Grant, Grants, KeyId, Label, PasswordHash, SecretDigest, TokenGenerations, TokenId,
};
use crate::view::contract::SnapshotFault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use wellspring_types::Position;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    applied: Position,
    deleted_until_us: u64,
    token_generations: TokenGenerations,
    accounts: Vec<AccountForm>,
    keys: Vec<KeyForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountForm {
    name: AccountName,
    password: Option<PasswordHash>,
    grants: Grants,
    disabled: bool,
    added_at: Position,
    added_at_us: u64,
    tokens_valid_from_us: u64,
    revoked: BTreeMap<TokenId, u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyForm {
    id: KeyId,
    label: Label,
    owner: AccountName,
    sha256: SecretDigest,
    grant: Grant,
    added_at_us: u64,
    made_until_us: Option<u64>,
    expires_at_us: Option<u64>,
    revoked_at_us: Option<u64>,
}

pub(super) fn encode(folded: &Folded, out: &mut impl Write) -> io::Result<()> {
    let state = folded.now();
    let accounts = state.accounts.values().map(|account| {
        let Account {
            name,
            password,
            grants,
            disabled,
            added_at,
            added_at_us,
            tokens_valid_from_us,
            revoked,
        } = Account::clone(account);
        let grants = Grants::clone(&grants);
        AccountForm {
            name,
            password,
            grants,
            disabled,
            added_at,
            added_at_us,
            tokens_valid_from_us,
            revoked,
        }
    });
    let keys = state.keys.values().map(|key| {
        let Key {
            id,
            label,
            owner,
            digest: sha256,
            grant,
            added_at_us,
            made_until_us,
            expires_at_us,
            revoked_at_us,
        } = Key::clone(key);
        KeyForm {
            id,
            label,
            owner,
            sha256,
            grant,
            added_at_us,
            made_until_us,
            expires_at_us,
            revoked_at_us,
        }
    });
    let State { applied, deleted_until_us, token_generations, .. } = *state;
    let (accounts, keys) = (accounts.collect(), keys.collect());
    let form = Form { applied, deleted_until_us, token_generations, accounts, keys };
    serde_json::to_writer(out, &form).map_err(io::Error::from)
}

pub(super) fn decode(input: &mut impl Read) -> Result<Access, SnapshotFault> {
    // Whatever follows the object belongs to the caller.
    let mut input = serde_json::Deserializer::from_reader(input);
    let form = Form::deserialize(&mut input).map_err(|error| match error.classify() {
        serde_json::error::Category::Io | serde_json::error::Category::Eof => {
            SnapshotFault::Io(error.into())
        }
        _ => SnapshotFault::Malformed("not the JSON of accounts and keys"),
    })?;
    let Form { applied, deleted_until_us, token_generations, .. } = form;
    if !token_generations.are_sound() {
        return Err(SnapshotFault::Malformed("no fold produces these token generations"));
    }
    let mut state = State { applied, deleted_until_us, token_generations, ..State::default() };
    for account in form.accounts {
        let AccountForm {
            name,
            password,
            grants,
            disabled,
            added_at,
            added_at_us,
            tokens_valid_from_us,
            revoked,
        } = account;
        let grants = Arc::new(grants);
        let key = name.clone();
        let account = Account {
            name,
            password,
            grants,
            disabled,
            added_at,
            added_at_us,
            tokens_valid_from_us,
            revoked,
        };
        if state.accounts.insert(key, Arc::new(account)).is_some() {
            return Err(SnapshotFault::Malformed("an account appears twice"));
        }
    }
    for key in form.keys {
        let KeyForm {
            id,
            label,
            owner,
            sha256: digest,
            grant,
            added_at_us,
            made_until_us,
            expires_at_us,
            revoked_at_us,
        } = key;
        if state.key(id.as_str()).is_some() || state.key_of(&digest).is_some() {
            return Err(SnapshotFault::Malformed("a key appears twice"));
        }
        let fits = grant.log.as_deref().is_none_or(crate::names::is_name)
            && made_until_us.is_none_or(|made_us| expires_at_us.is_some_and(|us| us <= made_us));
        if !fits || (revoked_at_us.is_none() && state.account(owner.as_str()).is_none()) {
            return Err(SnapshotFault::Malformed("no fold produces this key"));
        }
        state.insert_key(Key {
            id,
            label,
            owner,
            digest,
            grant,
            added_at_us,
            made_until_us,
            expires_at_us,
            revoked_at_us,
        });
    }
    Ok(Access::of(state))
}
