//! The tables are created once, and only supported ones are used.

use crate::reader::Reader;
use crate::server::{new_log, own_server};
use wellspring_journal_postgres::{ConnectError, ConnectOptions, Durability, PostgresNode, Retry};
use wellspring_patience::Patience;

#[test]
fn nodes_that_start_together_make_the_tables_once_and_newer_ones_are_refused() {
    let Some(server) = own_server("tables::nodes_that_start_together", &[]) else { return };
    let options = ConnectOptions { schema: "apart".into(), ..server.options() };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| PostgresNode::connect(options.clone()).expect("made once"));
        }
    });
    let node = PostgresNode::connect(options.clone()).expect("they are there");
    assert_eq!(node.durability().durability(), Durability::OneServer);
    assert!(node.durability().to_string().contains("survives a power loss"));
    assert!(node.durability().server_version.starts_with(|c: char| c.is_ascii_digit()));
    Reader::of(&node, &new_log("apart")).append(b"x");
    assert_eq!(server.sql("SELECT count(*) FROM apart.ws_entry"), "1");
    server.sql("UPDATE apart.ws_meta SET value = '2' WHERE key = 'schema_version'");
    let error = PostgresNode::connect(options).err().expect("refused");
    assert!(
        matches!(&error, ConnectError::Schema(said) if said.contains("version 2") && said.contains("newer program")),
        "{error}"
    );
    drop(node);
    server.down();
}

#[test]
fn a_user_without_rights_or_password_is_told_and_no_password_is_shown() {
    let Some(server) = own_server("tables::a_user_without_rights", &[]) else { return };
    server.sql("CREATE USER guest PASSWORD 's3cret'");
    let url = server.url.replace("postgres@", "guest:s3cret@");
    let error = PostgresNode::connect(ConnectOptions::parse(&url).unwrap()).err().expect("refused");
    let said = format!("{error} {error:?}");
    assert!(said.contains("AUTHORIZATION") && !said.contains("s3cret"), "{said}");
    // With its own schema it needs no further privileges.
    server.sql("CREATE SCHEMA wellspring AUTHORIZATION guest");
    let hba = server.sql("SHOW hba_file");
    let lines = std::fs::read_to_string(&hba).unwrap();
    std::fs::write(&hba, lines.replace("trust", "scram-sha-256")).unwrap();
    let reloaded = format!("{}?connect_timeout=2", server.url);
    std::process::Command::new("psql")
        .args(["-qX", &server.url, "-c", "SELECT pg_reload_conf()"])
        .output()
        .unwrap();
    let mut patience = Patience::new();
    let error = loop {
        let connected = PostgresNode::connect(ConnectOptions::parse(&reloaded).unwrap());
        if let Err(error) = connected {
            break error;
        }
        patience.pause("the server loads its file again");
    };
    assert!(matches!(error, ConnectError::Server { .. }), "{error}");
    assert_eq!(error.retry(), Retry::DoesNot, "a password is missing");
    let wrong = url.replace("s3cret", "wr0ng");
    let error =
        PostgresNode::connect(ConnectOptions::parse(&wrong).unwrap()).err().expect("refused");
    assert_eq!(error.retry(), Retry::DoesNot, "{error}");
    let said = format!("{error} {error:?}");
    assert!(said.contains("password") && !said.contains("wr0ng"), "{said}");
    let node = PostgresNode::connect(ConnectOptions::parse(&url).unwrap()).expect("let in");
    Reader::of(&node, &new_log("guest")).append(b"x");
    assert!(!format!("{:?}", node.status()).contains("s3cret"));
    drop(node);
    server.down();
    let gone = PostgresNode::connect(ConnectOptions::parse(&url).unwrap()).err();
    assert_eq!(gone.expect("nothing listens").retry(), Retry::MayHelp);
}
