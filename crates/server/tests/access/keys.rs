//! API keys: shown once, and never with more rights than their creator.

use crate::closed::{Closed, PASSWORD, token};
use crate::server::Server;
use serde_json::{Value, json};
use wellspring_patience::Patience;

#[test]
fn a_key_is_shown_once_and_works_in_both_headers() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["reader", "writer:main"]);
    let body = json!({"role": "writer", "log": "main", "label": "laptop", "expires_in_s": 3600});
    let made = closed.ask(&ann, "POST", "/v1/keys", &body);
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let location = made.header("location").unwrap().to_owned();
    let made = made.expect(201);
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("wsk_") && secret.len() == 47);
    assert_eq!((&made["label"], &made["account"]), (&json!("laptop"), &json!("ann")));
    assert_eq!(
        (&made["role"], &made["log"], &made["state"]),
        (&json!("writer"), &json!("main"), &json!("live"))
    );
    let event = json!({"events": [{"type": "T", "tags": [], "data": 1}]}).to_string();
    let bearer = format!("Bearer {secret}");
    for header in [("X-API-Key", secret), ("Authorization", bearer.as_str())] {
        let headers = [header, ("Content-Type", "application/json")];
        let answer =
            closed.client().call("POST", "/v1/append", &headers, event.as_bytes()).unwrap();
        answer.expect(200);
        // Only `main`, not the owner's other logs.
        closed.client().call("GET", "/metrics", &[header], b"").unwrap().problem(403);
        // The lean loop refuses too.
        let taken = closed.client().call("POST", "/e", &[header], b"{}").unwrap();
        assert_eq!(taken.status, 202, "{}", taken.text());
    }
    let me = closed.get(secret, "/auth/me").expect(200);
    assert_eq!(
        (&me["by"], &me["key"], &me["roles"]),
        (&json!("key"), &made["id"], &json!(["writer:main"]))
    );
    // Never shown again.
    let seen = closed.get(&ann, &location).expect(200);
    let mut without = made.clone();
    without.as_object_mut().unwrap().remove("secret");
    assert_eq!(seen, without);
    assert_eq!(closed.get(&ann, "/v1/keys").expect(200)["keys"], json!([without]));
    let log = closed.get(&closed.root, "/v1/logs/system/events?limit=1000").text();
    assert!(log.contains("KeyAdded") && !log.contains(&secret[4..]), "{log}");
}

#[test]
fn a_key_is_for_no_more_than_the_credentials_that_make_it() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["reader", "operator:main"]);
    let add = |bearer: &str, body: Value| closed.ask(bearer, "POST", "/v1/keys", &body);
    for body in [
        json!({"role": "writer"}),
        json!({"role": "admin", "log": "main"}),
        json!({"role": "writer", "log": "other"}),
    ] {
        assert_eq!(add(&ann, body).problem(403)["field"], "role");
    }
    add(&ann, json!({"role": "operator", "log": "main"})).expect(201);
    add(&ann, json!({"role": "reader", "log": "other"})).expect(201);
    // A token with fewer rights than its account creates only such keys.
    let body = json!({"username": "ann", "password": PASSWORD, "roles": ["reader:main"]});
    let narrow = closed.client().post("/auth/token", &body).unwrap().expect(200);
    let narrow = narrow["access_token"].as_str().unwrap();
    add(narrow, json!({"role": "writer", "log": "main"})).problem(403);
    add(narrow, json!({"role": "reader"})).problem(403);
    add(narrow, json!({"role": "reader", "log": "main"})).expect(201);
    // Only an admin of everything creates keys for others, and only within the others' rights.
    add(&ann, json!({"role": "reader", "account": "root"})).problem(403);
    let given = add(&closed.root, json!({"role": "reader", "account": "ann"})).expect(201);
    assert_eq!(given["account"], "ann");
    let more = add(&closed.root, json!({"role": "admin", "account": "ann"}));
    assert_eq!(more.problem(422)["field"], "role");
    add(&closed.root, json!({"role": "reader", "account": "nobody"})).problem(404);
    for (body, field) in [
        (json!({"role": "reader", "expires_at": "2001-01-01"}), "expires_at"),
        (json!({"role": "reader", "expires_in_s": 0}), "expires_in_s"),
        (json!({"role": "reader:main"}), "role"),
        (json!({"role": "reader", "log": "../x"}), "log"),
        (json!({}), "role"),
    ] {
        assert_eq!(add(&ann, body).problem(422)["field"], field);
    }
}

