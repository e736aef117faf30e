//! Logging in and out: tokens, passwords, and what wrong ones cost.

use crate::client::Answer;
use crate::closed::{Closed, PASSWORD, login, token};
use base64::Engine as _;
use serde_json::{Value, json};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

#[test]
fn a_login_gives_a_token_in_any_wording() {
    let closed = Closed::start();
    closed.add("ann@example.com", &["writer:main"]);
    let mut client = closed.client();
    let json = [("Content-Type", "application/json")];
    for (headers, body) in [
        (json, format!(r#"{{"username":"ann@example.com","password":"{PASSWORD}"}}"#)),
        (json, format!(r#"{{ "password" : "{PASSWORD}", "username" : "ann@example.com" }}"#)),
        ([FORM], "grant_type=password&username=ann%40example.com&password=correct+horse".to_owned()),
        ([FORM], "password=correct%20horse&client_id=x&username=ann@example.com&scope=default&grant_type=password".to_owned()),
    ] {
        let answer = client.call("POST", "/auth/token", &headers, body.as_bytes()).unwrap();
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let text = answer.text();
        let given = answer.expect(200);
        let bearer = given["access_token"].as_str().unwrap();
        let rest = r#","token_type":"Bearer","scope":"default","expires_in":3600}"#;
        assert_eq!(text, format!("{{\"access_token\":\"{bearer}\"{rest}"));
        assert!(closed.counts(bearer));
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(bearer.split('.').nth(1).unwrap())
            .unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["sub"], &claims["roles"]), (&json!("ann@example.com"), &json!(["writer:main"])));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
    }
}

#[test]
fn what_is_no_login_is_told_why() {
    let closed = Closed::start();
    let mut client = closed.client();
    for (form, field, error) in [
        ("username=a&password=b", "grant_type", "unsupported_grant_type"),
        ("grant_type=password&username=a", "password", "invalid_request"),
        ("grant_type=implicit&username=a&password=b", "grant_type", "unsupported_grant_type"),
        ("grant_type=password&username=a&password=b&scope=root", "scope", "invalid_scope"),
    ] {
        let answer = client.call("POST", "/auth/token", &[FORM], form.as_bytes()).unwrap();
        let problem = answer.problem(422);
        assert_eq!(problem["field"], field, "{form}");
        assert_eq!(problem["error"], error, "{form}");
    }
    let mut post = |body: Value| client.post("/auth/token", &body).unwrap();
    for (body, field) in [
        (json!({"username": "root"}), "password"),
        (
            json!({"username": "root", "password": PASSWORD, "expires_in_s": 31_622_401}),
            "expires_in_s",
        ),
        (json!({"username": "root", "password": PASSWORD, "remember": true}), "remember"),
    ] {
        assert_eq!(post(body).problem(422)["field"], field);
    }
    let long = json!({"username": "root", "password": PASSWORD, "expires_in_s": 31_622_400});
    assert_eq!(post(long).expect(200)["expires_in"], 31_622_400);
    let media = [("Content-Type", "text/plain")];
    client.call("POST", "/auth/token", &media, b"x").unwrap().problem(415);
    let json_type = [("Content-Type", "application/json")];
    let huge = format!("{{\"username\":\"{}\"}}", "x".repeat(20_000));
    client.call("POST", "/auth/token", &json_type, huge.as_bytes()).unwrap().problem(413);
}

/// The content of an answer, without what differs each time.
fn said(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !["x-request-id", "date"].contains(&name.as_str()));
    (answer.status, headers, answer.text())
}

#[test]
fn wrong_passwords_are_slowed_and_say_nothing_about_who_there_is() {
    let closed = Closed::start();
    closed.add("ann", &["reader"]);
    let bob = closed.add("bob", &["reader"]);
    closed.ask(&closed.root, "PATCH", "/v1/accounts/bob", &json!({"enabled": false})).expect(200);
    let keys_only = json!({"name": "ci", "roles": ["reader"]});
    closed.ask(&closed.root, "POST", "/v1/accounts", &keys_only).expect(201);
    let mut client = closed.client();
    let mut stories = Vec::new();
    for name in ["ann", "nobody", "bob", "ci"] {
        // Four are free, the fifth is the first with a delay.
        let wrong: Vec<_> =
            (0..5).map(|_| said(&login(&mut client, name, "wrong wrong"))).collect();
        assert!(wrong.iter().all(|told| told == &wrong[0]), "{wrong:?}");
        stories.push(wrong[0].clone());
        // Now the right password has to wait too.
        let late = login(&mut client, name, PASSWORD);
        assert_eq!(late.header("retry-after"), Some("1"), "{name}");
        let problem = late.problem(429);
        assert_eq!(
            (&problem["type"], &problem["retry"]),
            (&json!("/problems/too-many-logins"), &json!(1))
        );
    }
    assert_eq!(stories[0].0, 401);
    assert!(stories.iter().all(|story| story == &stories[0]), "{stories:?}");
    // Existing tokens stay valid, and other accounts may log in.
    assert!(!closed.counts(&bob));
    assert_eq!(
        login(&mut client, "root", PASSWORD).status,
        200,
        "20 failures of an address are free"
    );
    assert_eq!(login(&mut client, "somebody", "wrong wrong").status, 401);
    assert_eq!(login(&mut client, "root", PASSWORD).status, 429, "21 are not");
    assert!(closed.counts(&closed.root));
}

#[test]
fn a_token_may_be_for_less_and_never_for_more() {
    let closed = Closed::start();
    closed.add("ann", &["reader", "writer:main"]);
    let mut client = closed.client();
    let mut narrow = |roles: Value| {
        let body =
            json!({"username": "ann", "password": PASSWORD, "roles": roles, "expires_in_s": 60});
        client.post("/auth/token", &body).unwrap()
    };
    for roles in [json!(["writer"]), json!(["operator:main"]), json!(["reader", "writer:other"])] {
        assert_eq!(narrow(roles).problem(422)["field"], "roles");
    }
    let given = narrow(json!(["reader:main"])).expect(200);
    assert_eq!((&given["scope"], &given["expires_in"]), (&json!("reader:main"), &json!(60)));
    let bearer = given["access_token"].as_str().unwrap();
    closed.get(bearer, "/v1/head").expect(200);
    let event = json!({"events": [{"type": "T", "tags": [], "data": 1}]});
    closed.ask(bearer, "POST", "/v1/append", &event).problem(403);
    assert_eq!(closed.get(bearer, "/auth/me").expect(200)["roles"], json!(["reader:main"]));
}

#[test]
fn a_logout_ends_a_token_at_once_or_all_of_them() {
    let closed = Closed::start();
    let first = closed.add("ann", &["reader"]);
    let logout = |bearer: &str, body: &Value| closed.ask(bearer, "POST", "/auth/logout", body);
    let (second, third) = (token(&mut closed.client(), "ann"), token(&mut closed.client(), "ann"));
    assert!([&first, &second, &third].into_iter().all(|bearer| closed.counts(bearer)));
    assert_eq!(logout(&first, &Value::Null).expect(200)["ended"], "token");
    assert!(!closed.counts(&first) && closed.counts(&second));
    logout(&first, &Value::Null).problem(401);
    assert_eq!(logout(&second, &json!({"everywhere": true})).expect(200)["ended"], "all");
    assert!(!closed.counts(&second) && !closed.counts(&third));
    assert!(closed.counts(&token(&mut closed.client(), "ann")), "a new one counts");
    let (_, key) = closed.key(&token(&mut closed.client(), "ann"), &json!({"role": "reader"}));
    assert_eq!(logout(&key, &Value::Null).problem(409)["type"], "/problems/no-token");
    let basic = format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode(format!("ann:{PASSWORD}"))
    );
    let by_password = |body: &str| {
        let headers = [("Authorization", basic.as_str()), ("Content-Type", "application/json")];
        closed.client().call("POST", "/auth/logout", &headers, body.as_bytes()).unwrap()
    };
    by_password("").problem(409);
    let token = token(&mut closed.client(), "ann");
    assert_eq!(by_password(r#"{"everywhere":true}"#).expect(200)["ended"], "all");
    assert!(!closed.counts(&token));
    logout(&closed.root, &json!({"everywhere": 1})).problem(422);
}

#[test]
fn ones_own_password_takes_the_one_there_is_and_ends_all_tokens() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["reader"]);
    closed.add("bob", &["reader"]);
    let set = |bearer: &str, name: &str, body: Value| {
        closed.ask(bearer, "PUT", &format!("/v1/accounts/{name}/password"), &body)
    };
    let new = "battery staple";
    assert_eq!(set(&ann, "ann", json!({"password": new})).problem(422)["field"], "current");
    let weak = set(&ann, "ann", json!({"password": "short", "current": PASSWORD}));
    assert_eq!(weak.problem(422)["field"], "password");
    for other in ["bob", "root", "nobody"] {
        set(&ann, other, json!({"password": new, "current": PASSWORD})).problem(403);
    }
    let wrong = set(&ann, "ann", json!({"password": new, "current": "wrong wrong"}));
    assert_eq!(wrong.problem(403)["type"], "/problems/wrong-password");
    let (_, key) = closed.key(&ann, &json!({"role": "reader"}));
    set(&key, "ann", json!({"password": new, "current": PASSWORD})).problem(403);
    assert_eq!(set(&ann, "ann", json!({"password": new, "current": PASSWORD})).status, 204);
    assert!(!closed.counts(&ann), "tokens end");
    assert!(closed.counts(&key), "keys do not");
    assert_eq!(login(&mut closed.client(), "ann", PASSWORD).status, 401);
    assert_eq!(login(&mut closed.client(), "ann", new).status, 200);
    // An admin sets the passwords of others without knowing them, but not the own one.
    assert_eq!(set(&closed.root, "ann", json!({"password": PASSWORD})).status, 204);
    let ann = token(&mut closed.client(), "ann");
    set(&closed.root, "ann", json!({"password": new, "current": PASSWORD})).problem(422);
    set(&closed.root, "nobody", json!({"password": new})).problem(404);
    assert_eq!(
        set(&closed.root, "root", json!({"password": new})).problem(422)["field"],
        "current"
    );
    // Guesses here count as failed logins.
    let mut statuses: Vec<u16> = Vec::new();
    for _ in 0..6 {
        let body = json!({"password": new, "current": "wrong wrong"});
        statuses.push(set(&ann, "ann", body).status);
    }
    assert_eq!(statuses, [403, 403, 403, 403, 403, 429]);
    assert_eq!(login(&mut closed.client(), "ann", PASSWORD).status, 429);
}

