//! Accounts over HTTP: the first account closes the server, and an admin always remains.

use crate::closed::{Closed, PASSWORD, ask, login, token};
use crate::server::Server;
use serde_json::{Value, json};

#[test]
fn without_accounts_everybody_is_an_admin_and_the_first_ends_that() {
    let server = Server::start();
    let mut client = server.client();
    let me = client.get("/auth/me").unwrap().expect(200);
    let open = json!({"account": null, "roles": ["admin"], "by": "open", "until": null, "accounts": false});
    assert_eq!(me, open);
    let no_accounts = [
        ("POST", "/auth/token", json!({"username": "a", "password": "b"})),
        ("POST", "/auth/logout", json!({})),
        ("GET", "/v1/keys", Value::Null),
        ("POST", "/v1/keys", json!({"role": "reader"})),
        ("PATCH", "/v1/accounts/a", json!({"enabled": true})),
        ("PUT", "/v1/accounts/a/password", json!({"password": "12345678"})),
    ];
    for (method, path, body) in no_accounts {
        // Credentials are ignored: none are needed.
        let problem = ask(&mut client, "whatever", method, path, &body).problem(409);
        assert_eq!(problem["type"], "/problems/no-accounts", "{path}");
    }
    let mut post = |body: Value| client.post("/v1/accounts", &body).unwrap();
    for (body, field) in [
        (json!({"name": "ann", "password": PASSWORD, "roles": ["writer"]}), "roles"),
        (json!({"name": "ann", "password": PASSWORD, "roles": ["admin:main"]}), "roles"),
        (json!({"name": "ann", "roles": ["admin"]}), "password"),
        (json!({"name": "ann", "password": "short", "roles": ["admin"]}), "password"),
        (json!({"name": "Ann", "password": PASSWORD, "roles": ["admin"]}), "name"),
    ] {
        assert_eq!(post(body.clone()).problem(422)["field"], field, "{body}");
    }
    let made = post(json!({"name": "ann", "password": PASSWORD, "roles": ["admin"]}));
    assert_eq!(made.header("location"), Some("/v1/accounts/ann"));
    let made = made.expect(201);
    assert_eq!((&made["roles"], &made["enabled"]), (&json!(["admin"]), &json!(true)));
    assert!(!made.to_string().contains("argon2"));
    // From the very next request.
    let refused = post(json!({"name": "eve", "password": PASSWORD, "roles": ["admin"]}));
    assert!(refused.header("www-authenticate").is_some());
    assert_eq!(refused.problem(401)["type"], "/problems/unauthenticated");
    for path in ["/v1/head", "/v1/events", "/v1/logs", "/metrics", "/auth/me", "/v1/accounts"] {
        client.get(path).unwrap().problem(401);
    }
    assert_eq!(client.get("/health").unwrap().status, 200);
    let ann = token(&mut client, "ann");
    let me = ask(&mut client, &ann, "GET", "/auth/me", &Value::Null).expect(200);
    assert_eq!((&me["account"], &me["by"]), (&json!("ann"), &json!("token")));
    assert_eq!(me["roles"], json!(["admin"]));
}

#[test]
fn of_many_first_registrations_one_succeeds() {
    for _ in 0..3 {
        let server = Server::start();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let contenders: Vec<_> = (0..8)
                .map(|n| {
                    let mut client = server.client();
                    scope.spawn(move || {
                        let name = format!("ann{n}");
                        let body = json!({"name": name, "password": PASSWORD, "roles": ["admin"]});
                        client.post("/v1/accounts", &body).unwrap().status
                    })
                })
                .collect();
            contenders.into_iter().map(|contender| contender.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        // Requests admitted before the first account existed come too late, and few of them hash
        // passwords at the same time.
        assert!(statuses.iter().all(|status| [201, 401].contains(status)), "{statuses:?}");
    }
}

#[test]
fn what_was_answered_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let closed = Closed::start_in(dir.path());
    closed.add("bob", &["writer:main"]);
    let (_, key) = closed.key(&closed.root, &json!({"role": "reader"}));
    let root = closed.root.clone();
    closed.ask(&root, "PATCH", "/v1/accounts/bob", &json!({"enabled": false})).expect(200);
    closed.server.kill();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    client.get("/v1/head").unwrap().problem(401);
    assert_eq!(login(&mut client, "bob", PASSWORD).status, 401, "disabled before");
    for bearer in [root.as_str(), &key] {
        ask(&mut client, bearer, "GET", "/v1/head", &Value::Null).expect(200);
    }
}

