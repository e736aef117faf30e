//! Header fields and credentials that are given from outside the file.

use super::*;

const FILE: &str = r#"
[headers]
accept = "text/plain"
x-team = "file"

[[setup]]
path = "https://login.example/token"

[[setup]]
path = "/prepare"

[[step]]
name = "as told"
path = "/a"

[[step]]
name = "of its own"
weight = 0
path = "/b"
headers = { authorization = "Basic own", x-team = "" }
"#;

fn options(authorization: Option<&str>) -> Options {
    Options {
        headers: vec![("X-Team".into(), "{{outside}}".into())],
        authorization: authorization.map(str::to_owned),
        environment: |_| None,
        ..Options::default()
    }
}

fn load(text: &str, options: &Options) -> Scenario {
    Scenario::parse(text, Path::new("folder/test.toml"), options).unwrap()
}

fn first(text: &str, options: &Options) -> String {
    let scenario = load(text, options);
    let source = scenario.source(&SetupValues::default(), clock).unwrap();
    next(&mut *source.workload(0, 1, 1), 0)
}

#[test]
fn they_come_before_those_of_the_file_and_after_those_of_a_request() {
    let options = options(Some("Bearer S3CRET"));
    assert_eq!(
        first(FILE, &options),
        "GET /a\nx-team: {{outside}}\nauthorization: Bearer S3CRET\naccept: text/plain\n\n"
    );
    let own = FILE
        .replace("weight = 0", "weight = 1")
        .replace("name = \"as told\"", "name = \"as told\"\nweight = 0");
    assert_eq!(first(&own, &options), "GET /b\naccept: text/plain\nauthorization: Basic own\n\n");
}

#[test]
fn no_other_server_gets_them() {
    let scenario = load(FILE, &options(Some("Bearer S3CRET")));
    let mut setup = scenario.setup(1, clock);
    let elsewhere = setup.next_request().unwrap().unwrap();
    assert_eq!(elsewhere.origin.as_deref(), Some("https://login.example"));
    assert!(!format!("{elsewhere:?}").contains("S3CRET"), "{elsewhere:?}");
    setup.answered(200, &[], b"").unwrap();
    let here = setup.next_request().unwrap().unwrap();
    let authorization = ("authorization".to_owned(), "Bearer S3CRET".to_owned());
    assert!(here.request.headers.contains(&authorization), "{here:?}");
}

#[test]
fn other_credentials_are_the_same_workload_and_other_headers_are_not() {
    let identity = |options: &Options| load(FILE, options).identity();
    let none = identity(&options(None));
    assert_eq!(identity(&options(Some("Bearer one"))), none);
    assert_eq!(identity(&options(Some("Bearer two"))), none);
    let mut others = options(None);
    others.headers[0].1 = "b".into();
    assert_ne!(identity(&others), none);
    assert!(!String::from_utf8(none).unwrap().contains("S3CRET"));
}

#[test]
fn a_field_that_cannot_be_sent_is_refused_by_name() {
    let mut wrong = options(None);
    wrong.headers = vec![("host".into(), "a".into())];
    let error = Scenario::parse(FILE, Path::new("t.toml"), &wrong).unwrap_err().to_string();
    assert!(error.contains("header \"host\""), "{error}");
}
