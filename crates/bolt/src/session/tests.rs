use super::*;
use crate::message::{FetchAmount, tag_of};
use crate::packstream::{Item, Reader};
use proptest::prelude::*;

fn version(major: u8, minor: u8) -> Version {
    Version::new(major, minor).expect("served")
}

/// A message in one chunk.
fn framed(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let start = begin_message(&mut out);
    write(&mut Writer::new(&mut out));
    end_message(&mut out, start);
    out
}

fn bare(tag: u8) -> Vec<u8> {
    framed(|writer| writer.structure(tag, 0))
}

fn hello() -> Vec<u8> {
    framed(|writer| {
        writer.structure(tag::HELLO, 1);
        writer.map(1);
        writer.text("patch_bolt");
        writer.list(1);
        writer.text("utc");
    })
}

fn with_an_empty_map(tag: u8) -> Vec<u8> {
    framed(|writer| {
        writer.structure(tag, 1);
        writer.map(0);
    })
}

fn run(text: &str) -> Vec<u8> {
    framed(|writer| {
        writer.structure(tag::RUN, 3);
        writer.text(text);
        writer.map(0);
        writer.map(0);
    })
}

fn fetch(tag: u8, n: i64, qid: i64) -> Vec<u8> {
    framed(|writer| {
        writer.structure(tag, 1);
        writer.map(2);
        writer.text("n");
        writer.int(n);
        writer.text("qid");
        writer.int(qid);
    })
}

/// The summaries and records in the output, which is taken: `S`, `R`, `I` or `F`.
fn sent(session: &mut Session) -> String {
    let mut input = Dechunker::new(MAX_MESSAGE_BYTES);
    input.receive(session.output());
    let bytes = session.output().len();
    session.consume(bytes);
    assert!(session.output().is_empty());
    let letter = |message: Vec<u8>| {
        assert_eq!(Reader::new(&message).value().map(<[u8]>::len), Ok(message.len()));
        match tag_of(&message) {
            Some(tag::SUCCESS) => 'S',
            Some(tag::RECORD) => 'R',
            Some(tag::IGNORED) => 'I',
            Some(tag::FAILURE) => 'F',
            other => panic!("{other:?}"),
        }
    };
    std::iter::from_fn(|| input.take()).map(letter).collect()
}

/// The member of the only success in the output, which is taken.
fn told(session: &mut Session, member: &str) -> Option<String> {
    let mut input = Dechunker::new(MAX_MESSAGE_BYTES);
    input.receive(session.output());
    let message = input.take().expect("a success");
    assert_eq!(sent(session), "S");
    let mut reader = Reader::new(&message);
    assert_eq!(reader.item(), Ok(Item::Struct { tag: tag::SUCCESS, fields: 1 }));
    let Ok(Item::Map(entries)) = reader.item() else { panic!("no map") };
    let mut found = None;
    for _ in 0..entries {
        let Ok(Item::Text(key)) = reader.item() else { panic!("no key") };
        let value = reader.value().expect("a value");
        if key == member {
            found = Some(format!("{:?}", Reader::new(value).item().expect("an item")));
        }
    }
    found
}

/// The names of asks that are answered by success at once.
fn run_through(session: &mut Session) -> Vec<&'static str> {
    let ask = || {
        let ask = session.next_ask()?;
        session.succeed(Remaining::Nothing, |_| {});
        Some(ask.name())
    };
    std::iter::from_fn(ask).collect()
}

/// A session in which the client is authenticated.
fn ready() -> Session {
    let mut session = Session::new(version(5, 8));
    session.receive(&[hello(), with_an_empty_map(tag::LOGON)].concat());
    assert_eq!(run_through(&mut session), ["HELLO", "LOGON"]);
    assert_eq!((sent(&mut session).as_str(), session.phase()), ("SS", Phase::Ready));
    session
}