#[test]
fn a_disabled_account_falls_with_all_it_has_at_once() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["reader"]);
    let (_, key) = closed.key(&ann, &json!({"role": "reader"}));
    // A connection that was authenticated before.
    let mut client = closed.client();
    let authorization = format!("Bearer {key}");
    let headers = [("Authorization", authorization.as_str())];
    assert_eq!(client.call("GET", "/v1/head", &headers, b"").unwrap().status, 200);
    let enable = |to: bool| {
        let body = json!({"enabled": to});
        closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &body).expect(200);
    };
    enable(false);
    client.call("GET", "/v1/head", &headers, b"").unwrap().problem(401);
    assert!(!closed.counts(&ann) && !closed.counts(&key));
    assert_eq!(login(&mut closed.client(), "ann", PASSWORD).status, 401);
    enable(true);
    assert!(closed.counts(&key), "keys wait");
    assert!(!closed.counts(&ann), "tokens do not");
    assert!(closed.counts(&token(&mut closed.client(), "ann")));
}

#[test]
fn another_secret_signs_and_the_one_before_counts_until_it_is_retired() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["operator"]);
    closed.ask(&ann, "POST", "/auth/rotate", &Value::Null).problem(403);
    let rotate = |bearer: &str, body: &Value| {
        closed.ask(bearer, "POST", "/auth/rotate", body).expect(200)["secrets"].as_u64()
    };
    assert_eq!(rotate(&closed.root, &Value::Null), Some(2));
    assert!(closed.counts(&ann));
    let second = token(&mut closed.client(), "root");
    assert_eq!(rotate(&second, &json!({"retire": true})), Some(1));
    assert!(!closed.counts(&ann) && !closed.counts(&closed.root) && closed.counts(&second));
    // Twice in a row: tokens signed with the first secret are invalid.
    assert_eq!(rotate(&second, &json!({})), Some(2));
    let third = token(&mut closed.client(), "root");
    assert_eq!(rotate(&second, &json!({})), Some(2));
    assert!(!closed.counts(&second) && closed.counts(&third));
    closed.ask(&third, "POST", "/auth/rotate", &json!({"retired": true})).problem(422);
}

