//! Accounts, whether on a running server or in a data folder: one set of operations.

use super::folder::Folder;
use super::server::Server;
use crate::credentials::Credentials;
use crate::exit::Failure;
use crate::folder_owner::keeping_owner;
use crate::server::{DEFAULT_URL, endpoint};
use crate::span::End;
use serde::Deserialize;
use serde_json::{Value, json};
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use wellspring_client::Client;
use wellspring_client::trust::Trust;
use wellspring_host::access::offline::IfMissing;
use wellspring_host::identity::{AccountName, Grant, Grants, KeyId, Label};
use zeroize::Zeroizing;

/// Variable that may hold the address of the server.
const VARIABLE: &str = "WELLSPRING_URL";

/// The server or data folder whose accounts are meant.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Server")]
pub(super) struct StoreArgs {
    /// Address of the server [env: WELLSPRING_URL] [default: http://127.0.0.1:4000]
    // Clap does not read the variable: one that is always set would conflict with --data.
    #[arg(long, global = true)]
    url: Option<String>,
    /// Data folder of a stopped server, instead of a running server
    #[arg(long, value_name = "DIR", global = true, conflicts_with_all = ["user", "token_file"])]
    data: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    credentials: Credentials,
}

impl StoreArgs {
    /// The same, reading the current password of `account` from this file, if --user names that
    /// account; `None` otherwise.
    pub(super) fn with_password_of(&self, account: &AccountName, file: &Path) -> Option<StoreArgs> {
        let credentials = self.credentials.with_password_of(account.as_str(), file)?;
        Some(StoreArgs { credentials, ..self.clone() })
    }

    /// Does work on the store: on a data folder, as its owner.
    ///
    /// # Errors
    /// Those of the work, and of [`keeping_owner`](crate::folder_owner::keeping_owner).
    pub(super) fn keeping_owner<T>(
        &self,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match &self.data {
            Some(data) => keeping_owner(data, work),
            None => work(),
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// Usage; a folder that is in use, or has no accounts and must have some; a failure of the
    /// credentials.
    pub(super) fn store(&self, if_missing: IfMissing) -> Result<AccountStore, Failure> {
        match &self.data {
            Some(_) if self.url.is_some() => Err(Failure::usage(
                "--data and --url exclude each other: --data is the folder of a stopped server, --url the \
                 address of a running one; give one of them",
            )),
            Some(data) => Folder::open(data, if_missing).map(AccountStore::Folder),
            None => {
                let url = self.url.clone().or_else(|| env::var(VARIABLE).ok());
                let url = url.as_deref().filter(|url| !url.is_empty()).unwrap_or(DEFAULT_URL);
                let endpoint =
                    endpoint(url).map_err(|Failure { code, message }| match self.url {
                        Some(_) => Failure { code, message },
                        None => Failure::new(code, message.replacen("--url", VARIABLE, 1)),
                    })?;
                let authorization = self.credentials.authorization(&endpoint)?;
                let client = Client::new(endpoint, &self.trust).map_err(Failure::usage)?;
                Ok(AccountStore::Server(Box::new(Server::new(client, authorization))))
            }
        }
    }
}

/// An account as it is shown.
#[derive(Debug, Deserialize)]
pub(super) struct AccountRow {
    pub(super) name: String,
    pub(super) roles: Vec<String>,
    pub(super) enabled: bool,
    pub(super) has_password: bool,
    pub(super) added_at: String,
}

impl AccountRow {
    /// In the server's format.
    pub(super) fn to_json(&self) -> Value {
        let AccountRow { name, roles, enabled, has_password, added_at } = self;
        json!({
            "name": name, "roles": roles, "enabled": enabled, "has_password": has_password,
            "added_at": added_at,
        })
    }
}

/// A key as it is shown.
#[derive(Debug, Deserialize)]
pub(super) struct KeyRow {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) account: String,
    pub(super) role: String,
    pub(super) log: Option<String>,
    pub(super) added_at: String,
    pub(super) expires_at: Option<String>,
    pub(super) state: String,
    /// Only of a key that was just created.
    #[serde(default)]
    pub(super) secret: Option<Secret>,
}

impl KeyRow {
    /// In the server's list format, without its secret.
    pub(super) fn to_json(&self) -> Value {
        let KeyRow { id, label, account, role, log, added_at, expires_at, state, .. } = self;
        json!({
            "id": id, "label": label, "account": account, "role": role, "log": log,
            "added_at": added_at, "expires_at": expires_at, "state": state,
        })
    }
}

/// The secret of a key: shown once, and in no message.
#[derive(Deserialize)]
#[serde(from = "String")]
pub(super) struct Secret(pub(super) Zeroizing<String>);

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A key to create.
#[derive(Debug)]
pub(super) struct WantedKey {
    pub(super) label: Option<Label>,
    pub(super) grant: Grant,
    pub(super) end: Option<End>,
    pub(super) account: Option<AccountName>,
}

/// The storage of accounts.
#[derive(Debug)]
pub(super) enum AccountStore {
    /// A running server.
    Server(Box<Server>),
    /// A data folder.
    Folder(Folder),
}

impl AccountStore {
    pub(super) fn accounts(&mut self) -> Result<Vec<AccountRow>, Failure> {
        match self {
            AccountStore::Server(server) => server.accounts(),
            AccountStore::Folder(folder) => folder.accounts(),
        }
    }

