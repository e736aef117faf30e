//! What is imported loads, and sends what was meant.

use super::*;
use crate::invalid::Invalid;
use crate::scenario::{Options, Scenario, SetupValues};
use crate::testing::{clock, next};
use crate::workload::Source;
use proptest::prelude::*;
use std::path::Path;

fn load(text: &str) -> Scenario {
    Scenario::parse(text, Path::new("import.toml"), &Options::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn no_files(name: &str) -> Result<Vec<u8>, Invalid> {
    match name {
        "body.json" => Ok(b"{\"a\":\n1}".to_vec()),
        "binary" => Ok(vec![0xff]),
        _ => Err("not found".into()),
    }
}

fn from_curl(command: &str) -> String {
    scenario(command, &no_files).unwrap_or_else(|error| panic!("{command}: {error}"))
}

/// The first request of a scenario, as text.
fn sent(text: &str) -> String {
    let source = load(text).source(&SetupValues::default(), clock).unwrap();
    next(&mut *source.workload(0, 1, 1), 0)
}

#[test]
fn curl_command_lines_send_what_curl_would() {
    for (command, expected) in [
        ("curl http://h:1/a?b=c#d", "GET /a?b=c\n\n"),
        ("curl -I h", "HEAD /\n\n"),
        ("$ curl -X delete 'http://h/x y'", "DELETE /x%20y\n\n"),
        (
            "curl http://h/ -d a=1 -d 'b=2'",
            "POST /\ncontent-type: application/x-www-form-urlencoded\n\na=1&b=2",
        ),
        (
            "curl http://h/ -da=1 -H 'Content-Type: text/plain'",
            "POST /\ncontent-type: text/plain\n\na=1",
        ),
        (
            "curl --json '{\"x\":\"{{y}}\"}' http://h/",
            "POST /\ncontent-type: application/json\naccept: application/json\n\n{\"x\":\"{{y}}\"}",
        ),
        (
            "curl http://h/s?x=1 -G --data-urlencode 'q=a b&c' -d 'r=#2'",
            "GET /s?x=1&q=a+b%26c&r=%232\n\n",
        ),
        ("curl -u me:pw http://h/", "GET /\nauthorization: Basic bWU6cHc=\n\n"),
        ("curl http://me:pw@h/", "GET /\nauthorization: Basic bWU6cHc=\n\n"),
        ("curl -b 'a=1; b=2' -b c=3 h/", "GET /\ncookie: a=1; b=2; c=3\n\n"),
        ("curl -sSLkA me --url h/z --compressed", "GET /z\nuser-agent: me\n\n"),
        (
            "curl -d @body.json h/",
            "POST /\ncontent-type: application/x-www-form-urlencoded\n\n{\"a\":1}",
        ),
        (
            "curl --data-binary @body.json -H 'content-type: application/json' h/",
            "POST /\ncontent-type: application/json\n\n{\"a\":\n1}",
        ),
        ("curl --data-raw @body.json -H content-type: h/", "POST /\n\n@body.json"),
        ("curl -T body.json h/up", "PUT /up\n\n{\"a\":\n1}"),
        (
            "curl h/ --data-raw $'it\\'s\\n'",
            "POST /\ncontent-type: application/x-www-form-urlencoded\n\nit's\n",
        ),
        ("curl h/ --request PATCH --header=x", "PATCH /\n\n"),
    ] {
        assert_eq!(sent(&from_curl(command)), expected, "{command}");
    }
}

#[test]
fn what_curl_does_and_we_do_not_is_said() {
    for (command, expected) in [
        ("curl -L h/", "# Redirects are never followed"),
        ("curl -k h/", "# Any certificate is accepted with --insecure"),
        ("curl -F a=b h/", "# Left out: forms with parts"),
        ("curl -d @nothing h/", "# Left out: the body is the file \"nothing\" (not found)"),
        ("curl -d @binary h/", "(it is not text)"),
        ("curl --nonsense h/", "# Left out: --nonsense is not known"),
        ("curl -H 'Host: x' h/", "# Left out: the header \"host\" cannot be set"),
        (
            "curl h/ http://other/",
            "# Left out: http://other/; all requests go to one server, http://h.",
        ),
        ("curl -b jar.txt h/", "# Left out: the file of cookies"),
        ("curl 'h/' -H \"a: $TOKEN\"", "# The shell's variables"),
        ("cd x; curl h/", "# Left out: \"cd x\" is not a curl command."),
        ("curl -u a:b h/", "# A secret from the command line"),
    ] {
        let text = from_curl(command);
        assert!(text.contains(expected), "{command}\n{text}");
        load(&text);
    }
    assert!(scenario("wget x", &no_files).is_err());
    assert!(scenario("curl", &no_files).unwrap_err().to_string().contains("without a URL"));
    assert!(scenario("curl 'h", &no_files).unwrap_err().to_string().contains("never closed"));
    assert!(
        scenario("curl ftp://h/", &no_files)
            .unwrap_err()
            .to_string()
            .contains("must be http or https")
    );
    assert!(scenario("curl ^\"h^\"", &no_files).unwrap_err().to_string().contains("Windows"));
}

#[test]
fn several_commands_become_several_steps_with_names_of_their_own() {
    let text = from_curl("curl h/a -H 'x-a: 1'\ncurl h/a -H 'x-a: 1' --next h/b -H 'x-a: 1'");
    let source = load(&text).source(&SetupValues::default(), clock).unwrap();
    let names: Vec<String> = source.endpoints().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["GET /a", "GET /a (2)", "GET /b"]);
    assert!(text.contains("[headers]\nx-a = \"1\"\n"), "{text}");
}

#[test]
fn globs_become_several_steps_unless_they_are_off_or_too_many() {
    let paths = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix("path = ")).map(str::to_owned).collect()
    };
    let made = from_curl("curl 'http://h/{a,b}/[1-2]'");
    load(&made);
    assert_eq!(paths(&made), ["\"/a/1\"", "\"/a/2\"", "\"/b/1\"", "\"/b/2\""]);
    assert_eq!(paths(&from_curl("curl -g 'http://h/[1-2]'")).len(), 1);
    let many = from_curl("curl 'http://h/[1-1000]'");
    assert_eq!(paths(&many).len(), 1);
    assert!(many.contains("# http://h/[1-1000] has a range or list"), "{many}");
}

