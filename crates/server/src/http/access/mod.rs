//! Access over HTTP: logging in and out, accounts and API keys. Who may call what is in the routes'
//! table; what depends on whose account or key it is, is said here.

mod accounts;
mod body;
pub(crate) mod json;
mod keys;
mod login;
mod password;
mod refusal;
mod rotate;
mod session;

pub(crate) use accounts::{add, change, get, list};
pub(crate) use body::reads;
pub(crate) use keys::{NO_LABEL, add_key, get_key, list_keys, revoke_key, rotate_key};
pub(crate) use login::token;
pub(crate) use password::set_password;
pub(crate) use rotate::rotate;
pub(crate) use session::{logout, me};

use super::append::commit_on;
use super::params::{expect_json, expect_json_of_pages};
use super::problem::{self, Problem};
use super::{Request, Shell};
use crate::access::Principal;
use crate::access::principal::{Method, Verdict};
use bytes::Bytes;
use wellspring_views::access::{AccountName, Command, Refusal, Role};

/// Executes commands, and waits until every request sees what they changed.
async fn execute(
    shell: &Shell,
    request: &Request,
    commands: &[Command],
) -> Result<(), Box<Problem>> {
    match try_execute(shell, request, commands).await? {
        None => Ok(()),
        Some(refusal) => Err(refusal::of_refusal(refusal)),
    }
}

/// The same, for who has an answer to a refusal.
async fn try_execute(
    shell: &Shell,
    request: &Request,
    commands: &[Command],
) -> Result<Option<Refusal>, Box<Problem>> {
    // Its body, or the hash of a password, may have been long in coming.
    request.still_may()?;
    let live = shell.access.live();
    Ok(live.execute(commands, None, commit_on(shell, request)).await?.refused)
}

/// The whole body, which must be JSON.
async fn body_of(request: &mut Request) -> Result<Bytes, Box<Problem>> {
    expect_json(request)?;
    request.body.read(body::MAX_BODY_BYTES).await
}

/// The same, where nothing at all is as good as `{}`. Not for a page in a browser (`Origin`): what it
/// sends without saying that it is JSON, a browser sends for any page without asking first, with
/// the password its user once typed.
async fn optional_body_of(request: &mut Request) -> Result<Bytes, Box<Problem>> {
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let is_nothing = body.iter().all(u8::is_ascii_whitespace);
    if is_nothing { expect_json_of_pages(request) } else { expect_json(request) }?;
    Ok(if is_nothing { Bytes::from_static(b"{}") } else { body })
}

/// Whether somebody is an admin of everything.
fn is_admin(principal: &Principal) -> bool {
    principal.may(Role::Admin, None) == Verdict::Allowed
}

/// The answer where accounts are needed and there are none.
fn no_accounts(what: &str) -> Box<Problem> {
    problem::NO_ACCOUNTS.because(format!(
        "there are no accounts, so {what}; POST /v1/accounts or `wellspring user add` makes the first"
    ))
}

/// The account of somebody who may change his password and his keys; `None`: he has none, as another
/// issuer says who he is. Who finds a key must not be able to make others of it, nor to lock its
/// owner out.
fn own_account(principal: &Principal) -> Result<Option<&AccountName>, Box<Problem>> {
    match principal.method() {
        Method::Key(_) if !is_admin(principal) => Err(problem::FORBIDDEN.because(
            "an API key manages neither keys nor passwords nor accounts, unless it is one of an admin \
             of everything; use a token (POST /auth/token) or the password",
        )),
        Method::None | Method::Open => Err(no_accounts("there are no keys and no passwords")),
        _ => Ok(principal.account()),
    }
}
