//! The credentials of a tool. Secrets come from the environment, from a file or from the terminal,
//! never from the command line: every user of a machine can read that.

use crate::exit::{Code, Failure};
use crate::secret;
use crate::stored_login;
use std::env::{self, VarError};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use wellspring_client::authorization::Authorization;
use wellspring_client::endpoint::Endpoint;
use zeroize::Zeroizing;

/// Variable that may hold a token or an API key.
const VARIABLE: &str = "WELLSPRING_TOKEN";
/// Longest token that is read, in bytes.
const MAX_BYTES: u64 = 8_192;

/// The credentials to send to a server that has accounts.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Credentials")]
pub(crate) struct Credentials {
    /// File with a token or an API key [default: $WELLSPRING_TOKEN, or the stored login]
    #[arg(long, value_name = "FILE", conflicts_with = "user", global = true)]
    token_file: Option<PathBuf>,
    /// Log in as this account; asks for the password on the terminal
    #[arg(long, value_name = "NAME", global = true)]
    user: Option<String>,
    /// File with the password of --user; - is standard input
    #[arg(long, value_name = "FILE", requires = "user", global = true, hide_short_help = true)]
    user_password_file: Option<PathBuf>,
}

impl Credentials {
    /// The same, with the password of `account` from this file, if that is the account of --user
    /// and no file is named for its password yet.
    pub(crate) fn with_password_of(&self, account: &str, file: &Path) -> Option<Credentials> {
        let is_open = self.user.as_deref() == Some(account) && self.user_password_file.is_none();
        is_open.then(|| Credentials { user_password_file: Some(file.to_owned()), ..self.clone() })
    }

    /// The flags that say the same on another command line.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let Credentials { token_file, user, user_password_file } = self;
        let file = |path: &PathBuf| path.display().to_string();
        [
            ("--token-file", token_file.as_ref().map(file)),
            ("--user", user.clone()),
            ("--user-password-file", user_password_file.as_ref().map(file)),
        ]
        .into_iter()
        .filter_map(|(flag, value)| Some((flag, value?)))
        .collect()
    }

    /// The credentials to send to this server, if any. May ask on the terminal. Without options and
    /// variable it is the token that `wellspring login` stored for that server.
    ///
    /// # Errors
    /// A file that cannot be read, something that is no token, a terminal that is not there, a
    /// login that has ended.
    pub(crate) fn authorization(
        &self,
        endpoint: &Endpoint,
    ) -> Result<Option<Authorization>, Failure> {
        if let Some(user) = &self.user {
            if user.is_empty() || user.contains(|c: char| c == ':' || c.is_control()) {
                return Err(Failure::usage("--user: not a valid account name"));
            }
            let password = match &self.user_password_file {
                Some(path) => secret::of_file("--user-password-file", path)?,
                None => secret::ask(&format!("Password of {user}: "), "--user-password-file")?,
            };
            return Ok(Some(Authorization::Basic(user.clone(), password)));
        }
        if let Some(path) = &self.token_file {
            return of_file(path).map(Some);
        }
        match env::var(VARIABLE).map(Zeroizing::new) {
            // As `export WELLSPRING_TOKEN=$(…)` leaves it if the command fails.
            Ok(token) if token.trim().is_empty() => Ok(None),
            Ok(token) => bearer(token, VARIABLE).map(Some),
            Err(VarError::NotPresent) => {
                Ok(stored_login::token_for(endpoint)?.map(Authorization::Bearer))
            }
            Err(VarError::NotUnicode(_)) => Err(no_token(VARIABLE)),
        }
    }
}

/// Whether the variable is set, so that no stored login is used.
pub(crate) fn variable_is_set() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// The token or API key in a file.
///
/// # Errors
/// It cannot be read, or holds something else.
pub(crate) fn of_file(path: &Path) -> Result<Authorization, Failure> {
    let from = format!("--token-file {}", path.display());
    let failed = |error| Failure::new(Code::NoInput, format!("{from}: {error}"));
    let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES as usize + 1));
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(failed)?;
    if text.len() as u64 > MAX_BYTES { Err(no_token(&from)) } else { bearer(text, &from) }
}

/// A token or an API key, without the white space around it.
fn bearer(text: Zeroizing<String>, from: &str) -> Result<Authorization, Failure> {
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(no_token(from));
    }
    Ok(Authorization::Bearer(Zeroizing::new(token.to_owned())))
}

fn no_token(from: &str) -> Failure {
    Failure::usage(format!(
        "{from} does not hold a token or an API key: one word of visible ASCII characters"
    ))
}

/// Advice on an answer with this status and problem, if it is about credentials; begins with a
/// separator.
pub(crate) fn hint(status: u16, slug: &str) -> &'static str {
    match status {
        403 if slug == "wrong-password" => {
            "; nothing was changed. The current password is read from --current-password-file, or from \
             --user-password-file if --user names the same account, or asked for"
        }
        401 => {
            "; set WELLSPRING_TOKEN to a token or an API key, name a file that holds one \
             (--token-file) or an account (--user), or log in first (`wellspring login`)"
        }
        403 => {
            "; use credentials of an account with access (WELLSPRING_TOKEN, --token-file, --user)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Endpoint {
        Endpoint::parse("http://127.0.0.1:4000").unwrap()
    }

    #[test]
    fn a_token_is_read_from_a_file_and_never_printed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let credentials =
                Credentials { token_file: Some(path.clone()), ..Credentials::default() };
            credentials.authorization(&server()).map(Option::unwrap)
        };
        let canary = read("\n wsk_canary\n").unwrap();
        assert_eq!(canary.header().as_str(), "Bearer wsk_canary");
        assert!(!format!("{canary:?}").contains("canary"));
        for bad in ["", "\n", "two words", "ä", &"x".repeat(9_000)] {
            let failure = read(bad).unwrap_err();
            assert_eq!(failure.code, Code::Usage, "{failure:?}");
        }
        let missing =
            Credentials { token_file: Some("/does/not/exist".into()), ..Default::default() };
        assert_eq!(missing.authorization(&server()).unwrap_err().code, Code::NoInput);
    }
}
