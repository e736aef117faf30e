//! `PUT /v1/accounts/{name}/password`: one's own, given the current one; others' by an
//! administrator.

use super::register::NAME;
use super::{body, body_of, execute, is_admin, own_account};
use crate::problems;
use std::sync::Arc;
use wellspring_host::access::password::{self as rules, Busy};
use wellspring_host::access::view::{Command, PasswordHash};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::identity::AccountName;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use zeroize::Zeroizing;

/// Sets a password. All tokens of the account end.
pub(crate) async fn set_password(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&NAME)?;
    let bytes = body_of(&mut request).await?;
    let body::NewPassword { password, current } =
        body::read_password(&bytes).map_err(|fault| of_fault(&fault, &bytes))?;
    let own = own_account(&request.principal)? == Some(&name);
    if !own && !is_admin(&request.principal) {
        let detail = "you can set your own password; only an administrator of everything may set \
                      those of others";
        return Err(problem::FORBIDDEN.because(detail));
    }
    check(&password)?;
    prove(&host, &request, &name, own, current).await?;
    let password = hash(&host, password).await?;
    let command = Command::SetPassword { name, password };
    let position = execute(&host, &request, &[command]).await?;
    Ok(Response::empty(204).at(position))
}

/// Requires the current password for a change of one's own: an unlocked screen must not be enough
/// to take over the account.
async fn prove(
    host: &Host,
    request: &Request,
    name: &AccountName,
    own: bool,
    current: Option<Zeroizing<String>>,
) -> Result<(), Box<Problem>> {
    let has_password = |account: &std::sync::Arc<_>| {
        let account: &wellspring_host::access::view::Account = account;
        account.password().is_some()
    };
    let asked = own && host.access.state().account(name.as_str()).is_some_and(has_password);
    match (asked, current) {
        (true, Some(current)) => {
            let login = host.access.login(name.as_str(), current, request.client).await;
            login.map(|_| ()).map_err(|problem| match problem.kind.status {
                401 => problems::WRONG_PASSWORD
                    .because("current is not the password of the account")
                    .field("current"),
                _ => problem,
            })
        }
        (true, None) => Err(problem::INVALID
            .because("current is required to change your own password")
            .field("current")),
        (false, None) => {
            if own && !is_admin(&request.principal) {
                Err(problem::FORBIDDEN.because(
                    "the account has no password; an administrator of everything sets the first",
                ))
            } else {
                Ok(())
            }
        }
        (false, Some(_)) => Err(problem::INVALID
            .because("current is only for changing your own password; leave it out")
            .field("current")),
    }
}

/// Checks a new password.
fn check(password: &str) -> Result<(), Box<Problem>> {
    rules::check(password)
        .map_err(|fault| problem::INVALID.because(fault.to_string()).field("password"))
}

/// The hash of a new password.
///
/// # Errors
/// It breaks a rule (422), or too many passwords are being hashed (429).
pub(super) async fn hash(
    host: &Host,
    password: Zeroizing<String>,
) -> Result<PasswordHash, Box<Problem>> {
    check(&password)?;
    match host.access.passwords().hash(password).await {
        Ok(Ok(hash)) => Ok(hash),
        Ok(Err(error)) => {
            Err(problem::INTERNAL.because(format!("cannot hash the password: {error}")))
        }
        Err(Busy) => Err(problem::TOO_MANY_LOGINS
            .because("too many passwords are being hashed or verified; try again")),
    }
}
