//! Where accounts are kept, and what can be done there, whichever it is.

use super::folder::Folder;
use super::server::Server;
use crate::credentials::Credentials;
use crate::exit::Failure;
use crate::server::{DEFAULT_URL, endpoint};
use crate::span::End;
use serde::Deserialize;
use serde_json::{Value, json};
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use wellspring_host::access::offline::IfMissing;
use wellspring_host::client::Client;
use wellspring_host::client::trust::Trust;
use wellspring_views::access::{AccountName, Grant, Grants, KeyId, Label};
use zeroize::Zeroizing;

/// Where the address of the server may stand.
const VARIABLE: &str = "WELLSPRING_URL";

/// Which accounts.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Place {
    /// Address of the server [env: WELLSPRING_URL] [default: http://127.0.0.1:4000]
    // Not read from the environment by clap, for which a variable that is always set would be a
    // contradiction to --data.
    #[arg(long, global = true)]
    url: Option<String>,
    /// A data folder that no server holds, instead of a running server. Needs no credentials.
    #[arg(long, value_name = "DIR", global = true, conflicts_with_all = ["user", "token_file"])]
    data: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    credentials: Credentials,
}

impl Place {
    /// The same, with the password that `account` has now from this file, if --user says that it is
    /// the one who asks; `None` otherwise.
    pub(super) fn with_password_of(&self, account: &AccountName, file: &Path) -> Option<Place> {
        let credentials = self.credentials.with_password_of(account.as_str(), file)?;
        Some(Place { credentials, ..self.clone() })
    }

    /// Goes there.
    ///
    /// # Errors
    /// Usage; a folder that is in use, or holds no accounts and is not to; whatever the credentials
    /// bring.
    pub(super) fn desk(&self, if_missing: IfMissing) -> Result<Desk, Failure> {
        match &self.data {
            Some(_) if self.url.is_some() => Err(Failure::usage(
                "--data and --url name two places; --data is the folder of a server that does not run, --url \
                 one that does: give one of them",
            )),
            Some(data) => Folder::open(data, if_missing).map(Desk::Folder),
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
                Ok(Desk::Server(Box::new(Server::new(client, authorization))))
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
    /// As the server shows it.
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
    /// Of one that was just made.
    #[serde(default)]
    pub(super) secret: Option<Secret>,
}

impl KeyRow {
    /// As the server lists it: without its secret.
    pub(super) fn to_json(&self) -> Value {
        let KeyRow { id, label, account, role, log, added_at, expires_at, state, .. } = self;
        json!({
            "id": id, "label": label, "account": account, "role": role, "log": log,
            "added_at": added_at, "expires_at": expires_at, "state": state,
        })
    }
}

/// What is shown once, and in no message.
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

/// A key to make.
#[derive(Debug)]
pub(super) struct WantedKey {
    pub(super) label: Option<Label>,
    pub(super) grant: Grant,
    pub(super) end: Option<End>,
    pub(super) account: Option<AccountName>,
}

/// Where accounts are kept.
#[derive(Debug)]
pub(super) enum Desk {
    /// A running server.
    Server(Box<Server>),
    /// A data folder.
    Folder(Folder),
}

impl Desk {
    /// All accounts.
    pub(super) fn accounts(&mut self) -> Result<Vec<AccountRow>, Failure> {
        match self {
            Desk::Server(server) => server.accounts(),
            Desk::Folder(folder) => folder.accounts(),
        }
    }

    /// One account.
    pub(super) fn account(&mut self, name: &AccountName) -> Result<AccountRow, Failure> {
        match self {
            Desk::Server(server) => server.account(name),
            Desk::Folder(folder) => folder.account(name),
        }
    }

    /// Deletes an account with its tokens and keys.
    pub(super) fn delete(&mut self, name: &AccountName) -> Result<(), Failure> {
        match self {
            Desk::Server(server) => server.delete(name),
            Desk::Folder(folder) => folder.delete(name),
        }
    }

    /// Makes an account.
    pub(super) fn add(
        &mut self,
        name: &AccountName,
        password: Option<Zeroizing<String>>,
        roles: &Grants,
    ) -> Result<(), Failure> {
        match self {
            Desk::Server(server) => server.add(name, password, roles),
            Desk::Folder(folder) => folder.add(name, password, roles),
        }
    }

    /// Whether to set this account's password takes the one there is.
    pub(super) fn is_own(&mut self, name: &AccountName) -> Result<Own, Failure> {
        match self {
            Desk::Server(server) => server.is_own(name),
            Desk::Folder(_) => Ok(Own::No),
        }
    }

    /// Sets a password.
    pub(super) fn set_password(
        &mut self,
        name: &AccountName,
        password: Zeroizing<String>,
        current: Option<Zeroizing<String>>,
    ) -> Result<(), Failure> {
        match self {
            Desk::Server(server) => server.set_password(name, password, current),
            Desk::Folder(folder) => folder.set_password(name, password),
        }
    }

    /// Sets an account's roles, all of them.
    pub(super) fn set_roles(&mut self, name: &AccountName, roles: &Grants) -> Result<(), Failure> {
        match self {
            Desk::Server(server) => server.set_roles(name, roles),
            Desk::Folder(folder) => folder.set_roles(name, roles),
        }
    }

    /// Enables or disables an account.
    pub(super) fn set_enabled(&mut self, name: &AccountName, to: Enabled) -> Result<(), Failure> {
        match self {
            Desk::Server(server) => server.set_enabled(name, to),
            Desk::Folder(folder) => folder.set_enabled(name, to),
        }
    }

    /// Keys: of an account, or all that may be seen.
    pub(super) fn keys(
        &mut self,
        account: Option<&str>,
        show: Show,
    ) -> Result<Vec<KeyRow>, Failure> {
        match self {
            Desk::Server(server) => server.keys(account, show),
            Desk::Folder(folder) => folder.keys(account, show),
        }
    }

    /// Makes a key.
    pub(super) fn add_key(&mut self, wanted: WantedKey) -> Result<KeyRow, Failure> {
        match self {
            Desk::Server(server) => server.add_key(wanted),
            Desk::Folder(folder) => folder.add_key(wanted),
        }
    }

    /// Ends a key.
    pub(super) fn revoke_key(&mut self, id: &KeyId) -> Result<(), Failure> {
        match self {
            Desk::Server(server) => server.revoke_key(id),
            Desk::Folder(folder) => folder.revoke_key(id),
        }
    }

    /// Makes a key in place of another, which counts for so many seconds more. Of a server only.
    pub(super) fn rotate_key(
        &mut self,
        id: &KeyId,
        overlap_s: u64,
        end: Option<End>,
    ) -> Result<KeyRow, Failure> {
        match self {
            Desk::Server(server) => server.rotate_key(id, overlap_s, end),
            Desk::Folder(_) => Err(Failure::usage(
                "a key is rotated at a running server: without one nobody uses it, so `token revoke` and \
                 `token create` do the same",
            )),
        }
    }
}

/// Whether a password is one's own.
pub(super) enum Own {
    /// It is another's.
    No,
    /// It is, and was shown with the request.
    Shown(Zeroizing<String>),
    /// It is, and has to be asked for.
    Unknown,
}

/// What to make of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enabled {
    Yes,
    No,
}

/// Which keys to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// Those that are not revoked.
    Unrevoked,
    /// All there ever were.
    All,
}
