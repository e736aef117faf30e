//! Tokens that `wellspring login` keeps: a file a server, for its owner alone. The file says whose
//! token it is, and is used for that server only, whatever it is called.

use crate::exit::{Code, Failure};
use crate::state_folder;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wellspring_host::client::endpoint::{Endpoint, percent_encode};
use wellspring_host::clock::{self, parse_rfc3339, push_rfc3339};
use zeroize::Zeroizing;

/// Folder of the tokens.
const LOGINS: &str = "logins";
/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 16_384;

/// A token, and where it counts.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Login {
    /// Scheme, host, port and prefix of the only server that is shown the token.
    server: String,
    account: String,
    token: String,
    /// When it ends, in RFC 3339.
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
    /// A token of this server that ends at a time (µs since 1970 UTC).
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

    /// The token.
    pub(crate) fn token(&self) -> Zeroizing<String> {
        Zeroizing::new(self.token.clone())
    }

    /// When it ends.
    pub(crate) fn until(&self) -> &str {
        &self.until
    }
}

/// The token that is kept for a server; `None`: none is.
///
/// # Errors
/// It has ended; the file is not for its owner alone, or cannot be read.
pub(crate) fn token_for(endpoint: &Endpoint) -> Result<Option<Zeroizing<String>>, Failure> {
    let Some(login) = find(endpoint)? else { return Ok(None) };
    let now_us = clock::system().wall_us();
    if parse_rfc3339(&login.until).is_none_or(|until_us| until_us <= now_us) {
        let Login { server, account, until, .. } = &login;
        return Err(Failure::new(
            Code::Denied,
            format!(
                "the login at {server} as {account} ended at {until}; log in again: \
                 wellspring login {account} --url {server}"
            ),
        ));
    }
    Ok(Some(login.token()))
}

/// What is kept for a server.
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
        let why = "others may read or change this token: chmod 600 it, or better log out and log in again";
        return Err(wrong(why));
    }
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize));
    let read = Read::take(&mut file, MAX_BYTES).read_to_end(&mut text);
    read.map_err(|error| wrong(&error.to_string()))?;
    // What serde says may hold what it read.
    let login: Login = serde_json::from_slice(&text).map_err(|_| {
        wrong("this is not what `wellspring login` keeps; remove it and log in again")
    })?;
    if login.server != endpoint.origin() {
        return Err(wrong("this token is another server's; remove it and log in again"));
    }
    Ok(Some(login))
}

/// Where the token of a server is to be kept. The folder is made.
pub(crate) fn place(endpoint: &Endpoint) -> Result<PathBuf, Failure> {
    let folder = state_folder::of(LOGINS).ok_or_else(|| {
        Failure::new(Code::Io, "neither XDG_STATE_HOME nor HOME says where a token could be kept")
    })?;
    let failed = |error| Failure::new(Code::Io, format!("{}: {error}", folder.display()));
    state_folder::make(&folder).map_err(failed)?;
    Ok(folder.join(file_name(endpoint)))
}

/// Keeps a token, in place of one that is there: whole or not at all.
pub(crate) fn keep(path: &Path, login: &Login) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(Code::Io, format!("{}: {error}", path.display()));
    let text = serde_json::to_vec(login).map(Zeroizing::new).map_err(|e| failed(e.into()))?;
    state_folder::replace(path, &text).map_err(failed)
}

/// Forgets the token of a server.
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

/// `O_NOFOLLOW`: the file is what is judged, not what a link leads to.
const NOT_A_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

fn file_name(endpoint: &Endpoint) -> String {
    format!("{}.json", percent_encode(&endpoint.origin()))
}
