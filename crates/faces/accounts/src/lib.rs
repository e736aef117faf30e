//! Access over HTTP: logging in and out, accounts and API keys. Each route declares the role it
//! needs; what depends on the owner of an account or key is decided here.

#![forbid(unsafe_code)]

mod body;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzed;
mod keys;
mod login;
mod password;
mod problems;
mod refusal;
mod register;
mod rotate;
mod session;

pub(crate) use keys::{add_key, get_key, list_keys, revoke_key, rotate_key};
pub(crate) use login::token;
pub(crate) use password::set_password;
pub(crate) use register::{add, change, delete, get, list};
pub(crate) use rotate::rotate;
pub(crate) use session::{logout, me};

use crate::problems::{
    ACCOUNT_DISABLED, ACCOUNT_EXISTS, ACCOUNT_NOT_FOUND, KEY_ENDED, KEY_NOT_FOUND, LAST_ADMIN,
    NO_ACCOUNTS, NO_TOKEN, TOO_MANY_ACCOUNTS, TOO_MANY_KEYS, WRONG_PASSWORD,
};
use bytes::Bytes;
use keys::{ACCOUNT, ID, REVOKED};
use register::{AFTER, LIMIT, NAME};
use std::sync::Arc;
use wellspring_host::access::Principal;
use wellspring_host::access::principal::Verdict;
use wellspring_host::access::view::{AccessRefusal, Command};
use wellspring_host::declare::routes;
use wellspring_host::http::content::{expect_json, expect_json_of_pages};
use wellspring_host::http::contract::{CONSISTENCY, FRESHNESS, LOCATION, SYSTEM_POSITION, WAIT_MS};
use wellspring_host::http::declared_problems::{APPENDING, VIEWING};
use wellspring_host::http::face::{Face, ServedRoute};
use wellspring_host::http::required_freshness::Freshness;
use wellspring_host::http::{FORM, Host, JSON, Request};
use wellspring_host::identity::Method;
use wellspring_host::identity::{AccountName, Role};
use wellspring_host::settings::NoSettings;
use wellspring_host::setup::SetupError;
use wellspring_host::wire::problem::{
    self, FORBIDDEN, Kind, Problem, TOO_MANY_LOGINS, UNAUTHENTICATED,
};
use wellspring_types::Position;

/// Problems of requests about keys.
const KEYS: &[&Kind] = &[&FORBIDDEN, &NO_ACCOUNTS];

/// The face.
pub struct AccountFace {
    host: Arc<Host>,
}

impl Face for AccountFace {
    const NAME: &'static str = "accounts";
    const PROBLEMS: &'static [&'static Kind] = problems::ALL;
    type Settings = NoSettings;
    const ROUTES: &'static [ServedRoute<AccountFace>] = routes! { |face| Arc::clone(&face.host);
        POST "/auth/token" Node Public token:
            "Issues a token for a name and a password. With application/x-www-form-urlencoded: \
             OAuth 2.0's password grant."
            .takes[(JSON, "Login"), (FORM, "LoginForm")] .worded(login::with_error)
            .fails[&[&UNAUTHENTICATED, &TOO_MANY_LOGINS, &NO_ACCOUNTS]] => [200 JSON "AccessToken" + SYSTEM_POSITION];
        GET "/auth/me" Node Account me: "The caller: its account, its roles, and when its \
                                         credential expires."
            .fresh(FRESHNESS) .short(true) .fails[VIEWING] => [200 JSON "Me"];
        POST "/auth/logout" Node Account logout: "Ends the token of the request, or all of its account's."
            .may_take[(JSON, "Logout")]
            .fails[APPENDING, VIEWING, &[&FORBIDDEN, &NO_ACCOUNTS, &NO_TOKEN, &ACCOUNT_NOT_FOUND]] => [200 JSON "LoggedOut" + SYSTEM_POSITION];
        POST "/auth/rotate" Node Admin rotate:
            "Signs tokens with a new secret; the previous one still verifies. With retire, \
             drops the previous one."
            .may_take[(JSON, "RotateSecret")] .fails[APPENDING, VIEWING] => [200 JSON "SecretRotated" + SYSTEM_POSITION];
        GET "/v1/accounts" Node Admin list: "Accounts by name, in pages."
            .query[&LIMIT, &AFTER] .fresh(FRESHNESS) .fails[VIEWING] => [200 JSON "Accounts"];
        POST "/v1/accounts" Node Admin add:
            "Creates an account. The first must be an administrator of everything; from then \
             on every request needs credentials."
            .takes[(JSON, "NewAccount")] .fails[APPENDING, VIEWING, &[&ACCOUNT_EXISTS, &TOO_MANY_ACCOUNTS]]
            => [201 JSON "Account" + LOCATION + SYSTEM_POSITION];
        GET "/v1/accounts/{name}" Node Admin get: "An account."
            .at(&NAME) .fresh(FRESHNESS) .fails[VIEWING, &[&ACCOUNT_NOT_FOUND]] => [200 JSON "Account"];
        PATCH "/v1/accounts/{name}" Node Admin change: "Changes an account's roles, disables or enables it."
            .at(&NAME) .takes[(JSON, "AccountChange")]
            .fails[APPENDING, VIEWING, &[&ACCOUNT_NOT_FOUND, &LAST_ADMIN, &NO_ACCOUNTS]] => [200 JSON "Account" + SYSTEM_POSITION];
        DELETE "/v1/accounts/{name}" Node Admin delete:
            "Deletes an account and ends its tokens and API keys for good. A new account may \
             take its name."
            .at(&NAME) .fails[APPENDING, VIEWING, &[&ACCOUNT_NOT_FOUND, &LAST_ADMIN, &NO_ACCOUNTS]] => [204 + SYSTEM_POSITION];
        PUT "/v1/accounts/{name}/password" Node Account set_password:
            "Sets your own password, given the current one; an administrator sets those of \
             others. All tokens of the account end."
            .at(&NAME) .takes[(JSON, "NewPassword")]
            .fails[APPENDING, VIEWING, &[&ACCOUNT_NOT_FOUND, &FORBIDDEN, &WRONG_PASSWORD, &NO_ACCOUNTS]] => [204 + SYSTEM_POSITION];
        GET "/v1/keys" Node Account list_keys: "Your own API keys; for an administrator all \
                                                keys, or those of one account."
            .query[&ACCOUNT, &REVOKED, &LIMIT, &AFTER] .fresh(FRESHNESS) .fails[VIEWING, KEYS] => [200 JSON "Keys"];
        POST "/v1/keys" Node Account add_key: "Creates an API key. Its secret is shown in this \
                                               answer only."
            .takes[(JSON, "NewKey")]
            .fails[APPENDING, VIEWING, KEYS, &[&TOO_MANY_KEYS, &ACCOUNT_DISABLED, &ACCOUNT_NOT_FOUND]]
            => [201 JSON "KeyWithSecret" + LOCATION + SYSTEM_POSITION];
        GET "/v1/keys/{id}" Node Account get_key: "An API key."
            .at(&ID) .fresh(FRESHNESS) .fails[VIEWING, KEYS, &[&KEY_NOT_FOUND]] => [200 JSON "Key"];
        DELETE "/v1/keys/{id}" Node Account revoke_key: "Revokes an API key."
            .at(&ID) .fails[APPENDING, VIEWING, KEYS, &[&KEY_NOT_FOUND]] => [204 + SYSTEM_POSITION];
        POST "/v1/keys/{id}/rotate" Node Account rotate_key:
            "Creates an API key that replaces this one. This one ends at once, or after an \
             overlap in which both are valid."
            .at(&ID) .may_take[(JSON, "KeyRotation")]
            .fails[APPENDING, VIEWING, KEYS, &[&KEY_NOT_FOUND, &KEY_ENDED, &TOO_MANY_KEYS, &ACCOUNT_DISABLED, &ACCOUNT_NOT_FOUND]]
            => [201 JSON "KeyWithSecret" + LOCATION + SYSTEM_POSITION];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<AccountFace, SetupError> {
        Ok(AccountFace { host: Arc::clone(host) })
    }
}

