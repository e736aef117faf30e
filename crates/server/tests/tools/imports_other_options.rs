//! `wellspring import` of content that the log already has, under other options.

use crate::program::{ProgramOutput, program};
use crate::server::Server;
use std::path::{Path, PathBuf};

/// A machine that remembers its imports, and a folder for files.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        Machine { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn import(&self, server: &Server, file: &Path, more: &[&str]) -> ProgramOutput {
        let url = server.url();
        let words = [&["import", file.to_str().unwrap(), "--url", &url], more].concat();
        let state = self.dir.path().join("state");
        ProgramOutput::of(program(&words).env("XDG_STATE_HOME", state).output().unwrap())
    }
}

fn head(server: &Server) -> u64 {
    server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap()
}

const ROWS: &str = "order,customer\n1,ann\n2,bob\n3,ann\n";

#[test]
fn the_same_rows_under_another_tag_are_refused_before_anything_is_added() {
    let (machine, server) = (Machine::new(), Server::start());
    let file = machine.file("orders.csv", ROWS);
    let first = machine.import(&server, &file, &["--type", "Placed", "--tag", "order"]);
    assert!(first.err.contains("3 added"), "{first:?}");
    let known = "only with the same options: --format csv --type Placed --tag order";
    assert!(first.err.contains(known), "{first:?}");
    first.done();
    let grown = machine.file("grown.csv", &format!("{ROWS}4,cid\n"));
    for (file, more) in [
        (&file, &["--type", "Placed", "--tag", "customer"][..]),
        (&file, &["--type", "Placed"]),
        (&file, &["--type", "Ordered", "--tag", "order"]),
        (&file, &["--type-column", "customer", "--tag", "order"]),
        (&file, &["--type", "Placed", "--tag", "order", "--null", "ann"]),
        (&file, &["--type", "Placed", "--tag", "order", "--ids", "uuid5"]),
        (&grown, &["--type", "Placed", "--tag", "customer"]),
    ] {
        let refused = machine.import(&server, file, more);
        assert!(
            refused.err.contains("then: --format csv --type Placed --tag order\n"),
            "{refused:?}"
        );
        refused.failed(1, "--again LABEL");
        assert_eq!(head(&server), 3, "{more:?}");
    }
    // The same options: recognized, and new content is added.
    let same = ["--type", "Placed", "--tag", "order"];
    assert!(machine.import(&server, &file, &same).err.contains("3 known"));
    assert!(machine.import(&server, &grown, &same).err.contains("1 added, 3 known"));
    assert_eq!(head(&server), 4);
    // Both, intentionally: once, however often it is repeated.
    let both = ["--type", "Placed", "--tag", "customer", "--again", "by customer"];
    assert!(machine.import(&server, &file, &both).err.contains("3 added"));
    assert!(machine.import(&server, &file, &both).err.contains("3 known"));
    assert!(machine.import(&server, &grown, &same).err.contains("4 known"));
    assert_eq!(head(&server), 7);
}

#[test]
fn another_log_another_server_and_another_file_are_not_meant() {
    let (machine, server) = (Machine::new(), Server::start());
    let file = machine.file("orders.csv", ROWS);
    machine.import(&server, &file, &["--type", "A"]).done();
    let put = server.client().call("PUT", "/v1/logs/other", &[], b"").unwrap();
    assert_eq!(put.status, 201, "{}", put.text());
    machine.import(&server, &file, &["--type", "B", "--log", "other"]).done();
    let other = Server::start();
    machine.import(&other, &file, &["--type", "B"]).done();
    let file = machine.file("customers.csv", "order,customer\n1,bob\n");
    machine.import(&server, &file, &["--type", "B"]).done();
    // A recreated log has nothing of what is remembered.
    let drop = server.client().call("DELETE", "/v1/logs/other?confirm=other", &[], b"").unwrap();
    assert!(drop.status < 300, "{}", drop.text());
    let put = server.client().call("PUT", "/v1/logs/other", &[], b"").unwrap();
    assert_eq!(put.status, 201, "{}", put.text());
    let file = machine.file("orders.csv", ROWS);
    machine.import(&server, &file, &["--type", "C", "--log", "other"]).done();
    machine.import(&server, &file, &["--type", "B", "--log", "other"]).failed(1, "--type C");
}

#[test]
fn a_file_without_events_and_one_that_is_no_gzip_say_so() {
    let (machine, server) = (Machine::new(), Server::start());
    for (name, text, more) in [
        ("a.ndjson", "", &[][..]),
        ("b.ndjson", "\n\n", &[]),
        ("c.csv", "a,b\n", &["--type", "T"]),
        ("d.cloudevents", "[]", &[]),
    ] {
        let ran = machine.import(&server, &machine.file(name, text), more);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("Imported nothing: ") && ran.err.contains(name), "{ran:?}");
    }
    for (text, why) in [
        ("", "a.ndjson.gz is empty (0 bytes)"),
        ("{\"type\":\"T\",\"data\":1}\n", "is not a gzip file although its name ends in .gz"),
    ] {
        let file = machine.file("a.ndjson.gz", text);
        machine.import(&server, &file, &[]).failed(65, why);
    }
}

#[test]
fn an_id_that_is_taken_is_told_with_its_line() {
    let (machine, server) = (Machine::new(), Server::start());
    let id = "018f5c3e-9b2a-7c11-8d3e-0123456789ab";
    let url = server.url();
    let words = ["append", "--url", &url, "--type", "T", "--id", id];
    ProgramOutput::of(program(&words).output().unwrap()).done();
    let lines = "{\"type\":\"T\",\"data\":1}\n".repeat(2);
    let text = format!("{lines}\n{{\"type\":\"U\",\"data\":{{}},\"id\":\"{id}\"}}\n{lines}");
    let ran = machine.import(&server, &machine.file("a.ndjson", &text), &[]);
    assert!(ran.err.contains("the event at position 1 has its id"), "{ran:?}");
    ran.failed(1, "a.ndjson, line 4: ");
    // The output of export, imported into the log it came from.
    let rows = format!(
        "{{\"type\":\"T\",\"data\":{{}},\"id\":\"{id}\"}}\n{{\"type\":\"U\",\"data\":2}}\n"
    );
    let ran = machine.import(&server, &machine.file("b.ndjson", &rows), &[]);
    assert!(ran.err.contains("1 added, 1 repeated event dropped"), "{ran:?}");
    ran.done();
}