#[test]
fn a_statement_of_its_own_streams_until_its_last_row() {
    let mut session = ready();
    session.receive(&[run("RETURN 1"), fetch(tag::PULL, 1, -1)].concat());
    let Some(Ask::Run(statement, ResultPlace::AutoCommit)) = session.next_ask() else {
        panic!("no statement")
    };
    assert_eq!(statement.text, "RETURN 1");
    assert_eq!(session.next_ask(), None, "one at a time");
    session.succeed(Remaining::Nothing, |metadata| metadata.text("x", "y"));
    assert_eq!(told(&mut session, "x").as_deref(), Some("Text(\"y\")"));
    assert_eq!(session.phase(), Phase::Streaming);
    let amount = FetchAmount::Rows(1);
    assert_eq!(session.next_ask(), Some(Ask::Pull(Fetch { amount, qid: 0 })));
    session.records(&framed(|writer| writer.structure(tag::RECORD, 0)));
    session.succeed(Remaining::Rows, |_| {});
    assert_eq!(sent(&mut session), "RS");
    assert_eq!(session.phase(), Phase::Streaming);
    session.receive(&fetch(tag::DISCARD, -1, 0));
    assert_eq!(session.next_ask().map(|ask| ask.name()), Some("DISCARD"));
    session.succeed(Remaining::Rows, |_| {});
    assert_eq!(told(&mut session, "has_more").as_deref(), Some("Bool(true)"));
    session.receive(&fetch(tag::PULL, -1, -1));
    assert_eq!(run_through(&mut session), ["PULL"]);
    assert_eq!(told(&mut session, "has_more"), None);
    assert!(session.phase() == Phase::Ready && session.is_idle());
}

#[test]
fn results_of_a_transaction_are_told_apart_by_their_numbers() {
    let mut session = ready();
    session.receive(&[with_an_empty_map(tag::BEGIN), run("a"), run("b")].concat());
    assert_eq!(run_through(&mut session), ["BEGIN", "RUN", "RUN"]);
    sent(&mut session);
    for (asked, meant) in [(-1, 1), (0, 0), (1, 1)] {
        session.receive(&fetch(tag::PULL, 5, asked));
        let Some(Ask::Pull(fetch)) = session.next_ask() else { panic!("no fetch") };
        assert_eq!(fetch.qid, meant);
        session.succeed(Remaining::Rows, |_| {});
    }
    session.receive(&[fetch(tag::PULL, 5, 1), run("c")].concat());
    assert_eq!(session.next_ask().map(|ask| ask.name()), Some("PULL"));
    session.succeed(Remaining::Nothing, |_| {});
    sent(&mut session);
    assert_eq!(run_through(&mut session), ["RUN"]);
    assert_eq!(told(&mut session, "qid").as_deref(), Some("Int(2)"));
    // A closed one is a failure, after which a reset is necessary.
    session.receive(&[fetch(tag::PULL, 5, 1), run("d"), bare(tag::COMMIT)].concat());
    assert_eq!(session.next_ask(), None);
    assert_eq!((sent(&mut session).as_str(), session.phase()), ("FII", Phase::Failed));
    session.receive(&bare(tag::RESET));
    assert_eq!(run_through(&mut session), ["RESET"]);
    assert_eq!(session.phase(), Phase::Ready);
}

#[test]
fn a_commit_drops_the_results_that_are_open() {
    for end in [tag::COMMIT, tag::ROLLBACK] {
        let mut session = ready();
        session.receive(&[with_an_empty_map(tag::BEGIN), run("a"), bare(end)].concat());
        assert_eq!(run_through(&mut session).len(), 3);
        assert_eq!((sent(&mut session).as_str(), session.phase()), ("SSS", Phase::Ready));
        session.receive(&[with_an_empty_map(tag::BEGIN), fetch(tag::PULL, 1, -1)].concat());
        assert_eq!(run_through(&mut session), ["BEGIN"]);
        assert_eq!((sent(&mut session).as_str(), session.phase()), ("SF", Phase::Failed));
    }
}

#[test]
fn a_failure_makes_the_rest_ignored_until_a_reset() {
    let mut session = ready();
    session.receive(&[run("a"), fetch(tag::PULL, 1, -1), bare(tag::COMMIT)].concat());
    assert_eq!(session.next_ask().map(|ask| ask.name()), Some("RUN"));
    session.fail(&Failure::new("Neo.ClientError.Statement.SyntaxError", "no"));
    assert_eq!(session.next_ask(), None);
    assert_eq!(sent(&mut session), "FII");
    session.receive(&[bare(tag::RESET), run("b")].concat());
    assert_eq!(run_through(&mut session), ["RESET", "RUN"]);
    assert_eq!(sent(&mut session), "SS");
}

