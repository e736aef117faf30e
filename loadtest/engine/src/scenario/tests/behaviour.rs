//! What users of a scenario do.

use super::*;
use crate::workload::OwnedRequest;

#[test]
fn a_constant_request_is_fixed_and_laid_out_to_the_byte() {
    let source = source(
        "[headers]\naccept = \"*/*\"\nx-a = \"1\"\n[[step]]\nname = \"e\"\nmethod = \"put\"\npath = \"/e\"\nquery = {q = \"a b\", n = 1}\nheaders = {X-A = \"2\"}\njson = {e = 1, b = [true, 1.5, \"x\"]}\n",
    );
    let mut workload = source.workload(0, 1, 1);
    assert_eq!(
        next(&mut *workload, 0),
        "PUT /e?q=a%20b&n=1\naccept: */*\ncontent-type: application/json\nx-a: 2\n\n{\"e\":1,\"b\":[true,1.5,\"x\"]}"
    );
    let Next::Send(request) = workload.next(0) else { panic!("a request") };
    assert_eq!(request.fixed, Some(0));
    assert_eq!(workload.distinct_requests(), Some(1));
}

#[test]
fn every_function_has_its_form_and_the_same_seed_says_the_same() {
    let source = source(
        r#"
        [vars]
        greeting = "a b"
        [[step]]
        name = "x"
        method = "POST"
        path = "/{{greeting}}/{{raw:greeting2}}?t={{now_iso}}&u={{user}}"
        headers = { x-run = "{{run}}", x-hex = "{{random_hex:20}}" }
        body = "{{random:5..7}} {{uuid}} {{pick:red|green}} {{now_ms}} {{now_ns}} {{greeting}} {{counter}} {{counter}}"
        "#
        .replace("[[step]]", "greeting2 = \"p/q\"\n[[step]]")
        .as_str(),
    );
    let mut one = source.workload(0, 1, 42);
    let mut same = source.workload(0, 1, 42);
    let mut other = source.workload(0, 1, 43);
    let text = next(&mut *one, 3);
    assert_eq!(text, next(&mut *same, 3));
    assert_ne!(text, next(&mut *other, 3));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "POST /a%20b/p/q?t=2026-11-21T01%3A30%3A56.517Z&u=3");
    assert_eq!(lines[1], "x-run: hocqtl5w2s", "{text}");
    assert_eq!(lines[2].len(), "x-hex: ".len() + 20);
    let words: Vec<&str> = lines[4].split(' ').collect();
    assert!((5..=7).contains(&words[0].parse::<i32>().unwrap()), "{text}");
    assert_eq!(words[1].len(), 36);
    assert!(["red", "green"].contains(&words[2]));
    assert_eq!(words[3], "1795224656517");
    assert_eq!(words[4], "1795224656517796090");
    assert_eq!(&words[5..], ["a", "b", "0", "0"], "a counter moves once in a step");
}

