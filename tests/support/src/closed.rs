//! A server with accounts.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};
use std::path::Path;

pub const PASSWORD: &str = "correct horse";

/// A server whose admin is `root`.
pub struct Closed {
    pub server: Server,
    /// A token of `root`.
    pub root: String,
}

impl Closed {
    pub fn start() -> Closed {
        Closed::of(Server::start())
    }

    pub fn start_with(flags: &[&str]) -> Closed {
        Closed::of(Server::start_with(flags))
    }

    pub fn start_in(dir: &Path) -> Closed {
        Closed::of(Server::start_in(dir, &[]))
    }

    fn of(server: Server) -> Closed {
        let first = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
        server.client().post("/v1/accounts", &first).unwrap().expect(201);
        let root = token(&mut server.client(), "root");
        Closed { server, root }
    }

    pub fn client(&self) -> Client {
        self.server.client()
    }

    /// Creates an account with [`PASSWORD`]; returns a token of it.
    pub fn add(&self, name: &str, roles: &[&str]) -> String {
        let body = json!({"name": name, "password": PASSWORD, "roles": roles});
        self.ask(&self.root, "POST", "/v1/accounts", &body).expect(201);
        token(&mut self.client(), name)
    }

    /// Sends a request with a token or a key.
    pub fn ask(&self, bearer: &str, method: &str, path: &str, body: &Value) -> Answer {
        ask(&mut self.client(), bearer, method, path, body)
    }

    pub fn get(&self, bearer: &str, path: &str) -> Answer {
        self.ask(bearer, "GET", path, &Value::Null)
    }

    /// Creates a key of the caller; returns its id and its secret.
    pub fn key(&self, bearer: &str, body: &Value) -> (String, String) {
        let key = self.ask(bearer, "POST", "/v1/keys", body).expect(201);
        let text = |name: &str| key[name].as_str().expect("a text").to_owned();
        (text("id"), text("secret"))
    }

    /// Whether a token or a key is accepted.
    pub fn counts(&self, bearer: &str) -> bool {
        match self.get(bearer, "/auth/me").status {
            200 => true,
            401 => false,
            other => panic!("{other}"),
        }
    }
}

/// Sends a request with a token or a key; without a body if it is null.
pub fn ask(client: &mut Client, bearer: &str, method: &str, path: &str, body: &Value) -> Answer {
    let authorization = format!("Bearer {bearer}");
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.call(method, path, &headers, body.as_bytes()).unwrap()
}

/// Logs in.
pub fn login(client: &mut Client, name: &str, password: &str) -> Answer {
    client.post("/auth/token", &json!({"username": name, "password": password})).unwrap()
}

/// A token of an account with [`PASSWORD`].
pub fn token(client: &mut Client, name: &str) -> String {
    let answer = login(client, name, PASSWORD).expect(200);
    answer["access_token"].as_str().expect("a token").to_owned()
}