#[test]
fn accounts_are_listed_changed_and_refused() {
    let closed = Closed::start();
    let root = &closed.root;
    let bob = closed.add("bob", &["writer:main", "reader"]);
    let taken = json!({"name": "bob", "password": PASSWORD, "roles": []});
    let problem = closed.ask(root, "POST", "/v1/accounts", &taken).problem(409);
    assert_eq!(problem["type"], "/problems/account-exists");
    let names = |page: &Value| -> Vec<String> {
        let accounts = page["accounts"].as_array().unwrap().iter();
        accounts.map(|account| account["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = closed.get(root, "/v1/accounts").expect(200);
    assert_eq!(
        (names(&all), &all["next"]),
        (vec!["bob".to_owned(), "root".to_owned()], &Value::Null)
    );
    let first = closed.get(root, "/v1/accounts?limit=1").expect(200);
    assert_eq!((names(&first), &first["next"]), (vec!["bob".to_owned()], &json!("bob")));
    let second = closed.get(root, "/v1/accounts?limit=1&after=bob").expect(200);
    assert_eq!((names(&second), &second["next"]), (vec!["root".to_owned()], &Value::Null));
    for bad in ["limit=0", "limit=1001", "x=1"] {
        closed.get(root, &format!("/v1/accounts?{bad}")).problem(422);
    }
    for name in ["eve", "EVE", "%2e%2e"] {
        let path = format!("/v1/accounts/{name}");
        assert_eq!(closed.get(root, &path).problem(404)["type"], "/problems/account-not-found");
        closed.ask(root, "PATCH", &path, &json!({"enabled": true})).problem(404);
    }
    // Only an admin of every log manages accounts; others do not even learn which exist.
    for path in ["/v1/accounts", "/v1/accounts/root", "/v1/accounts/eve"] {
        closed.get(&bob, path).problem(403);
    }
    // Roles take effect immediately, for existing tokens too.
    let patch =
        |name: &str, body: Value| closed.ask(root, "PATCH", &format!("/v1/accounts/{name}"), &body);
    let event = json!({"events": [{"type": "T", "tags": [], "data": 1}]});
    closed.ask(&bob, "POST", "/v1/append", &event).expect(200);
    let changed = patch("bob", json!({"roles": ["reader"]})).expect(200);
    assert_eq!(changed["roles"], json!(["reader"]));
    closed.ask(&bob, "POST", "/v1/append", &event).problem(403);
    closed.get(&bob, "/v1/head").expect(200);
    for (body, status) in [
        (json!({}), 422),
        (json!({"name": "x"}), 422),
        (json!({"roles": ["root"]}), 422),
        (json!({"enabled": 1}), 422),
    ] {
        patch("bob", body).problem(status);
    }
}

#[test]
fn the_last_admin_stays() {
    let closed = Closed::start();
    let patch = |name: &str, body: Value| {
        closed.ask(&closed.root, "PATCH", &format!("/v1/accounts/{name}"), &body)
    };
    for body in [
        json!({"enabled": false}),
        json!({"roles": ["reader"]}),
        json!({"roles": ["admin:main"]}),
        json!({"roles": [], "enabled": false}),
        json!({"roles": [], "enabled": true}),
    ] {
        assert_eq!(patch("root", body).problem(409)["type"], "/problems/last-admin");
    }
    closed.add("ann", &["admin"]);
    patch("ann", json!({"enabled": false})).expect(200);
    patch("root", json!({"enabled": false})).problem(409);
    patch("ann", json!({"enabled": true})).expect(200);
    patch("root", json!({"enabled": false})).expect(200);
    assert!(!closed.counts(&closed.root), "disabling root ends root's token");
}