#[test]
fn what_a_user_draws_does_not_depend_on_the_others() {
    let source = source("[[step]]\npath = \"/{{random:1..1000000}}\"\n");
    let mut alone = source.workload(0, 1, 9);
    let mut together = source.workload(1, 4, 9);
    let expected: Vec<String> = (0..5).map(|_| path(&mut *alone, 7)).collect();
    let mut found = Vec::new();
    for user in [3, 7, 3, 7, 7, 2, 7, 7] {
        let asked = path(&mut *together, user);
        if user == 7 {
            found.push(asked);
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn counters_are_dealt_between_workers_and_begin_where_told() {
    let source = source("[[step]]\npath = \"/{{counter:order:100}}/{{counter}}\"\n");
    let mut seen = Vec::new();
    for worker in 0..3 {
        let mut workload = source.workload(worker, 3, 1);
        seen.extend((0..3).map(|user| path(&mut *workload, user)));
    }
    seen.sort();
    let expected: Vec<String> = (0..9).map(|n| format!("/{}/{n}", 100 + n)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn json_bodies_escape_within_quotes_and_not_outside() {
    let source = source(
        r#"
        [vars]
        name = "a\"b\\"
        number = 7
        [[step]]
        name = "text"
        path = "/a"
        json = '''{"n": {{number}}, "s": "<{{name}}>", "r": "{{raw:number}}"}'''
        [[step]]
        name = "table"
        path = "/a"
        json = { n = "{{raw:number}}", s = "<{{name}}>", "{{name}}" = "{{user}}" }
        [[step]]
        name = "plain"
        path = "/a"
        body = "{{name}}"
        [[step]]
        name = "typed"
        path = "/a"
        headers = { content-type = "application/vnd.x+json" }
        body = '"{{name}}"'
        [[step]]
        name = "form"
        path = "/a"
        form = { a = "x {{name}}", b = 1 }
        "#,
    );
    let mut bodies = std::collections::BTreeSet::new();
    let mut workload = source.workload(0, 1, 1);
    for _ in 0..200 {
        let text = next(&mut *workload, 0);
        bodies.insert(text.split("\n\n").nth(1).unwrap().to_owned());
    }
    let expected = [
        r#"{"n": 7, "s": "<a\"b\\>", "r": "7"}"#,
        r#"{"n":7,"s":"<a\"b\\>","a\"b\\":"0"}"#,
        r#"a"b\"#,
        r#""a\"b\\""#,
        "a=x+a%22b%5C&b=1",
    ];
    assert_eq!(bodies, expected.iter().map(|body| (*body).to_owned()).collect());
}

const LINKS: &str = r#"
    [[step]]
    name = "create"
    weight = 3
    path = "/api"
    json = { url = "http://x" }
    expect = { status = 201, json = { "/short_code" = "exists" } }
    capture = { code = { json = "/short_code", keep = 2 } }
    [[step]]
    name = "follow"
    weight = 10
    path = "/{{code}}"
    requires = ["code"]
    expect = { status = 302 }
"#;

#[test]
fn a_step_waits_for_what_it_requires_and_draws_from_the_pool() {
    let source = source(LINKS);
    assert!(source.endpoints()[0].needs.body && !source.endpoints()[0].needs.head);
    assert!(!source.endpoints()[1].needs.body);
    let mut workload = source.workload(0, 1, 5);
    for code in ["old", "aa", "b/b"] {
        while path(&mut *workload, 0) != "/api" {
            answer(&mut *workload, 0, 302, &[], "");
        }
        let body = format!("{{\"short_code\":\"{code}\"}}");
        assert_eq!(answer(&mut *workload, 0, 201, &[], &body), Judgement::Success);
    }
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..1300 {
        *seen.entry(path(&mut *workload, 1)).or_insert(0) += 1;
        workload.lost(1);
    }
    // Only the last two codes are kept; weights hold to a few standard deviations.
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["/aa", "/api", "/b%2Fb"]);
    assert!((240..360).contains(&seen["/api"]), "{seen:?}");
    assert!((430..570).contains(&seen["/aa"]), "{seen:?}");
}

#[test]
fn before_anything_is_captured_only_what_can_be_asked_is_asked() {
    let source = source(LINKS);
    let mut workload = source.workload(0, 1, 5);
    for user in 0..50 {
        assert_eq!(path(&mut *workload, user), "/api");
    }
}

#[test]
fn answers_are_judged_by_status_then_checks_then_captures() {
    let source = source(LINKS);
    let mut workload = source.workload(0, 1, 5);
    let mut judge = |status, body| {
        path(&mut *workload, 0);
        answer(&mut *workload, 0, status, &[], body)
    };
    assert_eq!(judge(200, ""), Judgement::WrongStatus);
    let Judgement::FailedCheck(check) = judge(201, "{}") else { panic!("a failed check") };
    let text = source.workload(0, 1, 5).check_text(check);
    assert_eq!(text, "\"/short_code\" exists");
    assert_eq!(judge(201, "{\"short_code\":\"x\"}"), Judgement::Success);
}

#[test]
fn a_flow_is_run_in_order_and_ends_at_the_first_failure() {
    let source = source(
        r#"
        [[step]]
        name = "shop"
        [step.let]
        id = "{{random:1..9}}"
        [[step.request]]
        name = "order"
        path = "/order/{{id}}/{{counter}}"
        method = "POST"
        capture = { place = { header = "Location", after = "/orders/" } }
        [[step.request]]
        path = "/status/{{place}}/{{id}}/{{counter}}"
        "#,
    );
    let names: Vec<String> = source.endpoints().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["shop: order", "shop: 2"]);
    assert!(source.endpoints()[0].needs.head);
    let mut workload = source.workload(0, 1, 5);
    let first = path(&mut *workload, 0);
    let id = first.split('/').nth(2).unwrap().to_owned();
    assert_eq!(first, format!("/order/{id}/0"));
    let located = [("Location", "http://h/orders/77")];
    assert_eq!(answer(&mut *workload, 0, 201, &located, ""), Judgement::Success);
    assert_eq!(path(&mut *workload, 0), format!("/status/77/{id}/0"));
    assert_eq!(answer(&mut *workload, 0, 200, &[], ""), Judgement::Success);
    assert!(path(&mut *workload, 0).ends_with("/1"), "a new run of the step");
    let failed = answer(&mut *workload, 0, 201, &[], "");
    let Judgement::FailedCheck(check) = failed else { panic!("nothing was captured") };
    assert!(workload.check_text(check).starts_with("place can be captured from header"));
    assert!(path(&mut *workload, 0).starts_with("/order/"), "the flow began anew");
}

#[test]
fn a_value_that_is_not_there_fails_the_request_and_not_the_run() {
    let source = source("[[step]]\nname = \"a\"\npath = \"/{{x}}\"\ncapture = {x = \"/x\"}\n");
    let mut workload = source.workload(0, 1, 5);
    assert_eq!(next(&mut *workload, 0), "failed 0");
    assert_eq!(next(&mut *workload, 0), "failed 0");
}

#[test]
fn data_is_dealt_in_the_order_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("u.csv"), "name,id\nann,1\nbob,2\ncid,3\n").unwrap();
    let load = |order: &str| {
        let text = format!(
            "[data.u]\nfile = \"u.csv\"\norder = \"{order}\"\n[[step]]\npath = \"/{{{{u.name}}}}/{{{{u.id}}}}\"\n"
        );
        let file = folder.path().join("s.toml");
        std::fs::write(&file, text).unwrap();
        Scenario::load(&file).unwrap().source(&SetupValues::default(), clock).unwrap()
    };
    let paths = |workload: &mut dyn Workload, users: &[u32]| -> Vec<String> {
        users.iter().map(|user| path(workload, *user)).collect()
    };
    let sequential = load("sequential");
    let mut one = sequential.workload(0, 2, 1);
    let mut other = sequential.workload(1, 2, 1);
    assert_eq!(paths(&mut *one, &[0, 0, 0]), ["/ann/1", "/cid/3", "/bob/2"]);
    assert_eq!(paths(&mut *other, &[1, 1]), ["/bob/2", "/ann/1"]);
    let once = load("once");
    assert_eq!(paths(&mut *once.workload(0, 2, 1), &[0, 2, 0]), ["/ann/1", "/cid/3", "done"]);
    assert_eq!(paths(&mut *once.workload(1, 2, 1), &[1, 1]), ["/bob/2", "done"]);
    let user = load("user");
    assert_eq!(paths(&mut *user.workload(0, 1, 1), &[4, 4, 0]), ["/bob/2", "/bob/2", "/ann/1"]);
    let random = load("random");
    let mut seen = paths(&mut *random.workload(0, 1, 1), &[0; 40]);
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["/ann/1", "/bob/2", "/cid/3"]);
}

