//! `/v1/accounts`: the accounts and their roles.

use super::{body, body_of, execute, freshen, no_accounts, password, refusal};
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::access::accounts_marker;
use wellspring_host::access::json::AccountDocument;
use wellspring_host::access::view::{AccessRefusal, Command};
use wellspring_host::http::contract::Segment;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::identity::AccountName;
use wellspring_host::identity::Method;
use wellspring_host::wire::param::{IntegerOr, Param, Text, Values};
use wellspring_host::wire::problem::of_fault;

/// Number of accounts or keys on a page.
pub(super) static LIMIT: Param<IntegerOr> =
    Param::integer("limit", "Maximum number of entries on a page.", 1..=1000).or(100);
/// Start of a page.
pub(super) static AFTER: Param<Text> =
    Param::text("after", "Start of the page: `next` of the previous page.");
/// The name of an account. An invalid name names no account.
pub(super) static NAME: Segment<AccountName> = Segment {
    name: "name",
    what: "Name of the account.",
    values: Values::Text(None),
    read: |text| AccountName::parse(text).map_err(|_| refusal::unknown_account(text)),
};

/// Some accounts, and after which name the next page begins.
#[derive(Serialize)]
struct AccountsPage<'a> {
    accounts: Vec<AccountDocument<'a>>,
    next: Option<&'a str>,
}

/// `GET /v1/accounts`.
pub(crate) async fn list(host: Arc<Host>, request: Box<Request>) -> Answer {
    freshen(&host, &request).await?;
    let limit = request.query(&LIMIT)? as usize;
    let state = host.access.state();
    let after = request.query(&AFTER)?.unwrap_or_default();
    let mut accounts: Vec<_> = state.accounts_after(after).take(limit + 1).collect();
    let is_last = accounts.len() <= limit;
    accounts.truncate(limit);
    let next = accounts.last().filter(|_| !is_last).map(|account| account.name().as_str());
    let page =
        AccountsPage { accounts: accounts.iter().map(|a| AccountDocument::of(a)).collect(), next };
    Ok(Response::of(200, &page))
}

/// `GET /v1/accounts/{name}`.
pub(crate) async fn get(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&NAME)?;
    freshen(&host, &request).await?;
    shown(&host, 200, name.as_str())
}

/// `POST /v1/accounts`: the first account ends open access.
pub(crate) async fn add(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let bytes = body_of(&mut request).await?;
    let body::NewAccount { name, password, roles } =
        body::read_account(&bytes).map_err(|fault| of_fault(&fault, &bytes))?;
    let password = match password {
        Some(password) => Some(password::hash(&host, password).await?),
        None => None,
    };
    let open = *request.principal.method() == Method::Open;
    let command = match (open, password) {
        // A caller admitted because there are no accounts may create the first, and no other.
        (true, Some(password)) => Command::AddFirstAccount { name: name.clone(), password, roles },
        (true, None) => return Err(refusal::of_refusal(AccessRefusal::FirstHasPassword)),
        (false, password) => Command::AddAccount { name: name.clone(), password, roles },
    };
    let position = execute(&host, &request, &[command]).await?;
    if open {
        let host = Arc::clone(&host);
        let sealed =
            elsewhere(move || accounts_marker::seal(&host.process.data, &host.access)).await?;
        // The account exists nevertheless, and the next start retries.
        sealed.unwrap_or_else(|reason| tracing::error!(%reason, "there are no accounts"));
    }
    let response = shown(&host, 201, name.as_str())?;
    Ok(response.with("location", format!("/v1/accounts/{name}")).at(position))
}

/// `PATCH /v1/accounts/{name}`.
pub(crate) async fn change(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&NAME)?;
    let bytes = body_of(&mut request).await?;
    let body::AccountChange { roles, enabled } =
        body::read_change(&bytes).map_err(|fault| of_fault(&fault, &bytes))?;
    if *request.principal.method() == Method::Open {
        return Err(no_accounts("there is no account to change"));
    }
    let to = |enabled| {
        if enabled {
            Command::Enable { name: name.clone() }
        } else {
            Command::Disable { name: name.clone() }
        }
    };
    // This order leaves nothing half done: if the first is refused so is the second, and if the
    // first changes anything the second is not refused.
    let enabled = enabled.map(to);
    let roles = roles.map(|roles| Command::SetRoles { name: name.clone(), roles });
    let commands: Vec<Command> = enabled.into_iter().chain(roles).collect();
    let position = execute(&host, &request, &commands).await?;
    Ok(shown(&host, 200, name.as_str())?.at(position))
}

/// `DELETE /v1/accounts/{name}`: with its tokens and keys, for good. A new account with its name
/// inherits nothing.
pub(crate) async fn delete(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&NAME)?;
    if *request.principal.method() == Method::Open {
        return Err(no_accounts("there is no account to delete"));
    }
    let position = execute(&host, &request, &[Command::Delete { name }]).await?;
    Ok(Response::empty(204).at(position))
}

fn shown(host: &Host, status: u16, name: &str) -> Answer {
    let state = host.access.state();
    let account = state.account(name).ok_or_else(|| refusal::unknown_account(name))?;
    Ok(Response::of(status, &AccountDocument::of(account)))
}