/// Waits until accounts and keys are as fresh as required.
async fn freshen(host: &Host, request: &Request) -> Result<(), Box<Problem>> {
    let asked = Freshness::asked(request, &CONSISTENCY, &WAIT_MS)?;
    asked.view(request, host.access.live(), None).await.map(drop)
}

/// Executes commands, and waits until every request sees the change. Returns a position of the
/// system log that includes it: a client that names it to another node is judged there with the
/// change.
async fn execute(
    host: &Host,
    request: &Request,
    commands: &[Command],
) -> Result<Position, Box<Problem>> {
    match try_execute(host, request, commands).await? {
        None => Ok(host.access.live().position()),
        Some(refusal) => Err(refusal::of_refusal(refusal)),
    }
}

/// As [`execute`], for callers that answer a refusal themselves.
async fn try_execute(
    host: &Host,
    request: &Request,
    commands: &[Command],
) -> Result<Option<AccessRefusal>, Box<Problem>> {
    // Its body, or the hash of a password, may have taken long.
    request.still_may()?;
    let live = host.access.live();
    let on = host.commit_on(request);
    let executed = live.execute(&request.effects, commands, None, on).await?;
    match executed.stopped {
        Some(stopped) => Err(stopped.into()),
        None => Ok(executed.refused),
    }
}

/// The whole body, which must be JSON.
async fn body_of(request: &mut Request) -> Result<Bytes, Box<Problem>> {
    expect_json(request)?;
    request.body.read(body::MAX_BODY_BYTES).await
}

/// The same, where an empty body means `{}`. Not for a page in a browser (`Origin`): a browser
/// sends undeclared content for any page without asking first, with the password its user once
/// typed.
async fn optional_body_of(request: &mut Request) -> Result<Bytes, Box<Problem>> {
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let is_nothing = body.iter().all(u8::is_ascii_whitespace);
    if is_nothing { expect_json_of_pages(request) } else { expect_json(request) }?;
    Ok(if is_nothing { Bytes::from_static(b"{}") } else { body })
}

/// Whether the caller is an administrator of everything.
fn is_admin(principal: &Principal) -> bool {
    principal.may(Role::Admin, None) == Verdict::Allowed
}

/// The answer where accounts are needed and there are none.
fn no_accounts(what: &str) -> Box<Problem> {
    problems::NO_ACCOUNTS.because(format!(
        "there are no accounts, so {what}; POST /v1/accounts or `wellspring user add` creates \
         the first"
    ))
}

/// The account whose password and keys the caller may change; `None` for a caller with an external
/// token, who has none. A stolen key must not create other keys or lock out its owner.
fn own_account(principal: &Principal) -> Result<Option<&AccountName>, Box<Problem>> {
    match principal.method() {
        Method::Key(_) if !is_admin(principal) => Err(problem::FORBIDDEN.because(
            "an API key cannot manage keys, passwords or accounts unless it belongs to an \
             administrator of everything; use a token (POST /auth/token) or the password",
        )),
        Method::None | Method::Open => Err(no_accounts("there are no keys or passwords")),
        _ => Ok(principal.account()),
    }
}
