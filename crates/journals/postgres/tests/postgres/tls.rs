//! Connections are encrypted, and only to the intended server.

use crate::reader::Reader;
use crate::server::own_server;
use wellspring_journal_postgres::{ConnectError, ConnectOptions, PostgresNode, Retry};

fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn refused(url: &str) -> (String, Retry) {
    let options = ConnectOptions::parse(url).unwrap();
    let error = PostgresNode::connect(options).err().expect("refused");
    assert!(matches!(error, ConnectError::Server { .. }), "{error}");
    (error.to_string(), error.retry())
}

#[test]
fn a_server_is_believed_by_its_certificate_alone() {
    let Some(server) = own_server("tls::a_server_is_believed_by_its_certificate_alone", &[]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (certificate_pem, key) = certificate();
    let right = file("right.pem", &certificate_pem);
    let wrong = file("wrong.pem", &certificate().0);
    let url = server.url.replace("127.0.0.1", "localhost");
    let with = |url: &str, root: &str| format!("{url}?sslmode=verify-full&sslrootcert={root}");
    let (said, retry) = refused(&with(&url, &right));
    assert_eq!(retry, Retry::DoesNot, "{said}");
    assert!(said.to_lowercase().contains("tls"), "a server without encryption: {said}");
    server.put("server.crt", &certificate_pem);
    server.put("server.key", &key);
    server.sql("ALTER SYSTEM SET ssl = on");
    server.sql("SELECT pg_reload_conf()");
    server.wait_for("SHOW ssl", "on");
    let (said, retry) = refused(&with(&url, &wrong));
    assert_eq!(retry, Retry::MayHelp, "{said}");
    assert!(said.contains("certificate"), "{said}");
    let (said, _) = refused(&with(&server.url, &right));
    assert!(said.contains("certificate"), "for another name: {said}");
    let node = PostgresNode::connect(ConnectOptions::parse(&with(&url, &right)).unwrap()).unwrap();
    Reader::of(&node, "main").append(&vec![5; 1 << 20]);
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
         WHERE ssl AND application_name LIKE 'wellspring %'";
    assert_eq!(server.sql(encrypted), "5");
    drop(node);
    server.down();
}
