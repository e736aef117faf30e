//! What authors get wrong, and what they are told.

use super::*;
use proptest::prelude::*;

fn error(text: &str) -> String {
    match parse(text) {
        Err(error) => error.to_string(),
        Ok(scenario) => panic!("{text} was taken: {scenario:?}"),
    }
}

#[test]
fn every_mistake_names_file_line_and_place() {
    for (text, expected) in [
        ("a = ", "folder/test.toml:1: not valid TOML"),
        ("name = \"a\"\n", "folder/test.toml: expected 1 to 1000 steps"),
        (
            "nmae = \"a\"\n[[step]]\npath = \"/\"\n",
            "test.toml:1: unknown key \"nmae\"; did you mean \"name\"? Known here: base, data, description",
        ),
        ("[[step]]\nname = \"a\"\n", "test.toml:1: step \"a\": the path is missing"),
        (
            "[[step]]\npath = \"/\"\nwieght = 1\n",
            "test.toml:3: step 1: unknown key \"wieght\"; did you mean \"weight\"?",
        ),
        ("[[step]]\npath = \"x\"\n", "step 1, path: expected a path that begins with \"/\""),
        ("[[step]]\npath = \"/a b\"\n", "must be percent-encoded (%20)"),
        ("[[step]]\npath = \"http://h/\"\n", "all measured requests go to one server"),
        (
            "[[step]]\nname = \"s\"\npath = \"/{{cod}}\"\ncapture = {code = \"/c\"}\n",
            "step \"s\", path: unknown placeholder {{cod}}; did you mean {{code}}?",
        ),
        ("[[step]]\nname = \"s\"\npath = \"/{{a\"\n", "step \"s\", path: \"{{\" is never closed"),
        (
            "[[step]]\npath = \"/\"\nheaders = {Host = \"x\"}\n",
            "headers \"Host\": the header \"host\" cannot be set",
        ),
        ("[[step]]\npath = \"/\"\nheaders = {a = \"x\\ny\"}\n", "control character '\\n'"),
        (
            "[[step]]\npath = \"/\"\nheaders = {a = \"{{nope}}\"}\n",
            "test.toml:3: step 1, headers \"a\": unknown placeholder {{nope}}",
        ),
        ("[[step]]\npath = \"/\"\nmethod = \"GET /\"\n", "method: expected a method"),
        ("[[step]]\npath = \"/\"\njson = \"{\"\n", "test.toml:3: step 1, json: not valid JSON"),
        ("[[step]]\npath = \"/\"\njson = {a = nan}\n", "JSON has no NaN"),
        ("[[step]]\npath = \"/\"\njson = 1\nbody = \"x\"\n", "at most one of json, form, body"),
        ("[[step]]\npath = \"/\"\nbody_file = \"no.bin\"\n", "folder/no.bin"),
        (
            "[[step]]\npath = \"/\"\nexpect = {status = 99}\n",
            "step 1, expect, status: expected statuses like 201",
        ),
        ("[[step]]\npath = \"/\"\nexpect = {statsu = 200}\n", "did you mean \"status\"?"),
        ("[[step]]\npath = \"/\"\nexpect = {json = {a = 1}}\n", "expected a JSON Pointer"),
        (
            "[[step]]\npath = \"/\"\nexpect = {json = {\"/a\" = {startswith = \"x\"}}}\n",
            "expect, json \"/a\": unknown key \"startswith\"; did you mean \"starts_with\"?",
        ),
        (
            "[[step]]\npath = \"/\"\nexpect = {json = {\"/a\" = {type = \"int\"}}}\n",
            "expected type to be one of string, number",
        ),
        ("[[step]]\npath = \"/\"\nexpect = {json = {\"/a\" = {}}}\n", "nothing is tested"),
        (
            "[[step]]\npath = \"/\"\nexpect = {body_contains = \"{{counter}}\"}\n",
            "only [vars] can be used",
        ),
        ("[[step]]\npath = \"/\"\ncapture = {c = 1}\n", "capture \"c\": expected a JSON Pointer"),
        ("[[step]]\npath = \"/\"\ncapture = {c = {}}\n", "expected where to find it"),
        ("[[step]]\npath = \"/\"\ncapture = {uuid = \"/a\"}\n", "{{uuid}} is built in"),
        (
            "[[step]]\npath = \"/\"\ncapture = {c = {json = \"/a\", keep = 0}}\n",
            "how many to keep (1 to 1000000)",
        ),
        (
            "[vars]\nc = 1\n[[step]]\npath = \"/\"\ncapture = {c = \"/a\"}\n",
            "is a variable in [vars] already",
        ),
        (
            "[[step]]\nname = \"a\"\npath = \"/\"\ncapture = {c = \"/a\"}\n[[step]]\nname = \"b\"\npath = \"/\"\ncapture = {c = {json = \"/a\", keep = true}}\n",
            "expected the same `keep` in both",
        ),
        (
            "[[step]]\npath = \"/\"\nrequires = [\"c\"]\n",
            "\"c\" is not captured by any step. Captured are: nothing",
        ),
        (
            "[[step]]\npath = \"/\"\n[[step.request]]\npath = \"/\"\n",
            "a step is one request (with a path) or a flow",
        ),
        (
            "[[step]]\nname = \"f\"\n[[step.request]]\npaht = \"/\"\n",
            "test.toml:3: step \"f\", request 1: the path is missing",
        ),
        (
            "[[step]]\npath = \"/\"\n[[step]]\npath = \"/\"\n",
            "two measured requests are called \"GET /\"",
        ),
        (
            "[data.u]\nfile = \"no.csv\"\n[[step]]\npath = \"/\"\n",
            "test.toml:1: data.u: folder/no.csv",
        ),
        (
            "[data.u]\nfile = \"no.csv\"\norder = \"any\"\n[[step]]\npath = \"/\"\n",
            "order to be one of sequential, random, once, user",
        ),
        ("think = \"5\"\n[[step]]\npath = \"/\"\n", "test.toml:1: think: expected a duration"),
        ("base = \"h:1\"\n[[step]]\npath = \"/\"\n", "test.toml:1: base: expected a URL"),
        ("base = \"http://u:p@h\"\n[[step]]\npath = \"/\"\n", "expected a host and perhaps a port"),
        ("base = \"http://h/api\"\n[[step]]\npath = \"/\"\n", "\"/api\" belongs into the paths"),
        (
            "[load]\nusers = 0\n[[step]]\npath = \"/\"\n",
            "load, users: expected a whole number from 1",
        ),
        ("[load]\nrate = -1\n[[step]]\npath = \"/\"\n", "load, rate: expected a number above 0"),
        ("[vars]\na = []\n[[step]]\npath = \"/\"\n", "vars.a: expected a text, a number"),
        ("[vars]\nuser = 1\n[[step]]\npath = \"/\"\n", "{{user}} is built in"),
        (
            "[[setup]]\npath = \"/{{code}}\"\n[[step]]\npath = \"/\"\ncapture = {code = \"/c\"}\n",
            "setup 1, path: {{code}} is captured while measuring",
        ),
        (
            "[[teardown]]\npath = \"/\"\ncapture = {code = \"/c\"}\n[[step]]\npath = \"/\"\n",
            "nothing follows that could use",
        ),
        (
            "[login]\npath = \"/t\"\ntoken = \"x\"\n[[step]]\npath = \"/\"\n",
            "login, token: expected a JSON Pointer",
        ),
        ("step = 1\n", "step: expected a list of tables, written [[step]]"),
        ("step = [1]\n", "step 1: expected a table, found the number 1"),
    ] {
        let found = error(text);
        assert!(found.contains(expected), "{text}\n  said: {found}\n  not:  {expected}");
        assert!(found.starts_with("folder/test.toml"), "{found}");
    }
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no.toml");
    let error = Scenario::load(&missing).unwrap_err();
    assert_eq!(error.file.as_deref(), Some(missing.as_path()));
    std::fs::write(&missing, b"\xff\xfe").unwrap();
    assert!(Scenario::load(&missing).unwrap_err().message.contains("not UTF-8"));
    assert!(Scenario::load(folder.path()).unwrap_err().message.contains("not a file"));
}

