//! Accounts in the data folder of a stopped server.

use super::store::{AccountRow, Enabled, KeyFilter, KeyRow, WantedKey};
use crate::exit::{Code, Failure};
use crate::span::End;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::path::{Path, PathBuf};
use wellspring_host::access::json::{AccountDocument, KeyDocument, NO_LABEL};
use wellspring_host::access::offline::{IfMissing, Offline, OfflineError};
use wellspring_host::access::view::{AccessRefusal, Command, Key};
use wellspring_host::access::{accounts_marker, api_key, password};
use wellspring_host::clock::{self, parse_rfc3339};
use wellspring_host::identity::{AccountName, Grants, KeyId, Label};
use wellspring_host::wire::json::to_json;
use zeroize::Zeroizing;

/// A data folder.
pub(crate) struct Folder {
    data: PathBuf,
    offline: Offline,
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Folder({})", self.data.display())
    }
}

impl Folder {
    pub(super) fn open(data: &Path, if_missing: IfMissing) -> Result<Folder, Failure> {
        let at = data.display();
        let offline = Offline::open(data, if_missing).map_err(|error| match error {
            OfflineError::InUse => Failure::new(
                Code::Unavailable,
                format!(
                    "{at} is in use by a running server; use --url (with credentials, if there are \
                     accounts) instead of --data, or stop the server"
                ),
            ),
            OfflineError::NotThere => {
                Failure::new(Code::NoInput, format!("there are no accounts in {at} (--data)"))
            }
            OfflineError::Failed(reason) => Failure::new(Code::Io, reason),
        })?;
        Ok(Folder { data: data.to_owned(), offline })
    }

    pub(super) fn accounts(&self) -> Result<Vec<AccountRow>, Failure> {
        self.offline.state().accounts().map(|a| shown(&AccountDocument::of(a))).collect()
    }

    pub(super) fn account(&self, name: &AccountName) -> Result<AccountRow, Failure> {
        let state = self.offline.state();
        let account = state
            .account(name.as_str())
            .ok_or_else(|| refused(&AccessRefusal::UnknownAccount(name.clone())))?;
        shown(&AccountDocument::of(account))
    }

    pub(super) fn delete(&self, name: &AccountName) -> Result<(), Failure> {
        self.execute(Command::Delete { name: name.clone() })
    }

    pub(super) fn add(
        &self,
        name: &AccountName,
        password: Option<Zeroizing<String>>,
        roles: &Grants,
    ) -> Result<(), Failure> {
        let password = password.map(|password| hash(&password)).transpose()?;
        self.execute(Command::AddAccount { name: name.clone(), password, roles: roles.clone() })?;
        // Takes effect now, not at the next start.
        accounts_marker::mark(&self.data).map_err(|reason| Failure::new(Code::Io, reason))
    }

    pub(super) fn set_password(
        &self,
        name: &AccountName,
        password: Zeroizing<String>,
    ) -> Result<(), Failure> {
        self.execute(Command::SetPassword { name: name.clone(), password: hash(&password)? })
    }

    pub(super) fn set_roles(&self, name: &AccountName, roles: &Grants) -> Result<(), Failure> {
        self.execute(Command::SetRoles { name: name.clone(), roles: roles.clone() })
    }

    pub(super) fn set_enabled(&self, name: &AccountName, to: Enabled) -> Result<(), Failure> {
        let name = name.clone();
        self.execute(match to {
            Enabled::Yes => Command::Enable { name },
            Enabled::No => Command::Disable { name },
        })
    }

    pub(super) fn keys(
        &self,
        account: Option<&str>,
        show: KeyFilter,
    ) -> Result<Vec<KeyRow>, Failure> {
        let now_us = clock::system().wall_us();
        let wanted = |key: &&std::sync::Arc<Key>| {
            (show == KeyFilter::All || !key.is_revoked())
                && account.is_none_or(|name| key.owner().as_str() == name)
        };
        let state = self.offline.state();
        let keys = state.keys().filter(wanted);
        keys.map(|key| shown(&KeyDocument::of(key, now_us, None))).collect()
    }

    pub(super) fn add_key(&self, wanted: WantedKey) -> Result<KeyRow, Failure> {
        let WantedKey { label, grant, end, account } = wanted;
        let owner = account.ok_or_else(|| {
            Failure::usage("with --data the owner of the key must be named: --account NAME")
        })?;
        let now_us = clock::system().wall_us();
        let expires_at_us = match end {
            None | Some(End::Never) => None,
            Some(End::In(seconds)) => Some(now_us + seconds * 1_000_000),
            Some(End::At(moment)) => {
                let moment_us = parse_rfc3339(&moment).filter(|&moment_us| moment_us > now_us);
                Some(moment_us.ok_or_else(|| Failure::usage("--expires is in the past"))?)
            }
        };
        let label = match label {
            Some(label) => label,
            None => Label::parse(NO_LABEL).map_err(io)?,
        };
        let api_key::NewKey { id, secret, digest } = api_key::draw().map_err(io)?;
        let key = id.clone();
        let in_place_of = None;
        self.execute(Command::AddKey {
            id: key,
            label,
            digest,
            grant,
            expires_at_us,
            owner,
            in_place_of,
            now_us,
        })?;
        let state = self.offline.state();
        let key = state.key(id.as_str());
        let key = key.ok_or_else(|| Failure::new(Code::Io, "the new key cannot be found"))?;
        shown(&KeyDocument::of(key, now_us, Some(&secret)))
    }

    pub(super) fn revoke_key(&self, id: &KeyId) -> Result<(), Failure> {
        self.execute(Command::RevokeKey { id: id.clone() })
    }

    fn execute(&self, command: Command) -> Result<(), Failure> {
        let done = self.offline.execute(&[command]);
        match done.map_err(|reason| Failure::new(Code::Io, reason))? {
            None => Ok(()),
            Some(refusal) => Err(refused(&refusal)),
        }
    }
}

/// A refusal, with the exit code that a server's answer would have.
fn refused(refusal: &AccessRefusal) -> Failure {
    let code = match refusal {
        AccessRefusal::UnknownAccount(_) | AccessRefusal::UnknownKey(_) => Code::Usage,
        _ => Code::Refused,
    };
    Failure::new(code, refusal.to_string())
}

fn hash(password: &str) -> Result<wellspring_host::access::view::PasswordHash, Failure> {
    password::hash(password).map_err(io)
}

fn io(error: impl fmt::Display) -> Failure {
    Failure::new(Code::Io, error.to_string())
}

/// The JSON that a server would send.
fn shown<T: DeserializeOwned>(document: &impl Serialize) -> Result<T, Failure> {
    let json = Zeroizing::new(to_json(document));
    serde_json::from_slice(&json).map_err(|_| Failure::new(Code::Io, "the entry cannot be shown"))
}