/// boltr up to 0.2 went from a failed login to ready by a reset.
#[test]
fn a_failure_before_authentication_closes() {
    for (minor, asks) in [(0, 1), (1, 2)] {
        let mut session = Session::new(version(5, minor));
        let logon = with_an_empty_map(tag::LOGON);
        session.receive(&[hello(), logon, run("a")].concat());
        for ask in 1..=asks {
            assert!(session.next_ask().is_some());
            if ask < asks {
                session.succeed(Remaining::Nothing, |_| {});
            }
        }
        session.fail(&Failure::new("Neo.ClientError.Security.Unauthorized", "no"));
        session.receive(&[bare(tag::RESET), run("b")].concat());
        assert_eq!(session.next_ask(), None);
        assert!(session.is_closed() && !session.wants_input());
        assert_eq!(sent(&mut session), if asks == 1 { "F" } else { "SF" });
    }
}

#[test]
fn a_message_that_the_state_does_not_allow_closes() {
    let before: [Vec<u8>; 5] = [
        with_an_empty_map(tag::LOGON),
        run("a"),
        bare(tag::RESET),
        with_an_empty_map(tag::BEGIN),
        framed(|writer| writer.int(1)),
    ];
    for message in before {
        let mut session = Session::new(version(5, 4));
        session.receive(&message);
        assert_eq!(session.next_ask(), None);
        assert!(session.is_closed());
        assert_eq!(sent(&mut session), "F");
    }
    let after: [Vec<u8>; 5] = [
        hello(),
        with_an_empty_map(tag::LOGON),
        bare(tag::COMMIT),
        fetch(tag::PULL, 1, -1),
        framed(|writer| writer.packed(&[0xB1, tag::BEGIN, 0xDF])),
    ];
    for message in after {
        let mut session = ready();
        session.receive(&message);
        assert_eq!(session.next_ask(), None);
        assert!(session.is_closed());
        assert_eq!(sent(&mut session), "F");
    }
}

#[test]
fn a_reset_interrupts_what_is_under_way_and_what_waits() {
    let mut session = ready();
    session.receive(&[run("a"), fetch(tag::PULL, 1, -1)].concat());
    assert_eq!(session.next_ask().map(|ask| ask.name()), Some("RUN"));
    assert!(!session.is_interrupted());
    session.receive(&[run("b"), bare(tag::RESET), run("c")].concat());
    assert!(session.is_interrupted());
    session.abandon();
    assert_eq!(session.next_ask(), Some(Ask::Reset));
    assert_eq!(sent(&mut session), "III");
    session.succeed(Remaining::Nothing, |_| {});
    assert_eq!(session.next_ask().map(|ask| ask.name()), Some("RUN"));
    assert_eq!((sent(&mut session).as_str(), session.phase()), ("S", Phase::Ready));
}

#[test]
fn a_commit_that_cannot_be_stopped_is_answered_before_the_reset() {
    let mut session = ready();
    session.receive(&with_an_empty_map(tag::BEGIN));
    assert_eq!(run_through(&mut session), ["BEGIN"]);
    session.receive(&bare(tag::COMMIT));
    assert_eq!(session.next_ask(), Some(Ask::Commit));
    session.receive(&bare(tag::RESET));
    assert!(session.is_interrupted());
    sent(&mut session);
    session.succeed(Remaining::Nothing, |metadata| metadata.text("bookmark", "FB:main:1"));
    assert_eq!(told(&mut session, "bookmark").as_deref(), Some("Text(\"FB:main:1\")"));
    assert_eq!(run_through(&mut session), ["RESET"]);
}