#[test]
fn all_weights_zero_is_said_when_something_should_be_sent() {
    let scenario = parse("[[step]]\npath = \"/\"\nweight = 0\n").unwrap();
    let error = scenario.source(&SetupValues::default(), clock).unwrap_err();
    assert!(error.message.contains("every step has weight 0"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z\\[\\]{}=\"'/\n .,0-9:|]{0,120}") {
        let _ = parse(&text);
    }

    #[test]
    fn any_step_is_read_and_run_or_refused(
        path in "(/|\\{\\{|\\}\\}|[a-z:.0-9|']){0,12}",
        body in ".{0,30}",
        key in "(json|body|form|expect|capture|let|requires|query|headers)",
        value in "(\".{0,12}\"|\\{[a-z]{1,8} = \"[/{}a-z:]{0,10}\"\\}|[0-9]{1,3}|\\[\\])",
    ) {
        let quoted = toml::Value::String(body).to_string();
        let text = format!("[[step]]\npath = '{}'\n{key} = {value}\nmethod = \"POST\"\nbody = {quoted}\n", path.replace('\'', ""));
        if let Ok(scenario) = parse(&text)
            && let Ok(source) = scenario.source(&SetupValues::default(), clock)
        {
            let mut workload = source.workload(0, 1, 1);
            for user in 0..3 {
                next(&mut *workload, user);
                answer(&mut *workload, user, 200, &[], "{\"a\":1}");
            }
        }
    }
}
