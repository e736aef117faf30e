//! `GET /auth/me` and `POST /auth/logout`: the caller's identity, and ending its token.

use super::{body, freshen, no_accounts, optional_body_of, refusal, try_execute};
use crate::problems;
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::access::Principal;
use wellspring_host::access::json::roles_of;
use wellspring_host::access::view::{AccessRefusal, Command};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::identity::Method;
use wellspring_host::wire::json::Rfc3339;
use wellspring_host::wire::problem::{self, Problem, of_fault};

/// What the credentials of a request stand for.
#[derive(Serialize)]
struct CallerIdentity<'a> {
    account: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    roles: Vec<String>,
    by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    until: Option<Rfc3339>,
    /// Whether the server has accounts.
    accounts: bool,
}

/// `GET /auth/me`.
pub(crate) async fn me(host: Arc<Host>, request: Box<Request>) -> Answer {
    freshen(&host, &request).await?;
    let principal = &request.principal;
    let identity = CallerIdentity {
        account: principal.account().map(|account| account.as_str()),
        subject: principal.name().filter(|_| principal.account().is_none()),
        roles: roles_of(principal.roles().iter()),
        by: principal.method().as_str(),
        key: match principal.method() {
            Method::Key(id) => Some(id.as_str()),
            _ => None,
        },
        until: principal.until_us().map(Rfc3339),
        accounts: !host.access.is_open(),
    };
    Ok(Response::of(200, &identity).with("cache-control", "no-store".to_owned()))
}

/// `POST /auth/logout`: ends the token of the request, or all of its account's.
pub(crate) async fn logout(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let bytes = optional_body_of(&mut request).await?;
    let everywhere = body::read_logout(&bytes).map_err(|fault| of_fault(&fault, &bytes))?;
    let principal = Arc::clone(&request.principal);
    let Some(name) = principal.account().cloned() else {
        return Err(match principal.method() {
            Method::None | Method::Open => no_accounts("there are no tokens to end"),
            _ => {
                problems::NO_TOKEN.because("the token comes from an external issuer; end it there")
            }
        });
    };
    let all = Command::RevokeAllTokens { name: name.clone() };
    let command = match principal.method() {
        Method::Token(Some(id)) if !everywhere => Command::RevokeToken {
            name,
            id: id.clone(),
            expires_at_us: principal.until_us().unwrap_or(0),
            now_us: host.clock.wall_us(),
        },
        // A token without an id cannot be ended alone.
        Method::Token(_) => all.clone(),
        Method::Password if everywhere => all.clone(),
        Method::Password => {
            return Err(problems::NO_TOKEN.because(
                "the request carries a password, which logging out does not end; send the \
                 token, or {\"everywhere\":true} to end all tokens of the account",
            ));
        }
        Method::Key(id) => {
            return Err(problems::NO_TOKEN.because(format!(
                "the request carries the API key {id}; DELETE /v1/keys/{id} revokes it, with a \
                 token or a password"
            )));
        }
        _ => return Err(no_accounts("there are no tokens to end")),
    };
    if command == all {
        may_end_all(&principal)?;
    }
    let mut ended = if command == all { "all" } else { "token" };
    match try_execute(&host, &request, &[command]).await? {
        None => {}
        // The limit of individually revoked tokens is reached: this one can only be ended with all
        // others.
        Some(AccessRefusal::TooManyRevoked(_)) => {
            may_end_all(&principal)?;
            ended = "all";
            super::execute(&host, &request, &[all]).await?;
        }
        Some(other) => return Err(refusal::of_refusal(other)),
    }
    let response = Response::json(200, format!("{{\"ended\":\"{ended}\"}}"));
    Ok(response.at(host.access.live().position()))
}

/// A restricted token, given to a program, ends itself but not others: the same rule as for keys.
fn may_end_all(principal: &Principal) -> Result<(), Box<Problem>> {
    if principal.may_end_all() {
        return Ok(());
    }
    let detail = "the token has fewer rights than its account and cannot end the account's \
                  other tokens; log out everywhere with the password or an unrestricted token";
    Err(problem::FORBIDDEN.because(detail))
}