#[test]
fn a_key_manages_nothing_unless_it_is_an_admins() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["admin:main"]);
    let (id, key) = closed.key(&ann, &json!({"role": "admin", "log": "main"}));
    for (method, path) in [
        ("GET", "/v1/keys".to_owned()),
        ("POST", "/v1/keys".to_owned()),
        ("GET", format!("/v1/keys/{id}")),
        ("DELETE", format!("/v1/keys/{id}")),
        ("POST", format!("/v1/keys/{id}/rotate")),
        ("PUT", "/v1/accounts/ann/password".to_owned()),
    ] {
        let body = json!({"role": "reader", "log": "main"});
        let body = if path.ends_with("password") { json!({"password": "12345678"}) } else { body };
        let problem = closed.ask(&key, method, &path, &body).problem(403);
        assert_eq!(problem["type"], "/problems/forbidden", "{method} {path}");
    }
    let (_, admin) = closed.key(&closed.root, &json!({"role": "admin"}));
    closed.get(&admin, "/v1/accounts").expect(200);
    closed.key(&admin, &json!({"role": "reader"}));
    let (_, reader) = closed.key(&closed.root, &json!({"role": "reader"}));
    closed.get(&reader, "/v1/keys").problem(403);
}

#[test]
fn keys_are_seen_by_their_owner_and_by_admins_page_by_page() {
    let closed = Closed::start();
    let (ann, bob) = (closed.add("ann", &["reader"]), closed.add("bob", &["reader"]));
    let of_ann: Vec<String> =
        (0..3).map(|_| closed.key(&ann, &json!({"role": "reader"})).0).collect();
    let (of_bob, _) = closed.key(&bob, &json!({"role": "reader"}));
    let ids = |bearer: &str, query: &str| -> Vec<String> {
        let page = closed.get(bearer, &format!("/v1/keys{query}")).expect(200);
        let keys = page["keys"].as_array().unwrap().iter();
        keys.map(|key| key["id"].as_str().unwrap().to_owned()).collect()
    };
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(ids(&ann, ""), sorted(of_ann.clone()));
    assert_eq!(ids(&ann, "?account=ann"), sorted(of_ann.clone()));
    closed.get(&ann, "/v1/keys?account=bob").problem(403);
    assert_eq!(ids(&closed.root, "?account=bob"), std::slice::from_ref(&of_bob));
    assert_eq!(ids(&closed.root, "").len(), 4);
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = closed.get(&closed.root, &format!("/v1/keys?limit=3&after={after}")).expect(200);
        all.extend(page["keys"].as_array().unwrap().iter().map(|key| key["id"].clone()));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => break,
        }
    }
    assert_eq!(all.len(), 4);
    // For other accounts the key does not exist.
    for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/rotate")] {
        let path = format!("/v1/keys/{of_bob}{path}");
        let problem = closed.ask(&ann, method, &path, &Value::Null).problem(404);
        assert_eq!(problem["type"], "/problems/key-not-found");
    }
    assert_eq!(
        closed.ask(&closed.root, "DELETE", &format!("/v1/keys/{of_bob}"), &Value::Null).status,
        204
    );
    assert!(ids(&bob, "").is_empty());
    assert_eq!(ids(&bob, "?revoked=show"), [of_bob]);
}