    pub(super) fn account(&mut self, name: &AccountName) -> Result<AccountRow, Failure> {
        match self {
            AccountStore::Server(server) => server.account(name),
            AccountStore::Folder(folder) => folder.account(name),
        }
    }

    /// Deletes an account with its tokens and keys.
    pub(super) fn delete(&mut self, name: &AccountName) -> Result<(), Failure> {
        match self {
            AccountStore::Server(server) => server.delete(name),
            AccountStore::Folder(folder) => folder.delete(name),
        }
    }

    /// Creates an account.
    pub(super) fn add(
        &mut self,
        name: &AccountName,
        password: Option<Zeroizing<String>>,
        roles: &Grants,
    ) -> Result<(), Failure> {
        match self {
            AccountStore::Server(server) => server.add(name, password, roles),
            AccountStore::Folder(folder) => folder.add(name, password, roles),
        }
    }

    /// The current password, if setting that of this account requires it.
    pub(super) fn current_password(
        &mut self,
        name: &AccountName,
    ) -> Result<CurrentPassword, Failure> {
        match self {
            AccountStore::Server(server) => server.current_password(name),
            AccountStore::Folder(_) => Ok(CurrentPassword::NotNeeded),
        }
    }

    pub(super) fn set_password(
        &mut self,
        name: &AccountName,
        password: Zeroizing<String>,
        current: Option<Zeroizing<String>>,
    ) -> Result<(), Failure> {
        match self {
            AccountStore::Server(server) => server.set_password(name, password, current),
            AccountStore::Folder(folder) => folder.set_password(name, password),
        }
    }

    /// Sets an account's roles, all of them.
    pub(super) fn set_roles(&mut self, name: &AccountName, roles: &Grants) -> Result<(), Failure> {
        match self {
            AccountStore::Server(server) => server.set_roles(name, roles),
            AccountStore::Folder(folder) => folder.set_roles(name, roles),
        }
    }

    /// Enables or disables an account.
    pub(super) fn set_enabled(&mut self, name: &AccountName, to: Enabled) -> Result<(), Failure> {
        match self {
            AccountStore::Server(server) => server.set_enabled(name, to),
            AccountStore::Folder(folder) => folder.set_enabled(name, to),
        }
    }

    /// Keys of an account, or all visible ones.
    pub(super) fn keys(
        &mut self,
        account: Option<&str>,
        show: KeyFilter,
    ) -> Result<Vec<KeyRow>, Failure> {
        match self {
            AccountStore::Server(server) => server.keys(account, show),
            AccountStore::Folder(folder) => folder.keys(account, show),
        }
    }

    /// Creates a key.
    pub(super) fn add_key(&mut self, wanted: WantedKey) -> Result<KeyRow, Failure> {
        match self {
            AccountStore::Server(server) => server.add_key(wanted),
            AccountStore::Folder(folder) => folder.add_key(wanted),
        }
    }

    pub(super) fn revoke_key(&mut self, id: &KeyId) -> Result<(), Failure> {
        match self {
            AccountStore::Server(server) => server.revoke_key(id),
            AccountStore::Folder(folder) => folder.revoke_key(id),
        }
    }

    /// Creates a key in place of another, which stays valid for `overlap_s`. On a server only.
    pub(super) fn rotate_key(
        &mut self,
        id: &KeyId,
        overlap_s: u64,
        end: Option<End>,
    ) -> Result<KeyRow, Failure> {
        match self {
            AccountStore::Server(server) => server.rotate_key(id, overlap_s, end),
            AccountStore::Folder(_) => Err(Failure::usage(
                "keys are rotated on a running server; with --data use `token revoke` and `token create`",
            )),
        }
    }
}

/// The current password, as far as setting a new one requires it.
pub(super) enum CurrentPassword {
    /// The account is not the caller's.
    NotNeeded,
    /// It authenticates the request already.
    Known(Zeroizing<String>),
    /// It must be asked for.
    Needed,
}

/// Whether an account is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enabled {
    Yes,
    No,
}

/// The keys to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyFilter {
    /// Those that are not revoked.
    Unrevoked,
    /// All, revoked ones included.
    All,
}
