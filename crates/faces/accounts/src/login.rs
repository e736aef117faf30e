//! `POST /auth/token`: exchanges a name and a password for a token, as JSON or as OAuth 2.0's
//! password grant (RFC 6749, 4.3).

use super::{body, no_accounts};
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::access::json::scope_of;
use wellspring_host::http::content::{content_type, expect_identity, expect_json};
use wellspring_host::http::{Answer, FORM, Host, Request, Response};
use wellspring_host::identity::Caller;
use wellspring_host::identity::Grants;
use wellspring_host::wire::problem::{self, Problem, of_fault};

/// The token response of OAuth (RFC 6749, 5.1).
#[derive(Serialize)]
struct TokenDocument<'a> {
    access_token: &'a str,
    token_type: &'static str,
    scope: String,
    expires_in: u64,
}

/// Issues a token for a name and a password.
pub(crate) async fn token(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let is_form = content_type(&request) == FORM;
    if is_form {
        expect_identity(&request)?;
    } else {
        expect_json(&request)?;
    }
    let bytes = request.body.read(body::MAX_BODY_BYTES).await?;
    let read = if is_form { body::read_login_form } else { body::read_login };
    let body::Login { username, password, life_s, roles } =
        read(&bytes).map_err(|fault| of_fault(&fault, &bytes))?;
    if host.access.is_open() {
        return Err(no_accounts("no token is needed"));
    }
    let logged_in = host.access.login(&username, password, request.client).await?;
    if let Some(roles) = &roles {
        let caller = || Caller::LoggedIn(logged_in.account.clone());
        check_roles(roles, &logged_in.grants).map_err(|problem| problem.told_to(caller()))?;
    }
    let life_s = life_s.unwrap_or(host.access.token_life_s());
    let grants = roles.as_ref().unwrap_or(&logged_in.grants);
    let issued = host
        .access
        .issue(&logged_in, grants, life_s)
        .map_err(|error| problem::INTERNAL.because(format!("cannot issue a token: {error}")))?;
    let document = TokenDocument {
        access_token: &issued.token,
        token_type: "Bearer",
        scope: roles.as_ref().map_or("default".to_owned(), scope_of),
        expires_in: issued.expires_in_s,
    };
    let response = Response::of(200, &document).with("cache-control", "no-store".to_owned());
    let response = response.with("pragma", "no-cache".to_owned());
    let position = host.access.live().position();
    Ok(response.told_to(Caller::LoggedIn(logged_in.account)).at(position))
}

/// A token has the roles of its account, or fewer.
fn check_roles(roles: &Grants, held: &Grants) -> Result<(), Box<Problem>> {
    let over = |(_, grant): &(usize, &wellspring_host::identity::Grant)| {
        held.role_on(grant.log.as_deref()) < Some(grant.role)
    };
    match roles.iter().enumerate().find(over) {
        None => Ok(()),
        Some((_, grant)) => Err(problem::INVALID
            .because(format!(
                "the account does not have {grant}, so its tokens cannot have it either"
            ))
            .field("roles")),
    }
}

/// Adds the member `error` for OAuth clients (RFC 6749, 5.2).
pub(crate) fn with_error(problem: Box<Problem>) -> Box<Problem> {
    let error = match (problem.kind.status, problem.field.as_deref()) {
        (401, _) => r#""invalid_grant""#,
        (422, Some("grant_type")) => r#""unsupported_grant_type""#,
        (422, Some("scope" | "roles")) => r#""invalid_scope""#,
        (400..=499, _) => r#""invalid_request""#,
        _ => return problem,
    };
    problem.with("error", error.to_owned())
}
