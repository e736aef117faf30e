use super::*;

fn parsed(text: &str) -> ConnectOptions {
    ConnectOptions::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    match ConnectOptions::parse(text) {
        Err(error) => error.to_string(),
        Ok(options) => panic!("{text} was taken as {options}"),
    }
}

#[test]
fn a_url_names_user_server_and_database() {
    let options =
        parsed("postgres://ann:p%40ss%25@127.0.0.1:6000,[::1]/events?schema=ws&connect_timeout=9");
    assert_eq!(options.user, "ann");
    assert_eq!(options.password, Some(Password::new(b"p@ss%".to_vec())));
    assert_eq!(options.hosts[0], Host { name: "127.0.0.1".into(), port: 6000 });
    assert_eq!(options.hosts[1], Host { name: "::1".into(), port: 5432 });
    assert_eq!((options.database.as_str(), options.schema.as_str()), ("events", "ws"));
    assert_eq!((options.tls, options.connect_timeout), (Tls::Off, Duration::from_secs(9)));
    let socket = parsed("postgresql://ann@%2Fvar%2Frun%2Fpostgresql/events");
    assert_eq!(socket.hosts[0].name, "/var/run/postgresql");
}

#[test]
fn beyond_this_machine_a_connection_is_encrypted_or_refused() {
    let tls = parsed("postgres://ann@db.example/events").tls;
    assert_eq!(tls, Tls::VerifyFull { authorities: None });
    let own =
        parsed("postgres://ann@db.example/events?sslmode=verify-full&sslrootcert=/ca.pem").tls;
    assert_eq!(own, Tls::VerifyFull { authorities: Some("/ca.pem".into()) });
    assert!(refused("postgres://ann@db.example/events?sslmode=disable").contains("verify-full"));
    assert!(refused("postgres://ann@db.example/e?sslmode=require").contains("verify-full"));
    assert!(refused("postgres://ann@127.0.0.1/e?sslrootcert=/ca.pem").contains("sslmode"));
    // One remote host among several is enough.
    assert!(refused("postgres://a@127.0.0.1,10.0.0.1/e?sslmode=disable").contains("10.0.0.1"));
}

#[test]
fn what_is_wrong_is_named_and_the_password_is_not() {
    let wrong = [
        ("mysql://a:s3cret@h/d", "postgres://"),
        ("postgres://a:s3cret@h", "database"),
        ("postgres://a:s3cret@h/", "database"),
        ("postgres://localhost/d", "user"),
        ("postgres://:s3cret@h/d", "user"),
        ("postgres://a:s3c@ret@h/d", "%40"),
        ("postgres://a:s3c/ret@h/d", ""),
        ("postgres://a:s3c#ret@h/d", "%23"),
        ("postgres://a:s3c%ret@h/d", "%25"),
        ("postgres://a:s3cret@h:0/d", "port"),
        ("postgres://a:s3cret@h:x/d", "port"),
        ("postgres://a:s3cret@/d", "host"),
        ("postgres://a:s3cret@[::g]/d", "IPv6"),
        ("postgres://a:s3cret@h/d?shcema=x", "shcema"),
        ("postgres://a:s3cret@h/d?schema=x&schema=y", "twice"),
        ("postgres://a:s3cret@h/d?schema=X", "schema"),
        ("postgres://a:s3cret@h/d?schema=pg_x", "schema"),
        ("postgres://a@h/d?password=s3cret", "before the @"),
        ("postgres://a:s3cret@h/d?connect_timeout=0", "connect_timeout"),
    ];
    for (url, names) in wrong {
        let said = refused(url);
        assert!(said.contains(names), "{url}: {said}");
        assert!(!said.contains("s3c") && !said.contains("ret@"), "{url}: {said}");
    }
}

#[test]
fn a_password_is_never_shown() {
    let options = parsed("postgres://ann:s3cret@127.0.0.1/d");
    assert!(!format!("{options} {options:?} {options:#?}").contains("s3cret"));
    assert_eq!(options.to_string(), "postgres://ann@127.0.0.1:5432/d?schema=wellspring");
}

#[test]
fn a_password_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password");
    let options = parsed("postgres://ann@127.0.0.1/d");
    let open = |mode, text: &str| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        options.clone().with_password_file(&path)
    };
    assert!(open(0o644, "s3cret\n").unwrap_err().to_string().contains("chmod 600"));
    assert!(open(0o600, "\n").unwrap_err().to_string().contains("empty"));
    let options = open(0o600, "s3cret\n").unwrap();
    assert_eq!(options.password, Some(Password::new(b"s3cret".to_vec())));
}
