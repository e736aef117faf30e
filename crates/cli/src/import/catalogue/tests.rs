use super::super::run::run_to;
use super::*;
use clap::Parser;
use std::sync::{Arc, Mutex};
use wellspring_client::test_server::{Reply, TestServer};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ImportArgs,
}

fn import(words: &[&str]) -> Result<String, Failure> {
    let line = [&["x"], words].concat();
    let line = Line::try_parse_from(line).map_err(|error| Failure::usage(error.to_string()))?;
    let mut out = Vec::new();
    run_to(&line.args, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn rows_become_items_by_their_columns_and_templates() {
    let dir = tempfile::tempdir().unwrap();
    let diamonds = file(&dir, "a.csv", "carat,cut,price\n0.23,Ideal,326\n");
    let fields = ["sku=d-{#}", "name={carat} ct {cut}", "topic={cut}", "stock=01"];
    let mut words = vec!["--preset", "items", "--dry-run", &diamonds];
    fields.iter().for_each(|field| words.extend(["--field", field]));
    let first = r#"{"sku":"d-1","name":"0.23 ct Ideal","topic":"Ideal","stock":1,"price":"326"}"#;
    assert_eq!(import(&words).unwrap(), format!("{first}\n"));
}

#[test]
fn the_bookstore_has_four_books() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&sent);
    let server = TestServer::start(move |request, _| {
        noted.lock().unwrap().extend_from_slice(&request.body);
        Reply::json(200, r#"{"lines":4,"added":4,"changed":0,"unchanged":0}"#)
    });
    import(&["--preset", "bookstore", "--url", server.url()]).unwrap();
    assert_eq!(*sent.lock().unwrap(), BOOKS.as_bytes());
    let dir = tempfile::tempdir().unwrap();
    let some = file(&dir, "a.ndjson", "{}");
    assert_eq!(import(&["--preset", "bookstore", &some]).unwrap_err().code, Code::Usage);
    assert_eq!(import(&["--preset", "items"]).unwrap_err().code, Code::Usage);
}

#[test]
fn what_is_wrong_names_the_line_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let rows = file(&dir, "a.csv", "sku,name,topic,price\n\na,b,c,1\n\nd,e,f,x\n");
    let server = TestServer::start(|_, _| {
        let line = r#"{"type":"/problems/invalid","title":"t","status":422,"line":2,"detail":"line 2: price is wrong","retry":"no"}"#;
        Reply::json(422, line)
    });
    let failure = import(&["--preset", "items", "--url", server.url(), &rows]).unwrap_err();
    assert_eq!(failure.code, Code::Data);
    assert!(failure.message.contains("line 5: price is wrong"), "{}", failure.message);
    let short = file(&dir, "b.csv", "sku,name,topic,price\na,b\n");
    let failure = import(&["--preset", "items", "--dry-run", &short]).unwrap_err();
    let says = "line 2: the row has 2 cells, the header 4";
    assert!(failure.message.contains(says), "{}", failure.message);
}

#[test]
fn an_interrupted_batch_goes_on_with_the_lines_that_are_left() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&sent);
    let server = TestServer::start(move |request, _| {
        let lines = request.body.split(|byte| *byte == b'\n').count() - 1;
        let mut sent = noted.lock().unwrap();
        sent.push(lines);
        match sent.len() {
            1 => Reply::json(
                500,
                r#"{"type":"/problems/interrupted","detail":"d","durable_lines":3,"added":3,"retry":"no"}"#,
            ),
            _ => Reply::json(200, r#"{"lines":1,"added":1,"changed":0,"unchanged":0}"#),
        }
    });
    import(&["--preset", "bookstore", "--url", server.url()]).unwrap();
    assert_eq!(*sent.lock().unwrap(), [4, 1]);
}

#[test]
fn fields_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let rows = file(&dir, "a.csv", "title,price\nb,1\n");
    for (fields, says) in [
        (&[][..], "there is no column sku"),
        (&["sku={nr}"], "there is no column nr"),
        (&["colour=red"], "an item has no field colour"),
        (&["sku={#"], "not closed"),
        (&["sku"], "NAME=TEMPLATE"),
        (&["sku=a", "sku=b"], "twice"),
        (&["sku={#}", "name={title}"], "there is no column topic"),
    ] {
        let mut words = vec!["--preset", "items", "--dry-run", &rows];
        fields.iter().for_each(|field| words.extend(["--field", field]));
        let failure = import(&words).unwrap_err();
        assert!(failure.message.contains(says), "{fields:?}: {}", failure.message);
        assert_eq!(failure.code, Code::Usage);
    }
    let lines = file(&dir, "a.ndjson", "{}\n");
    let failure = import(&["--preset", "items", "--field", "sku=a", &lines]).unwrap_err();
    assert!(failure.message.contains("--field is for CSV"), "{}", failure.message);
}