#[test]
fn a_token_for_less_ends_itself_and_no_others() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["reader", "writer:orders"]);
    let narrow = |roles: &[&str]| {
        let body = json!({"username": "ann", "password": PASSWORD, "roles": roles});
        let answer = closed.client().post("/auth/token", &body).unwrap().expect(200);
        answer["access_token"].as_str().unwrap().to_owned()
    };
    let everywhere = json!({"everywhere": true});
    for roles in
        [&["reader:orders"][..], &["reader"], &["writer:orders"], &["reader:a", "reader:b"]]
    {
        let token = narrow(roles);
        let refused = closed.ask(&token, "POST", "/auth/logout", &everywhere).problem(403);
        assert_eq!(refused["type"], "/problems/forbidden", "{roles:?}");
        assert!(closed.counts(&ann) && closed.counts(&token), "{roles:?}");
        let ended = closed.ask(&token, "POST", "/auth/logout", &Value::Null).expect(200);
        assert_eq!(ended["ended"], "token");
        assert!(closed.counts(&ann) && !closed.counts(&token), "{roles:?}");
    }
    // With the account's full rights, whatever the roles are called.
    let same = narrow(&["reader", "writer:orders"]);
    assert_eq!(closed.ask(&same, "POST", "/auth/logout", &everywhere).expect(200)["ended"], "all");
    assert!(!closed.counts(&ann) && !closed.counts(&same));
    // A token need not include what the account has lost since.
    let (full, less) = (token(&mut closed.client(), "ann"), narrow(&["reader"]));
    let roles = json!({"roles": ["reader"]});
    closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &roles).expect(200);
    assert_eq!(closed.ask(&less, "POST", "/auth/logout", &everywhere).expect(200)["ended"], "all");
    assert!(!closed.counts(&full));
}