const SETUP: &str = r#"
    [headers]
    x-tenant = "{{tenant}}"
    [login]
    path = "https://login.example:8443/token"
    json = { user = "u", password = "p" }
    [[setup]]
    name = "tenant"
    method = "POST"
    path = "/tenants/{{counter}}"
    expect = { status = 201 }
    capture = { tenant = "/id" }
    [[setup]]
    name = "seed"
    method = "POST"
    path = "/items/{{counter}}"
    repeat = 3
    capture = { item = { json = "/id", keep = 2 } }
    [[step]]
    name = "home"
    path = "/{{tenant}}"
    [[step]]
    name = "item"
    path = "/items/{{item}}"
    requires = ["item"]
    [[step]]
    name = "new"
    path = "/new/{{counter}}"
    [[teardown]]
    method = "DELETE"
    path = "/tenants/{{tenant}}"
"#;

#[test]
fn setup_logs_in_fills_pools_and_hands_its_values_on() {
    let scenario = parse(SETUP).unwrap();
    let mut setup = scenario.setup(1, clock);
    assert_eq!(setup.remaining(), 5);
    let login = setup.next_request().unwrap().unwrap();
    assert_eq!(login.origin.as_deref(), Some("https://login.example:8443"));
    assert_eq!((login.request.method.as_str(), login.request.path.as_str()), ("POST", "/token"));
    assert_eq!(login.request.body, b"{\"user\":\"u\",\"password\":\"p\"}");
    assert_eq!(login.request.headers, [("content-type".to_owned(), "application/json".to_owned())]);
    setup.answered(200, &[], b"{\"access_token\":\"T\"}").unwrap();
    let tenant = setup.next_request().unwrap().unwrap();
    assert_eq!(tenant.request.headers, [("authorization".to_owned(), "Bearer T".to_owned())]);
    setup.answered(201, &[], b"{\"id\":\"acme\"}").unwrap();
    for item in 0..3 {
        let request = setup.next_request().unwrap().unwrap().request;
        assert_eq!(request.path, format!("/items/{}", item + 1));
        assert!(request.headers.contains(&("x-tenant".to_owned(), "acme".to_owned())));
        setup.answered(200, &[], format!("{{\"id\":\"i{item}\"}}").as_bytes()).unwrap();
    }
    assert_eq!(setup.next_request().unwrap(), None);
    assert_eq!(setup.remaining(), 0);
    let values = setup.finish();

    let source = scenario.source(&values, clock).unwrap();
    let mut workload = source.workload(0, 1, 5);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        seen.insert(next(&mut *workload, 0));
        workload.lost(0);
    }
    let heads = "x-tenant: acme\nauthorization: Bearer T\n\n";
    assert!(seen.contains(&format!("GET /acme\n{heads}")), "{seen:?}");
    assert!(
        seen.contains(&format!("GET /items/i1\n{heads}"))
            && seen.contains(&format!("GET /items/i2\n{heads}"))
    );
    assert!(!seen.contains(&format!("GET /items/i0\n{heads}")), "only two are kept");
    assert!(seen.contains(&format!("GET /new/4\n{heads}")), "counters go on after setup");
    assert!(!seen.contains(&format!("GET /new/3\n{heads}")));
    let mut teardown = scenario.teardown(&values, 1, clock);
    assert_eq!(teardown.next_request().unwrap().unwrap().request.path, "/tenants/acme");
    teardown.answered(204, &[], b"").unwrap();
    assert_eq!(teardown.next_request().unwrap(), None);
}