#[test]
fn a_goodbye_ends_without_an_answer() {
    let mut session = ready();
    session.receive(&run("a"));
    assert_eq!(session.next_ask().map(|ask| ask.name()), Some("RUN"));
    session.receive(&[fetch(tag::PULL, 1, -1), bare(tag::GOODBYE)].concat());
    assert!(session.is_interrupted());
    session.abandon();
    assert_eq!(session.next_ask(), None);
    assert_eq!((sent(&mut session).as_str(), session.is_closed()), ("II", true));
    // Also from a client that has not introduced itself.
    let mut session = Session::new(version(4, 4));
    session.receive(&bare(tag::GOODBYE));
    assert_eq!(session.next_ask(), None);
    assert!(session.is_closed() && session.output().is_empty());
}

#[test]
fn the_patch_for_moments_is_granted_to_4_4_alone() {
    for (major, minor, granted) in [(4, 4, true), (5, 0, false), (5, 4, false)] {
        let mut session = Session::new(version(major, minor));
        session.receive(&hello());
        assert_eq!(run_through(&mut session), ["HELLO"]);
        assert_eq!(told(&mut session, "patch_bolt").is_some(), granted);
        assert!(session.version().has_utc());
    }
    let mut session = Session::new(version(4, 4));
    session.receive(&with_an_empty_map(tag::HELLO));
    assert_eq!(run_through(&mut session), ["HELLO"]);
    assert!(!session.version().has_utc());
}

#[test]
fn the_version_is_told_by_those_that_ask_for_a_manifest() {
    for (minor, expected) in [(6, None), (7, Some("Text(\"5.7\")")), (8, Some("Text(\"5.8\")"))] {
        let mut session = Session::new(version(5, minor));
        session.receive(&hello());
        assert_eq!(run_through(&mut session), ["HELLO"]);
        assert_eq!(told(&mut session, "protocol_version").as_deref(), expected);
    }
}

#[test]
fn a_client_may_log_off_and_on_as_another() {
    let mut session = ready();
    session.receive(&[bare(tag::LOGOFF), with_an_empty_map(tag::LOGON)].concat());
    assert_eq!(session.next_ask(), Some(Ask::Logoff));
    session.succeed(Remaining::Nothing, |_| {});
    assert_eq!(session.phase(), Phase::Authentication);
    assert_eq!(session.next_ask().map(|ask| ask.name()), Some("LOGON"));
    session.fail(&Failure::new("Neo.ClientError.Security.Unauthorized", "no"));
    assert!(session.is_closed());
}

#[test]
fn telemetry_is_answered_here() {
    let telemetry = |api| {
        framed(|writer| {
            writer.structure(tag::TELEMETRY, 1);
            writer.int(api);
        })
    };
    let mut session = ready();
    session.receive(&[telemetry(3), telemetry(4)].concat());
    assert_eq!(session.next_ask(), None);
    assert_eq!((sent(&mut session).as_str(), session.phase()), ("SF", Phase::Failed));
}

#[test]
fn a_client_that_is_not_authenticated_sends_short_messages() {
    let long = run(&"x".repeat(MAX_EARLY_BYTES));
    let mut session = Session::new(version(5, 8));
    session.receive(&[hello(), long.clone()].concat());
    assert_eq!(run_through(&mut session), ["HELLO"]);
    assert!(session.is_closed());
    assert_eq!(sent(&mut session), "SF");
    assert!(session.memory_bytes() < 2 * MAX_EARLY_BYTES);
    let mut session = ready();
    session.receive(&long);
    assert_eq!(run_through(&mut session), ["RUN"]);
}

#[test]
fn a_long_message_may_follow_a_logon_at_once() {
    let long = run(&"x".repeat(5 * MAX_EARLY_BYTES));
    let logon = with_an_empty_map(tag::LOGON);
    let logoff = framed(|writer| writer.structure(tag::LOGOFF, 0));
    for (mut session, first) in [
        (Session::new(version(5, 8)), [hello(), logon.clone()].concat()),
        (ready(), [logoff, logon.clone()].concat()),
    ] {
        let mut asks = Vec::new();
        for piece in [first, long.clone()].concat().chunks(10_000) {
            assert!(session.wants_input());
            session.receive(piece);
            asks.extend(run_through(&mut session));
        }
        assert_eq!(asks.last(), Some(&"RUN"), "{asks:?}");
    }
}

