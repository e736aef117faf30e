use super::*;
use crate::message::{AccessMode, NotificationSeverity};
use crate::packstream::Writer;

fn version(major: u8, minor: u8) -> Version {
    Version::new(major, minor).expect("served")
}

fn message(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    out
}

fn with_map(tag: u8, entries: usize, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    message(|writer| {
        writer.structure(tag, 1);
        writer.map(entries);
        write(writer);
    })
}

fn texts(writer: &mut Writer<'_>, entries: &[(&str, &str)]) {
    for (key, value) in entries {
        writer.text(key);
        writer.text(value);
    }
}

fn invalid(message: Vec<u8>) -> &'static str {
    match Request::parse(message, version(5, 8)) {
        Err(RequestFault::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

/// A greeting with everything that some version has.
fn greeting() -> Vec<u8> {
    with_map(tag::HELLO, 7, |writer| {
        texts(writer, &[("user_agent", "test/1"), ("scheme", "basic")]);
        texts(writer, &[("principal", "ann"), ("credentials", "secret")]);
        writer.text("routing");
        writer.map(2);
        texts(writer, &[("address", "db.example:7687"), ("policy", "x")]);
        writer.text("patch_bolt");
        writer.list(1);
        writer.text("utc");
        writer.text("bolt_agent");
        writer.map(2);
        texts(writer, &[("platform", "Linux"), ("product", "test-driver/1")]);
    })
}

#[test]
fn credentials_are_in_the_greeting_until_5_0() {
    for (minor, has_auth) in [(0, true), (1, false), (8, false)] {
        let Ok(Request::Hello(hello)) = Request::parse(greeting(), version(5, minor)) else {
            panic!("no greeting")
        };
        let auth = Auth {
            scheme: "basic".to_owned(),
            principal: "ann".to_owned(),
            credentials: "secret".to_owned(),
        };
        assert_eq!(hello.auth, has_auth.then_some(auth));
        assert_eq!(hello.user_agent, "test/1");
        assert_eq!(hello.bolt_agent.as_deref(), Some("test-driver/1"));
        let address = hello.routing.as_ref().and_then(|routing| routing.address.as_deref());
        assert_eq!(address, Some("db.example:7687"));
        assert!(hello.wants_utc);
        assert!(!format!("{hello:?}").contains("secret"));
    }
}

#[test]
fn a_greeting_without_a_scheme_is_that_of_a_client_without_credentials() {
    let bare = with_map(tag::HELLO, 1, |writer| {
        writer.text("routing");
        writer.null();
    });
    let Ok(Request::Hello(hello)) = Request::parse(bare, version(4, 4)) else {
        panic!("no greeting")
    };
    assert_eq!(hello.auth.map(|auth| auth.scheme).as_deref(), Some("none"));
    assert_eq!(hello.routing, None);
}

#[test]
fn a_statement_comes_with_its_parameters_as_they_are() {
    let run = message(|writer| {
        writer.structure(tag::RUN, 3);
        writer.text("RETURN $n");
        writer.map(1);
        writer.text("n");
        writer.int(1_000);
        writer.map(9);
        texts(writer, &[("mode", "r"), ("db", "main"), ("imp_user", "bob"), ("unknown", "x")]);
        writer.text("tx_timeout");
        writer.int(1_500);
        writer.text("bookmarks");
        writer.list(2);
        writer.text("FB:main:1");
        writer.text("FB:main:2");
        writer.text("tx_metadata");
        writer.map(1);
        texts(writer, &[("app", "x")]);
        texts(writer, &[("notifications_minimum_severity", "WARNING")]);
        writer.text("notifications_disabled_classifications");
        writer.list(1);
        writer.text("HINT");
    });
    let Ok(Request::Run(run)) = Request::parse(run, version(5, 8)) else { panic!("no statement") };
    assert_eq!(run.text, "RETURN $n");
    assert_eq!(run.parameters.as_bytes(), [0xA1, 0x81, b'n', 0xC9, 0x03, 0xE8]);
    let settings = run.settings;
    assert_eq!((settings.mode, settings.db.as_deref()), (AccessMode::Read, Some("main")));
    assert_eq!(settings.imp_user.as_deref(), Some("bob"));
    assert_eq!(settings.timeout_ms, Some(1_500));
    assert_eq!(settings.bookmarks.iter().collect::<Vec<_>>(), ["FB:main:1", "FB:main:2"]);
    assert_eq!(settings.metadata.as_bytes().len(), 7);
    assert_eq!(settings.notifications.minimum, Some(NotificationSeverity::Warning));
    let disabled = settings.notifications.disabled.expect("some");
    assert_eq!(disabled.iter().collect::<Vec<_>>(), ["HINT"]);
}

#[test]
fn null_stands_for_what_is_left_out() {
    let run = message(|writer| {
        writer.structure(tag::RUN, 3);
        writer.text("RETURN 1");
        writer.null();
        writer.map(4);
        for key in ["db", "bookmarks", "tx_timeout", "tx_metadata"] {
            writer.text(key);
            writer.null();
        }
    });
    let Ok(Request::Run(run)) = Request::parse(run, version(4, 4)) else { panic!("no statement") };
    assert_eq!(run.parameters.as_bytes(), [0xA0]);
    assert_eq!(run.settings, TransactionSettings::default());
}

#[test]
fn a_member_of_a_wrong_type_is_named() {
    let begin = |key: &'static str, write: fn(&mut Writer<'_>)| {
        with_map(tag::BEGIN, 1, |writer| {
            writer.text(key);
            write(writer);
        })
    };
    assert_eq!(invalid(begin("mode", |writer| writer.text("x"))), "mode");
    assert_eq!(invalid(begin("db", |writer| writer.int(1))), "db");
    assert_eq!(invalid(begin("tx_timeout", |writer| writer.int(-1))), "tx_timeout");
    assert_eq!(invalid(begin("bookmarks", |writer| writer.text("x"))), "bookmarks");
    let with_a_number = begin("bookmarks", |writer| {
        writer.list(1);
        writer.int(1);
    });
    assert_eq!(invalid(with_a_number), "bookmarks");
    let large = begin("tx_metadata", |writer| {
        writer.map(1);
        writer.text("x");
        writer.text(&"x".repeat(17 << 10));
    });
    assert_eq!(invalid(large), "tx_metadata");
    assert_eq!(
        invalid(message(|writer| {
            writer.structure(tag::RUN, 3);
            writer.text("RETURN 1");
            writer.list(0);
            writer.map(0);
        })),
        "parameters"
    );
}

#[test]
fn an_amount_is_all_or_at_least_one() {
    let pull = |n: i64, qid: Option<i64>| {
        with_map(tag::PULL, 1 + usize::from(qid.is_some()), |writer| {
            writer.text("n");
            writer.int(n);
            if let Some(qid) = qid {
                writer.text("qid");
                writer.int(qid);
            }
        })
    };
    let read = |message| match Request::parse(message, version(5, 0)) {
        Ok(Request::Pull(Fetch { amount, qid })) => (amount, qid),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(pull(-1, None)), (FetchAmount::All, -1));
    assert_eq!(read(pull(1_000, Some(3))), (FetchAmount::Rows(1_000), 3));
    assert_eq!(invalid(pull(0, None)), "n");
    assert_eq!(invalid(pull(-2, None)), "n");
    assert_eq!(invalid(pull(1, Some(-2))), "qid");
    assert_eq!(invalid(with_map(tag::DISCARD, 0, |_| {})), "n");
}

#[test]
fn messages_of_later_versions_are_unknown() {
    let logoff = message(|writer| writer.structure(tag::LOGOFF, 0));
    let telemetry = message(|writer| {
        writer.structure(tag::TELEMETRY, 1);
        writer.int(2);
    });
    let unknown = |message: &Vec<u8>, minor| {
        let parsed = Request::parse(message.clone(), version(5, minor));
        matches!(parsed, Err(RequestFault::Unknown(Some(_), _)))
    };
    assert!(unknown(&logoff, 0) && !unknown(&logoff, 1));
    assert!(unknown(&telemetry, 3) && !unknown(&telemetry, 4));
    let run_of_2_fields = message(|writer| {
        writer.structure(tag::RUN, 2);
        writer.text("RETURN 1");
        writer.map(0);
    });
    assert!(unknown(&run_of_2_fields, 8));
    for rest in [vec![0xB0, tag::COMMIT, 0x00], vec![0x01], vec![0xA0]] {
        let parsed = Request::parse(rest, version(5, 8));
        assert_eq!(parsed, Err(RequestFault::Unknown(None, 0)));
    }
}

#[test]
fn a_route_names_the_database_and_how_the_client_came() {
    let route = message(|writer| {
        writer.structure(tag::ROUTE, 3);
        writer.map(1);
        texts(writer, &[("address", "localhost:4000")]);
        writer.list(0);
        writer.map(1);
        texts(writer, &[("db", "main")]);
    });
    let Ok(Request::Route(route)) = Request::parse(route, version(4, 4)) else {
        panic!("no route")
    };
    assert_eq!(route.routing.address.as_deref(), Some("localhost:4000"));
    assert!(route.bookmarks.is_empty());
    assert_eq!((route.db.as_deref(), route.imp_user), (Some("main"), None));
}