#[test]
fn what_setup_captured_makes_a_request_constant_and_leaves_the_identity_alone() {
    let text = "[login]\npath = \"/t\"\n[[step]]\npath = \"/a\"\n";
    let scenario = parse(text).unwrap();
    let values = |token: &str| {
        let mut setup = scenario.setup(1, clock);
        setup.next_request().unwrap();
        setup.answered(200, &[], format!("{{\"access_token\":\"{token}\"}}").as_bytes()).unwrap();
        setup.finish()
    };
    let (one, other) = (values("1"), values("2"));
    assert_ne!(one.fingerprint(), other.fingerprint());
    let source = |values| scenario.source(values, clock).unwrap();
    assert_eq!(source(&one).identity(), source(&other).identity());
    let mut workload = source(&one).workload(0, 1, 1);
    let Next::Send(request) = workload.next(0) else { panic!("a request") };
    assert_eq!(request.fixed, Some(0));
    assert_eq!(request.headers[0].1, "Bearer 1");
    let error = scenario.source(&SetupValues::default(), clock).unwrap_err();
    assert!(error.to_string().contains("{{token}} was not captured by the setup"), "{error}");
}

#[test]
fn an_unexpected_answer_ends_setup_with_what_the_server_said() {
    let scenario = parse(SETUP).unwrap();
    let mut setup = scenario.setup(1, clock);
    setup.next_request().unwrap();
    let error = setup.answered(401, &[], b"wrong password").unwrap_err().to_string();
    assert_eq!(
        error,
        "setup \"login\": expected the status 100..399, but the server answered 401 with a body that begins: wrong password"
    );
    let error = setup.answered(200, &[], b"").unwrap_err().to_string();
    assert!(error.contains("token can be captured from \"/access_token\""), "{error}");
    assert!(error.contains("with an empty body"), "{error}");
}