#[test]
fn keys_end_by_time_by_hand_and_by_rotation() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["reader", "writer:main"]);
    let (_, short) = closed.key(&ann, &json!({"role": "reader", "expires_in_s": 1}));
    let (id, key) = closed
        .key(&ann, &json!({"role": "writer", "log": "main", "label": "x", "expires_in_s": 1000}));
    assert!(closed.counts(&key));
    let rotate =
        |id: &str, body: &Value| closed.ask(&ann, "POST", &format!("/v1/keys/{id}/rotate"), body);
    // Immediately.
    let second = rotate(&id, &Value::Null).expect(201);
    for member in ["label", "role", "log", "account"] {
        let wanted = json!({"label": "x", "role": "writer", "log": "main", "account": "ann"});
        assert_eq!(second[member], wanted[member]);
    }
    assert!(second["expires_at"].is_string(), "after the same life");
    let (second_id, second) = (second["id"].as_str().unwrap(), second["secret"].as_str().unwrap());
    assert!(!closed.counts(&key) && closed.counts(second));
    assert_eq!(rotate(&id, &Value::Null).problem(409)["type"], "/problems/key-ended");
    // After an overlap in which both are valid.
    let third = rotate(second_id, &json!({"overlap_s": 1, "expires_in_s": 50})).expect(201);
    let third = third["secret"].as_str().unwrap();
    assert!(closed.counts(second) && closed.counts(third));
    let mut patience = Patience::new();
    while closed.counts(second) || closed.counts(&short) {
        patience.pause("an ended key still counts");
    }
    assert!(closed.counts(third));
    let states = closed.get(&ann, "/v1/keys?revoked=show").expect(200).to_string();
    for state in ["live", "expired", "revoked"] {
        assert!(states.contains(&format!("\"state\":\"{state}\"")), "{states}");
    }
    for body in [json!({"overlap_s": 2_592_001}), json!({"role": "admin"})] {
        rotate(second_id, &body).problem(422);
    }
    // A narrow token cannot widen a key by rotating it.
    let (wide, _) = closed.key(&ann, &json!({"role": "writer", "log": "main"}));
    let body = json!({"username": "ann", "password": PASSWORD, "roles": ["reader"]});
    let narrow = closed.client().post("/auth/token", &body).unwrap().expect(200);
    let narrow = narrow["access_token"].as_str().unwrap();
    closed.ask(narrow, "POST", &format!("/v1/keys/{wide}/rotate"), &Value::Null).problem(403);
    // Nor revoke one; a full token can, including a key that now exceeds the account's rights.
    let end = |bearer: &str| {
        closed.ask(bearer, "DELETE", &format!("/v1/keys/{wide}"), &Value::Null).status
    };
    assert_eq!(end(narrow), 403);
    let less = json!({"roles": ["reader:main"]});
    closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &less).expect(200);
    assert_eq!(end(&ann), 204);
    assert!(closed.counts(&token(&mut closed.client(), "ann")));
}

/// A key in its overlap expires earlier, but the lifetime it was created with is inherited.
#[test]
fn a_key_rotated_again_in_its_overlap_has_a_successor_that_lives_as_long_as_it_was_made_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut closed = Closed::start_in(dir.path());
    let ann = closed.add("ann", &["reader"]);
    let rotate = |closed: &Closed, id: &str, body: &Value| {
        closed.ask(&ann, "POST", &format!("/v1/keys/{id}/rotate"), body).expect(201)
    };
    let (hours, _) = closed.key(&ann, &json!({"role": "reader", "expires_in_s": 36_000}));
    let (forever, _) = closed.key(&ann, &json!({"role": "reader"}));
    for restarted in [false, true] {
        if restarted {
            assert!(closed.server.terminate().success());
            closed.server = Server::start_in(dir.path(), &[]);
        }
        let first = rotate(&closed, &hours, &json!({"overlap_s": 600}));
        let again = rotate(&closed, &hours, &json!({"overlap_s": 600}));
        assert!(again["expires_at"].as_str() >= first["expires_at"].as_str(), "{first} {again}");
        for _ in 0..2 {
            let next = rotate(&closed, &forever, &json!({"overlap_s": 600}));
            assert_eq!(next["expires_at"], Value::Null);
        }
    }
    let old = closed.get(&ann, &format!("/v1/keys/{hours}")).expect(200);
    let next = rotate(&closed, &hours, &Value::Null);
    assert!(next["expires_at"].as_str() > old["expires_at"].as_str(), "{old} {next}");
}

/// The maximum number of keys of an account, and of ended ones that are listed.
const QUOTA: usize = 100;