#[test]
fn a_command_copied_from_a_browser_is_read() {
    let command = r#"curl 'https://shop.example/api/cart?id=7' \
  -X 'POST' \
  -H 'accept: application/json, text/plain, */*' \
  -H 'accept-language: en-US,en;q=0.9' \
  -H 'authorization: Bearer abc' \
  -H 'content-type: application/json' \
  -b 'session=s3cret' \
  -H 'sec-ch-ua: "Chromium";v="140"' \
  --data-raw $'{"name":"it\'s","note":"\u00fc"}' \
  --compressed"#;
    let text = from_curl(command);
    assert_eq!(
        sent(&text),
        "POST /api/cart?id=7\ncookie: session=s3cret\naccept: application/json, text/plain, */*\naccept-language: en-US,en;q=0.9\nauthorization: Bearer abc\nsec-ch-ua: \"Chromium\";v=\"140\"\ncontent-type: application/json\n\n{\"name\":\"it's\",\"note\":\"ü\"}"
            .replace("cookie: session=s3cret\naccept", "content-type: application/json\ncookie: session=s3cret\naccept")
            .replace("v=\"140\"\ncontent-type: application/json\n", "v=\"140\"\n")
    );
    assert_eq!(load(&text).base(), Some("https://shop.example"));
}

proptest! {
    #[test]
    fn whatever_curl_import_accepts_loads(
        words in prop::collection::vec("(-[XHduGIbkFTAe]|--[a-z-]{1,12}|--json|--data-raw|'[^']{0,10}'|http://h[/a-z{}?&=#%]{0,10}|\\$'[^']{0,8}'|\"[^\"]{0,8}\"|@body.json)", 0..10),
    ) {
        if let Ok(text) = scenario(&format!("curl {}", words.join(" ")), &no_files) {
            load(&text);
        }
    }

    #[test]
    fn any_text_is_survived(text in ".*") {
        let _ = scenario(&text, &no_files);
    }
}
