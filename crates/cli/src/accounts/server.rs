//! Accounts of a running server, over HTTP.

use super::store::{AccountRow, CurrentPassword, Enabled, KeyFilter, KeyRow, WantedKey};
use crate::exit::{Code, Failure, InputKind};
use crate::problem::Problem;
use crate::span::End;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wellspring_client::authorization::Authorization;
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Client, Request};
use wellspring_host::identity::{AccountName, Grant, Grants, KeyId};
use zeroize::Zeroizing;

/// Items per page.
const PAGE: usize = 1000;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    client: Client,
    authorization: Option<Authorization>,
}

impl Server {
    /// Nothing is sent yet.
    pub(super) fn new(client: Client, authorization: Option<Authorization>) -> Server {
        let client = client.with_authorization(authorization.clone());
        Server { client, authorization }
    }

    pub(super) fn accounts(&mut self) -> Result<Vec<AccountRow>, Failure> {
        self.pages("/v1/accounts?", "accounts")
    }

    pub(super) fn account(&mut self, name: &AccountName) -> Result<AccountRow, Failure> {
        self.ask("GET", &format!("/v1/accounts/{name}"), None)
    }

    pub(super) fn delete(&mut self, name: &AccountName) -> Result<(), Failure> {
        self.call("DELETE", &format!("/v1/accounts/{name}"), None).map(|_| ())
    }

    pub(super) fn add(
        &mut self,
        name: &AccountName,
        password: Option<Zeroizing<String>>,
        roles: &Grants,
    ) -> Result<(), Failure> {
        let mut body = json!({"name": name.as_str(), "roles": texts(roles)});
        if let Some(password) = password {
            body["password"] = password.as_str().into();
        }
        self.call("POST", "/v1/accounts", Some(&body)).map(|_| ())
    }

    pub(super) fn current_password(
        &mut self,
        name: &AccountName,
    ) -> Result<CurrentPassword, Failure> {
        match &self.authorization {
            Some(Authorization::Basic(user, password)) if user == name.as_str() => {
                return Ok(CurrentPassword::Known(password.clone()));
            }
            Some(Authorization::Basic(..)) => return Ok(CurrentPassword::NotNeeded),
            Some(Authorization::Bearer(_)) | None => {}
        }
        let me: Value = self.ask("GET", "/auth/me", None)?;
        Ok(if me["account"] == name.as_str() {
            CurrentPassword::Needed
        } else {
            CurrentPassword::NotNeeded
        })
    }

    pub(super) fn set_password(
        &mut self,
        name: &AccountName,
        password: Zeroizing<String>,
        current: Option<Zeroizing<String>>,
    ) -> Result<(), Failure> {
        let mut body = json!({"password": password.as_str()});
        if let Some(current) = current {
            body["current"] = current.as_str().into();
        }
        self.call("PUT", &format!("/v1/accounts/{name}/password"), Some(&body)).map(|_| ())
    }

    pub(super) fn set_roles(&mut self, name: &AccountName, roles: &Grants) -> Result<(), Failure> {
        self.change(name, &json!({"roles": texts(roles)}))
    }

    pub(super) fn set_enabled(&mut self, name: &AccountName, to: Enabled) -> Result<(), Failure> {
        self.change(name, &json!({"enabled": to == Enabled::Yes}))
    }

    fn change(&mut self, name: &AccountName, change: &Value) -> Result<(), Failure> {
        self.call("PATCH", &format!("/v1/accounts/{name}"), Some(change)).map(|_| ())
    }

    pub(super) fn keys(
        &mut self,
        account: Option<&str>,
        show: KeyFilter,
    ) -> Result<Vec<KeyRow>, Failure> {
        let mut path = "/v1/keys?".to_owned();
        if let Some(account) = account {
            path.push_str(&format!("account={}&", percent_encode(account)));
        }
        if show == KeyFilter::All {
            path.push_str("revoked=show&");
        }
        self.pages(&path, "keys")
    }

    pub(super) fn add_key(&mut self, wanted: WantedKey) -> Result<KeyRow, Failure> {
        let WantedKey { label, grant, end, account } = wanted;
        let mut body = json!({"role": grant.role.as_str(), "log": grant.log});
        if let Some(label) = label {
            body["label"] = label.as_str().into();
        }
        if let Some(account) = account {
            body["account"] = account.as_str().into();
        }
        push_end(&mut body, end);
        self.ask("POST", "/v1/keys", Some(&body))
    }

    pub(super) fn revoke_key(&mut self, id: &KeyId) -> Result<(), Failure> {
        self.call("DELETE", &format!("/v1/keys/{id}"), None).map(|_| ())
    }

    pub(super) fn rotate_key(
        &mut self,
        id: &KeyId,
        overlap_s: u64,
        end: Option<End>,
    ) -> Result<KeyRow, Failure> {
        if end == Some(End::Never) {
            let reason = "--expires never: a rotated key always expires; create a permanent one with \
                          `token create`";
            return Err(Failure::usage(reason));
        }
        let mut body = json!({"overlap_s": overlap_s});
        push_end(&mut body, end);
        self.ask("POST", &format!("/v1/keys/{id}/rotate"), Some(&body))
    }

    /// All pages of a list.
    fn pages<T: DeserializeOwned>(&mut self, path: &str, name: &str) -> Result<Vec<T>, Failure> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let page = format!("{path}limit={PAGE}&after={}", percent_encode(&after));
            let mut page: Value = self.ask("GET", &page, None)?;
            let items: Vec<T> = read(page[name].take())?;
            all.extend(items);
            match page["next"].as_str() {
                Some(next) if *next > *after => next.clone_into(&mut after),
                _ => return Ok(all),
            }
        }
    }

    fn ask<T: DeserializeOwned>(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Failure> {
        let answer = self.call(method, path, body)?;
        read(serde_json::from_slice(&answer).unwrap_or_default())
    }

    fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let body = body.map(|body| Zeroizing::new(body.to_string().into_bytes()));
        let headers = [("Content-Type", "application/json")];
        let headers = if body.is_some() { &headers[..] } else { &[] };
        let body = body.as_ref().map(|body| body.as_slice());
        let answer = self.client.call(&Request { method, path, headers, body })?;
        if (200..300).contains(&answer.head.status) {
            return Ok(Zeroizing::new(answer.body));
        }
        let problem = Problem::of(&answer).in_flags();
        Err(Failure::new(problem.code(InputKind::Data), problem.sentence()))
    }
}

fn texts(roles: &Grants) -> Vec<String> {
    roles.iter().map(Grant::to_string).collect()
}

fn push_end(body: &mut Value, end: Option<End>) {
    match end {
        Some(End::In(seconds)) => body["expires_in_s"] = seconds.into(),
        Some(End::At(moment)) => body["expires_at"] = moment.into(),
        Some(End::Never) | None => {}
    }
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    // The message of serde may contain what it read, which may be a secret.
    serde_json::from_value(answer).map_err(|_| {
        Failure::new(Code::Unavailable, "not an answer of a Wellspring server; check --url")
    })
}
