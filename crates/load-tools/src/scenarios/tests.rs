//! What is imported loads, and sends what was meant.

use super::*;
use proptest::prelude::*;
use std::path::Path;
use wellspring_load::scenario::{Options, Scenario, SetupValues};
use wellspring_load::testing::{answer, clock, next};
use wellspring_load::workload::Source;

fn load(text: &str) -> Scenario {
    Scenario::parse(text, Path::new("import.toml"), &Options::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn no_files(name: &str) -> Result<Vec<u8>, String> {
    match name {
        "body.json" => Ok(b"{\"a\":\n1}".to_vec()),
        "binary" => Ok(vec![0xff]),
        _ => Err("not found".into()),
    }
}

fn from_curl(command: &str) -> String {
    curl(command, &no_files).unwrap_or_else(|error| panic!("{command}: {error}"))
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
    assert!(curl("wget x", &no_files).is_err());
    assert!(curl("curl", &no_files).unwrap_err().to_string().contains("without a URL"));
    assert!(curl("curl 'h", &no_files).unwrap_err().to_string().contains("never closed"));
    assert!(
        curl("curl ftp://h/", &no_files).unwrap_err().to_string().contains("must be http or https")
    );
    assert!(curl("curl ^\"h^\"", &no_files).unwrap_err().to_string().contains("Windows"));
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

const HAR: &str = r#"{"log":{"version":"1.2","creator":{"name":"t","version":"1"},"entries":[
  {"request":{"method":"GET","url":"https://shop.example/?token=abc&q=1","headers":[{"name":":authority","value":"shop.example"},{"name":"Cookie","value":"sid=1"},{"name":"User-Agent","value":"UA"},{"name":"sec-fetch-mode","value":"cors"}]},"response":{"status":200}},
  {"request":{"method":"GET","url":"https://shop.example/app.js?v=1","headers":[]},"response":{"status":200}},
  {"request":{"method":"GET","url":"https://shop.example/logo","headers":[]},"response":{"status":200},"_resourceType":"image"},
  {"request":{"method":"GET","url":"https://ads.example/t","headers":[]},"response":{"status":204}},
  {"request":{"method":"POST","url":"https://shop.example/api","headers":[{"name":"User-Agent","value":"UA"},{"name":"Authorization","value":"Bearer s3cret"},{"name":"Content-Type","value":"application/json"},{"name":"Content-Length","value":"9"}],"postData":{"mimeType":"application/json","text":"{\"a\":\"{{b}}\"}"}},"response":{"status":201}},
  {"request":{"method":"POST","url":"https://shop.example/form","headers":[{"name":"User-Agent","value":"UA"}],"postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a b","value":"c&d"}]}},"response":{"status":304}},
  {"request":{"method":"GET","url":"wss://shop.example/live","headers":[]}}
]}}"#;