#[test]
fn one_account_uses_up_its_own_keys_alone_and_rotation_always_works() {
    let closed = Closed::start();
    let rita = closed.add("rita", &["reader"]);
    let reader = json!({"role": "reader"});
    let keys: Vec<(String, String)> = (0..QUOTA).map(|_| closed.key(&rita, &reader)).collect();
    let full = closed.ask(&rita, "POST", "/v1/keys", &reader);
    let problem = full.problem(409);
    assert_eq!(problem["type"], "/problems/too-many-keys");
    assert_eq!(problem["limit"], QUOTA);
    let for_rita = json!({"role": "reader", "account": "rita"});
    closed.ask(&closed.root, "POST", "/v1/keys", &for_rita).problem(409);
    let (of_root, _) = closed.key(&closed.root, &reader);
    // A replacement always has room; an additional key has none.
    let rotate = |bearer: &str, id: &str, body: &Value| {
        closed.ask(bearer, "POST", &format!("/v1/keys/{id}/rotate"), body)
    };
    let second = rotate(&rita, &keys[0].0, &Value::Null).expect(201);
    assert!(!closed.counts(&keys[0].1) && closed.counts(second["secret"].as_str().unwrap()));
    rotate(&rita, &keys[1].0, &json!({"overlap_s": 60})).problem(409);
    assert!(closed.counts(&keys[1].1));
    rotate(&closed.root, &of_root, &json!({"overlap_s": 60})).expect(201);
    rotate(&rita, &keys[0].0, &Value::Null).problem(409);
    // Revoked and expired keys make room.
    assert_eq!(
        closed.ask(&rita, "DELETE", &format!("/v1/keys/{}", keys[2].0), &Value::Null).status,
        204
    );
    let (_, short) = closed.key(&rita, &json!({"role": "reader", "expires_in_s": 1}));
    closed.ask(&rita, "POST", "/v1/keys", &reader).problem(409);
    let mut patience = Patience::new();
    while closed.counts(&short) {
        patience.pause("an ended key still counts");
    }
    closed.key(&rita, &reader);
    closed.ask(&rita, "POST", "/v1/keys", &reader).problem(409);
}

#[test]
fn keys_that_have_ended_are_forgotten_and_never_count_again() {
    let closed = Closed::start();
    let rita = closed.add("rita", &["reader"]);
    let (first, first_secret) = closed.key(&rita, &json!({"role": "reader", "label": "x"}));
    let (mut id, mut secret) = (first.clone(), first_secret.clone());
    let mut ended = vec![];
    for _ in 0..3 * QUOTA {
        let next =
            closed.ask(&rita, "POST", &format!("/v1/keys/{id}/rotate"), &Value::Null).expect(201);
        ended.push(secret);
        (id, secret) =
            (next["id"].as_str().unwrap().into(), next["secret"].as_str().unwrap().into());
    }
    let shown = |closed: &Closed, bearer: &str| {
        let page = closed.get(bearer, "/v1/keys?revoked=show&limit=1000").expect(200);
        page["keys"].as_array().unwrap().len()
    };
    assert_eq!(shown(&closed, &rita), QUOTA + 1);
    closed.ask(&rita, "GET", &format!("/v1/keys/{first}"), &Value::Null).problem(404);
    let check = |closed: &Closed| {
        for secret in ended.iter().step_by(50).chain([&first_secret]) {
            assert!(!closed.counts(secret));
        }
        assert!(closed.counts(&secret));
    };
    check(&closed);
    // A rebuild gives the same.
    let Closed { server, root } = closed;
    let dir = tempfile::tempdir().unwrap();
    let mut server = server;
    assert!(server.terminate().success());
    let data = dir.path().join("data");
    let copied = std::process::Command::new("cp").arg("-a").arg(&server.dir).arg(&data).status();
    assert!(copied.unwrap().success());
    let _ = std::fs::remove_dir_all(data.join("logs/system/views"));
    let closed = Closed { server: crate::server::Server::start_in(&data, &[]), root };
    assert_eq!(shown(&closed, &rita), QUOTA + 1);
    check(&closed);
}