#[test]
fn the_identity_follows_what_is_sent_and_not_how_the_file_is_laid_out() {
    let identity = |text: &str| source(text).identity();
    let base = identity("[vars]\nv = 1\n[[step]]\npath = \"/{{v}}\"\n");
    assert_eq!(base, identity("# why\nname = \"test\"\nthink = \"1s\"\n[[step]]\npath='/1'\n"));
    for other in [
        "[[step]]\npath = \"/2\"\n",
        "[[step]]\npath = \"/1\"\nweight = 2\n",
        "[[step]]\npath = \"/1\"\nexpect = {status = 200}\n",
        "[[step]]\npath = \"/1\"\nheaders = {a = \"b\"}\n",
        "[[step]]\npath = \"/1\"\nname = \"other\"\n",
        "[[step]]\npath = \"/1\"\n[[step]]\npath = \"/2\"\n",
    ] {
        assert_ne!(base, identity(other), "{other}");
    }
    // A step that is never taken makes no difference.
    assert_eq!(base, identity("[[step]]\npath = \"/1\"\n[[step]]\npath = \"/2\"\nweight = 0\n"));
}

#[test]
fn one_request_can_have_placeholders_without_a_file() {
    let request = OwnedRequest {
        method: "post".into(),
        path: "/a/{{counter}}?v={{v}}".into(),
        headers: vec![("Content-Type".into(), "application/json".into())],
        body: br#"{"q":"{{v}}"}"#.to_vec(),
    };
    let vars = [("v".to_owned(), "\"".to_owned())];
    let scenario = Scenario::of_request(&request, Statuses::default(), &vars).unwrap();
    let source = scenario.source(&SetupValues::default(), clock).unwrap();
    let mut workload = source.workload(0, 1, 1);
    next(&mut *workload, 0);
    assert_eq!(
        next(&mut *workload, 0),
        "POST /a/1?v=%22\ncontent-type: application/json\n\n{\"q\":\"\\\"\"}"
    );
    let bad = OwnedRequest { path: "/{{nothing}}".into(), body: vec![], ..request };
    let error = Scenario::of_request(&bad, Statuses::default(), &[]).unwrap_err();
    assert!(error.to_string().starts_with("path: unknown placeholder {{nothing}}"), "{error}");
}

#[test]
fn the_number_of_different_requests_is_estimated() {
    let source = source("[[step]]\npath = \"/{{random:1..20}}\"\n[[step]]\npath = \"/fixed\"\n");
    let mut workload = source.workload(0, 1, 1);
    for _ in 0..1000 {
        next(&mut *workload, 0);
        workload.lost(0);
    }
    assert_eq!(workload.distinct_requests(), Some(21));
}

#[test]
fn hints_for_the_command_line_are_read() {
    let scenario = parse(
        "name = \"n\"\nbase = \"https://h:1/\"\nthink = \"10ms..50ms\"\n[load]\nusers = 20\nduration = \"1m\"\nrate = 2.5\nwarmup = \"500ms\"\n[[step]]\npath = \"/\"\n",
    )
    .unwrap();
    assert_eq!((scenario.name(), scenario.base()), ("n", Some("https://h:1")));
    assert_eq!(scenario.think_us(), (10_000, 50_000));
    let expected = Suggested {
        users: Some(20),
        rate_per_s: Some(2.5),
        duration_ms: Some(60_000),
        warmup_ms: Some(500),
    };
    assert_eq!(scenario.suggested(), expected);
    assert_eq!(parse("[[step]]\npath = \"/\"\n").unwrap().name(), "test");
}

#[test]
fn variables_come_from_the_command_line_the_environment_or_the_file() {
    let text = "[vars]\na = 1\nb = {env = \"B\"}\nc = {env = \"C\", default = \"3\"}\n[[step]]\npath = \"/{{a}}{{b}}{{c}}\"\n";
    let options = Options {
        vars: vec![("a".into(), "x".into())],
        environment: |name| (name == "B").then(|| "y".to_owned()),
        ..Options::default()
    };
    let load = |options: &Options| Scenario::parse(text, Path::new("t.toml"), options);
    let scenario = load(&options).unwrap();
    let source = scenario.source(&SetupValues::default(), clock).unwrap();
    assert_eq!(path(&mut *source.workload(0, 1, 1), 0), "/xy3");
    let error = parse(text).unwrap_err().to_string();
    assert!(error.contains("the environment variable \"B\" is not set"), "{error}");
    let options = Options { vars: vec![("aa".into(), "x".into())], ..options };
    let error = load(&options).unwrap_err().to_string();
    assert!(error.contains("\"aa\" was given") && error.contains("did you mean \"a\"?"), "{error}");
}