#[test]
fn a_recording_becomes_a_session_without_its_secrets() {
    let text = har(HAR, &HarOptions::default()).unwrap();
    for secret in ["abc", "sid=1", "s3cret"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    for note in [
        "2 requests for scripts, styles",
        "requests to other servers: https://ads.example (1)",
        "1 request with a URL that is not HTTP",
        "Cookies and credentials were not taken over",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
    let scenario = load(&text);
    assert_eq!(scenario.base(), Some("https://shop.example"));
    let source = scenario.source(&SetupValues::default(), clock).unwrap();
    let mut workload = source.workload(0, 1, 1);
    let mut sent = Vec::new();
    for status in [200, 201, 200] {
        sent.push(next(&mut *workload, 0));
        answer(&mut *workload, 0, status, &[], "");
    }
    assert_eq!(
        sent,
        [
            "GET /?token=&q=1\nuser-agent: UA\n\n",
            "POST /api\nuser-agent: UA\ncontent-type: application/json\n\n{\"a\":\"{{b}}\"}",
            "POST /form\nuser-agent: UA\ncontent-type: application/x-www-form-urlencoded\n\na+b=c%26d",
        ]
    );
    let filled = text.replace("cookie = \"\"", "cookie = \"x=y\"");
    let source = load(&filled).source(&SetupValues::default(), clock).unwrap();
    assert!(next(&mut *source.workload(0, 1, 1), 0).contains("cookie: x=y\n"));
    let all = har(HAR, &HarOptions { static_assets: true }).unwrap();
    assert!(all.contains("/app.js?v=1") && all.contains("/logo"));
}

#[test]
fn what_is_no_recording_is_refused() {
    for (text, expected) in [
        ("", "not JSON"),
        ("{}", "log.entries is missing"),
        ("{\"log\":{\"entries\":[]}}", "nothing in the recording"),
    ] {
        let error = har(text, &HarOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// In the style of what `crates/server` says of itself.
const OPENAPI: &str = r##"{
  "openapi": "3.1.0",
  "info": {"title": "Wellspring", "version": "0.1.0"},
  "servers": [{"url": "http://{host}:4000/api/", "variables": {"host": {"default": "127.0.0.1"}}}],
  "paths": {
    "/v1/append": {"post": {
      "summary": "Appends events", "operationId": "post_v1_append",
      "parameters": [{"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}],
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Append"}}, "application/x-ndjson": {"schema": {}}}},
      "responses": {"200": {"description": "ok"}, "default": {"description": "A problem"}}}},
    "/v1/events": {"get": {
      "operationId": "get_v1_events",
      "parameters": [
        {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}, "example": ["a b", "c"]},
        {"name": "limit", "in": "query", "required": true, "schema": {"type": "integer", "minimum": 5}},
        {"name": "order", "in": "query", "schema": {"enum": ["asc", "desc"]}}],
      "responses": {"2XX": {"description": "ok"}}}},
    "/v1/events/{position}": {
      "parameters": [{"name": "position", "in": "path", "required": true, "schema": {"type": "integer"}}],
      "get": {"responses": {"200": {"description": "ok"}}},
      "delete": {"responses": {"204": {"description": "gone"}}}},
    "/v1/events/by-id/{uuid}": {"get": {"parameters": [{"name": "uuid", "in": "path", "required": true, "schema": {"type": "string", "format": "uuid"}}, {"$ref": "#/components/parameters/Wait"}], "responses": {}}}
  },
  "components": {
    "parameters": {"Wait": {"name": "wait", "in": "header", "required": true, "schema": {"default": 7}}},
    "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}, "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}, "q": {"type": "apiKey", "in": "query", "name": "key"}},
    "schemas": {
      "Append": {"type": "object", "required": ["events", "ack"], "properties": {
        "events": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Event"}},
        "ack": {"enum": ["durable", "accepted"]},
        "condition": {"$ref": "#/components/schemas/Append"}}},
      "Event": {"allOf": [{"type": "object", "required": ["type"], "properties": {"type": {"type": "string", "minLength": 1}}}, {"required": ["id", "at", "self"], "properties": {"id": {"type": "string", "format": "uuid"}, "at": {"type": "string", "format": "date-time"}, "n": {"type": "integer", "example": 3}, "self": {"$ref": "#/components/schemas/Event"}, "seen": {"type": "string", "readOnly": true, "example": "x"}}}]}
    }}
}"##;

#[test]
fn a_description_becomes_a_step_for_each_operation() {
    let text = openapi(OPENAPI).unwrap();
    let scenario = load(&text);
    assert_eq!((scenario.name(), scenario.base()), ("Wellspring", Some("http://127.0.0.1:4000")));
    let source = scenario.source(&SetupValues::default(), clock).unwrap();
    let mut workload = source.workload(0, 1, 1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let request = next(&mut *workload, 0);
        let uuid = request.find("by-id/").map(|at| request[at + 6..at + 42].to_owned());
        seen.insert(uuid.map_or(request.clone(), |uuid| request.replace(&uuid, "UUID")));
        workload.lost(0);
    }
    let expected = [
        "GET /api/v1/events/1\n\n",
        "GET /api/v1/events/by-id/UUID\nwait: 7\n\n",
        "GET /api/v1/events?tag=a%20b&tag=c&limit=5\n\n",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    assert!(text.contains("# Not sent, as not required: order."), "{text}");
    assert!(text.contains("# Left out: the key \"key\" in the query (q)."), "{text}");
    assert!(text.contains("authorization = \"{{authorization}}\""), "{text}");
}

#[test]
fn what_changes_data_is_there_but_not_sent() {
    let text = openapi(OPENAPI).unwrap();
    assert_eq!(text.matches("weight = 0").count(), 2, "{text}");
    let armed = text
        .replace("weight = 0", "weight = 100000")
        .replace("authorization = \"\"", "authorization = \"Bearer x\"");
    let source = load(&armed).source(&SetupValues::default(), clock).unwrap();
    let mut workload = source.workload(0, 1, 1);
    let mut append = String::new();
    while !append.starts_with("POST") {
        append = next(&mut *workload, 0);
        workload.lost(0);
    }
    assert!(
        append.starts_with(
            "POST /api/v1/append\nauthorization: Bearer x\ncontent-type: application/json\n\n"
        ),
        "{append}"
    );
    let body: serde_json::Value =
        serde_json::from_str(append.split("\n\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["ack"], "durable");
    assert!(body.get("condition").is_none(), "{body}");
    let event = &body["events"][0];
    assert_eq!((&event["type"], &event["n"]), (&"text".into(), &3.into()));
    assert_eq!(event["at"], "2026-11-21T01:30:56.517Z");
    assert_eq!(event["id"].as_str().unwrap().len(), 36);
    assert!(event.get("seen").is_none() && event["self"].is_object());
}

#[test]
fn what_is_no_description_is_refused() {
    for (text, expected) in [
        ("openapi: 3.0.0\npaths: {}\n", "must be converted first"),
        ("{", "not JSON"),
        ("{}", "\"openapi\" is missing"),
        ("{\"swagger\":\"2.0\"}", "OpenAPI 2"),
        ("{\"openapi\":\"4.0.0\"}", "OpenAPI 4.0.0 is not known"),
        ("{\"openapi\":\"3.0.0\"}", "describes no paths"),
        ("{\"openapi\":\"3.0.0\",\"paths\":{}}", "describes no operation"),
    ] {
        let error = openapi(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// JSON of any shape, with words that mean something to the importers.
fn any_json(words: &'static [&'static str]) -> impl Strategy<Value = serde_json::Value> {
    let word = prop_oneof![prop::sample::select(words).prop_map(str::to_owned), ".{0,8}",];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        word.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(word.clone(), inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

const API_WORDS: &[&str] = &[
    "get",
    "post",
    "parameters",
    "name",
    "in",
    "path",
    "query",
    "header",
    "required",
    "schema",
    "type",
    "string",
    "object",
    "array",
    "items",
    "properties",
    "$ref",
    "#/paths",
    "#/paths/~1a",
    "example",
    "examples",
    "enum",
    "allOf",
    "oneOf",
    "requestBody",
    "content",
    "application/json",
    "responses",
    "200",
    "/a/{b}",
    "{{x}}",
    "a b",
    "minItems",
    "format",
    "uuid",
    "x",
    "#",
];
const HAR_WORDS: &[&str] = &[
    "request",
    "url",
    "http://h/",
    "https://h/a b?token=1",
    "method",
    "GET",
    "headers",
    "name",
    "value",
    "cookie",
    "a\nb",
    "postData",
    "text",
    "mimeType",
    "application/json",
    "params",
    "response",
    "status",
    "{{x}}",
    "application/x-www-form-urlencoded",
];

proptest! {
    #[test]
    fn whatever_curl_import_accepts_loads(
        words in prop::collection::vec("(-[XHduGIbkFTAe]|--[a-z-]{1,12}|--json|--data-raw|'[^']{0,10}'|http://h[/a-z{}?&=#%]{0,10}|\\$'[^']{0,8}'|\"[^\"]{0,8}\"|@body.json)", 0..10),
    ) {
        if let Ok(text) = curl(&format!("curl {}", words.join(" ")), &no_files) {
            load(&text);
        }
    }

    #[test]
    fn any_text_is_survived(text in ".*") {
        let _ = curl(&text, &no_files);
        let _ = har(&text, &HarOptions::default());
        let _ = openapi(&text);
    }

    #[test]
    fn whatever_har_import_accepts_loads(
        request in any_json(HAR_WORDS),
        url in "https?://h(/[a-z{} \"'?&=#%é]{0,12})?",
        method in "(GET|POST|get|a b)",
        header in "(cookie|x-a|host|:a|A b)",
        value in ".{0,8}",
    ) {
        let mut entry = serde_json::json!({"request": {"url": url, "method": method, "headers": [{"name": header, "value": value}], "postData": {"mimeType": value, "text": value}}});
        if let (Some(there), Some(more)) = (entry["request"].as_object_mut(), request.as_object()) {
            there.extend(more.clone());
        }
        let text = serde_json::json!({"log": {"entries": [entry, {"request": request}]}}).to_string();
        if let Ok(text) = har(&text, &HarOptions { static_assets: true }) {
            load(&text);
        }
    }

    #[test]
    fn whatever_openapi_import_accepts_loads(item in any_json(API_WORDS), operation in any_json(API_WORDS), path in "/?[a-z{}#? é]{0,10}") {
        let document = serde_json::json!({"openapi": "3.0.1", "servers": [item], "paths": {path: item, "/a": {"get": operation, "post": {"requestBody": {"content": {"application/json": {"schema": operation}}}, "parameters": [{"name": "q", "in": "query", "required": true, "schema": operation}, {"name": "h", "in": "header", "required": true, "schema": item}]}}}, "components": item});
        if let Ok(text) = openapi(&document.to_string()) {
            load(&text);
        }
    }
}
