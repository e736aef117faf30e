//! Tokens stored by `wellspring login`: one file per server, private to its owner. The file names
//! the server and is used for that server only; its own name does not matter.

use crate::exit::{Code, Failure};
use crate::state_folder;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wellspring_client::endpoint::{Endpoint, percent_encode};
use wellspring_host::clock::{self, parse_rfc3339, push_rfc3339};
use zeroize::Zeroizing;

/// Folder of the tokens.
const LOGINS: &str = "logins";
/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 16_384;

/// A token, and the server it is for.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Login {
    /// Scheme, host, port and prefix of the only server that gets the token.
    server: String,
    account: String,
    token: String,
    /// When it expires, in RFC 3339.
    until: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({} as {})", self.server, self.account)
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.token);
    }
}

impl Login {
    /// A token of this server that expires at a time (µs since 1970 UTC).
    pub(crate) fn new(
        endpoint: &Endpoint,
        account: &str,
        token: Zeroizing<String>,
        until_us: u64,
    ) -> Login {
        let mut until = Vec::with_capacity(32);
        push_rfc3339(&mut until, until_us);
        Login {
            server: endpoint.origin(),
            account: account.to_owned(),
            token: token.to_string(),
            until: String::from_utf8_lossy(&until).into_owned(),
        }
    }

    pub(crate) fn token(&self) -> Zeroizing<String> {
        Zeroizing::new(self.token.clone())
    }

    /// When it expires.
    pub(crate) fn until(&self) -> &str {
        &self.until
    }
}

/// The token stored for a server, if there is one.
///
/// # Errors
/// It has expired; the file is not private to its owner, or cannot be read.
pub(crate) fn token_for(endpoint: &Endpoint) -> Result<Option<Zeroizing<String>>, Failure> {
    let Some(login) = find(endpoint)? else { return Ok(None) };
    let now_us = clock::system().wall_us();
    if parse_rfc3339(&login.until).is_none_or(|until_us| until_us <= now_us) {
        let Login { server, account, until, .. } = &login;
        return Err(Failure::new(
            Code::Denied,
            format!(
                "the login to {server} as {account} expired at {until}; log in again: \
                 wellspring login {account} --url {server}"
            ),
        ));
    }
    Ok(Some(login.token()))
}

/// The login stored for a server.
pub(crate) fn find(endpoint: &Endpoint) -> Result<Option<Login>, Failure> {
    let Some(folder) = state_folder::of(LOGINS) else { return Ok(None) };
    let path = folder.join(file_name(endpoint));
    let wrong = |why: &str| Failure::new(Code::Denied, format!("{}: {why}", path.display()));
    let mut file = match OpenOptions::new().read(true).custom_flags(NOT_A_LINK).open(&path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(wrong(&error.to_string())),
    };
    let mode = file.metadata().map_err(|error| wrong(&error.to_string()))?.mode();
    if mode & 0o077 != 0 {
        let why = "other users can read or change this token: chmod 600 it, or better, log out and log in again";
        return Err(wrong(why));
    }
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize));
    let read = Read::take(&mut file, MAX_BYTES).read_to_end(&mut text);
    read.map_err(|error| wrong(&error.to_string()))?;
    // The message of serde may contain what it read.
    let login: Login = serde_json::from_slice(&text).map_err(|_| {
        wrong("not a login stored by `wellspring login`; remove the file and log in again")
    })?;
    if login.server != endpoint.origin() {
        return Err(wrong(
            "this token belongs to another server; remove the file and log in again",
        ));
    }
    Ok(Some(login))
}

/// The path for the token of a server. Creates the folder.
pub(crate) fn place(endpoint: &Endpoint) -> Result<PathBuf, Failure> {
    let folder = state_folder::of(LOGINS).ok_or_else(|| {
        Failure::new(Code::Io, "cannot store a token: neither XDG_STATE_HOME nor HOME is set")
    })?;
    let failed = |error| Failure::new(Code::Io, format!("{}: {error}", folder.display()));
    state_folder::make(&folder).map_err(failed)?;
    Ok(folder.join(file_name(endpoint)))
}

/// Stores a token, replacing an earlier one atomically.
pub(crate) fn keep(path: &Path, login: &Login) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(Code::Io, format!("{}: {error}", path.display()));
    let text = serde_json::to_vec(login).map(Zeroizing::new).map_err(|e| failed(e.into()))?;
    state_folder::replace(path, &text).map_err(failed)
}

/// Removes the token of a server.
pub(crate) fn forget(endpoint: &Endpoint) -> Result<(), Failure> {
    let Some(folder) = state_folder::of(LOGINS) else { return Ok(()) };
    let path = folder.join(file_name(endpoint));
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::new(Code::Io, format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// `O_NOFOLLOW`: the checks are about this file, not about the target of a link.
const NOT_A_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

fn file_name(endpoint: &Endpoint) -> String {
    format!("{}.json", percent_encode(&endpoint.origin()))
}
