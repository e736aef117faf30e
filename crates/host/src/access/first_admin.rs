//! Creates the first administrator from the environment of the first start: for containers, where
//! no one can type.

use super::gate::Gate;
use super::joining_node::{self, LeadWait};
use super::password;
use crate::access::view::{AccessRefusal, Command};
use crate::identity::{AccountName, Grant, Grants, Role};
use crate::setup::SetupError;
use std::env::{self, VarError};
use std::time::Duration;
use zeroize::Zeroizing;

/// The first administrator's password. Not part of any configuration, so no configuration dump
/// shows it.
const PASSWORD: &str = "WELLSPRING_ADMIN_PASSWORD";
/// The account's name.
const USER: &str = "WELLSPRING_ADMIN_USER";
const DEFAULT_USER: &str = "admin";

/// Creates the first administrator if the environment names one and there are no accounts. Blocks
/// while the password is hashed, and until this node may create it: only one node of a cluster can,
/// the one that leads; `take_lead` asks for that if no other node creates it.
///
/// # Errors
/// A sentence: the name or the password is invalid, or the account could not be created. Starting
/// without the requested account would leave the server open.
pub(crate) fn ensure_admin(gate: &Gate, take_lead: &dyn Fn()) -> Result<(), SetupError> {
    let password = text(PASSWORD)?.map(Zeroizing::new);
    ensure(gate, password, text(USER)?, joining_node::PATIENCE, take_lead)
}

pub(super) fn ensure(
    gate: &Gate,
    password: Option<Zeroizing<String>>,
    user: Option<String>,
    patience: Duration,
    take_lead: &dyn Fn(),
) -> Result<(), SetupError> {
    let Some(password) = password else { return Ok(()) };
    if gate.has_accounts() {
        tell_ignored();
        return Ok(());
    }
    let name = user.unwrap_or_else(|| DEFAULT_USER.to_owned());
    let name = AccountName::parse(&name).map_err(|fault| format!("{USER}: {fault}"))?;
    password::check(&password).map_err(|fault| format!("{PASSWORD}: {fault}"))?;
    let password =
        password::hash(&password).map_err(|error| format!("cannot hash the password: {error}"))?;
    let roles = Grants::from(Grant::everywhere(Role::Admin));
    let command = [Command::AddFirstAccount { name: name.clone(), password, roles }];
    let failed = |reason: SetupError| format!("cannot create the account {name}: {reason}");
    loop {
        let turn = joining_node::await_turn(gate, patience, take_lead).map_err(&failed)?;
        if turn == LeadWait::Accounts {
            tell_ignored();
            return Ok(());
        }
        match super::offline::execute(gate.live(), &command) {
            Ok(None) => {
                tracing::info!(account = %name, "created the first account, an administrator \
                                                 of everything");
                return Ok(());
            }
            // Another node created it first, which is just as good.
            Ok(Some(AccessRefusal::NotFirst)) => return Ok(()),
            Ok(Some(refusal)) => return Err(failed(refusal.to_string().into()).into()),
            Err(reason) if gate.live().log().role().leads() => {
                return Err(failed(reason.into()).into());
            }
            // Another node leads by now: wait for its turn, or for ours again.
            Err(_) => {}
        }
    }
}

fn tell_ignored() {
    tracing::info!("accounts exist: {PASSWORD} is ignored and no longer needed");
}

/// The text of a variable. A password that is not UTF-8 could never be typed again.
fn text(variable: &str) -> Result<Option<String>, SetupError> {
    match env::var(variable) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("{variable} is not UTF-8").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn made(
        gate: &Gate,
        password: Option<Zeroizing<String>>,
        user: Option<String>,
    ) -> Result<(), SetupError> {
        ensure(gate, password, user, Duration::ZERO, &|| ())
    }

    fn secret(text: &str) -> Option<Zeroizing<String>> {
        Some(Zeroizing::new(text.to_owned()))
    }

    #[test]
    fn the_first_admin_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let host = testing::host(dir.path(), &[]);
        let gate = &*host.access;
        assert_eq!(made(gate, None, Some("ann".to_owned())), Ok(()));
        assert!(gate.is_open(), "a name alone makes none");
        for (password, user) in [("short", None), ("", None), ("long enough", Some("Ann"))] {
            let refused = made(gate, secret(password), user.map(str::to_owned)).unwrap_err();
            assert!(refused.to_string().contains("WELLSPRING_ADMIN_"), "{refused}");
            assert!(password.is_empty() || !refused.to_string().contains(password), "{refused}");
        }
        assert!(gate.is_open());
        made(gate, secret("long enough"), Some("ann".to_owned())).unwrap();
        made(gate, secret("something else"), None).unwrap();
        made(gate, secret("short"), Some("Not a name".to_owned())).unwrap();
        let state = gate.state();
        let names: Vec<&str> = state.accounts().map(|account| account.name().as_str()).collect();
        assert_eq!(names, ["ann"]);
        let ann = state.account("ann").unwrap();
        assert!(ann.grants().are_admins());
        assert_eq!(
            password::verify(ann.password(), "long enough"),
            password::PasswordVerdict::Right
        );
    }
}