#[test]
fn an_idle_session_keeps_little_memory() {
    let mut session = ready();
    session.receive(&run(&"x".repeat(1 << 20)));
    assert!(session.next_ask().is_some());
    session.succeed(Remaining::Nothing, |metadata| metadata.text("x", &"x".repeat(1 << 20)));
    sent(&mut session);
    assert!(session.memory_bytes() <= 4 << 10, "{}", session.memory_bytes());
}

/// Messages that a client may send in any order.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => Just(hello()),
        3 => Just(with_an_empty_map(tag::LOGON)),
        1 => Just(bare(tag::LOGOFF)),
        2 => Just(with_an_empty_map(tag::BEGIN)),
        6 => Just(run("a")),
        4 => (-2_i64..4, -1_i64..3).prop_map(|(n, qid)| fetch(tag::PULL, n, qid)),
        2 => (-2_i64..4, -1_i64..3).prop_map(|(n, qid)| fetch(tag::DISCARD, n, qid)),
        2 => Just(bare(tag::COMMIT)),
        1 => Just(bare(tag::ROLLBACK)),
        1 => prop::collection::vec(any::<u8>(), 1..9)
            .prop_map(|bytes| framed(|writer| writer.packed(&bytes))),
    ]
}

/// What the caller does with an ask.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Succeed,
    SucceedWithMore,
    Fail,
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        6 => Just(Answer::Succeed),
        2 => Just(Answer::SucceedWithMore),
        1 => Just(Answer::Fail),
    ]
}

/// Gives a session these pieces and answers its asks in turn. Returns the asks, and what was sent.
fn played(pieces: &[&[u8]], answers: &[Answer]) -> (Vec<String>, String, bool) {
    let mut session = Session::new(version(5, 4));
    let (mut asks, mut output) = (Vec::new(), String::new());
    for piece in pieces {
        session.receive(piece);
        while let Some(ask) = session.next_ask() {
            match answers[asks.len() % answers.len()] {
                Answer::Succeed => session.succeed(Remaining::Nothing, |_| {}),
                Answer::SucceedWithMore => session.succeed(Remaining::Rows, |_| {}),
                Answer::Fail => session.fail(&Failure::new("Neo.DatabaseError.General.X", "no")),
            }
            asks.push(format!("{ask:?}"));
        }
        output += &sent(&mut session);
    }
    (asks, output, session.is_closed())
}

proptest! {
    /// Nothing happens before LOGON, and each message has one summary in its order: ignored ones
    /// follow failures until a reset.
    #[test]
    fn any_messages_in_any_pieces_give_the_same_asks_and_one_summary_each(
        messages in prop::collection::vec(any_message(), 0..20),
        greets in any::<bool>(),
        resets in any::<bool>(),
        answers in prop::collection::vec(any_answer(), 1..6),
        piece in 1_usize..40,
    ) {
        let mut messages = messages;
        if greets {
            messages.splice(0..0, [hello(), with_an_empty_map(tag::LOGON)]);
        }
        if resets {
            messages.push(bare(tag::RESET));
        }
        // A reset jumps ahead of what came with it, so pieces end where messages do.
        let (body, last) = messages.split_at(messages.len() - usize::from(resets));
        let (body, last) = (body.concat(), last.concat());
        let whole = played(&[&body, &last], &answers);
        let pieces: Vec<&[u8]> = body.chunks(piece).chain(last.chunks(piece)).collect();
        prop_assert_eq!(&played(&pieces, &answers), &whole);
        let (asks, output, is_closed) = whole;
        prop_assert!(asks.first().is_none_or(|ask| ask.starts_with("Hello")));
        prop_assert!(asks.get(1).is_none_or(|ask| ask.starts_with("Logon")));
        prop_assert!(output.len() <= messages.len());
        prop_assert!(is_closed || output.len() == messages.len());
        for (at, letter) in output.char_indices() {
            let after_failure = output[..at].ends_with(['F', 'I']);
            let is_reset = resets && at + 1 == messages.len();
            prop_assert_eq!(letter == 'I', after_failure && !is_reset, "{}", output);
        }
    }

    #[test]
    fn any_bytes_are_answered_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut session = ready();
        session.receive(&bytes);
        run_through(&mut session);
    }
}
