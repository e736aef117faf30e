//! Requests that are read as a whole, over the fake appends.

use super::replay::{End, LARGEST_BODY, shared, statuses};
use super::session::{NextStep, Phase, Session};
use super::session_tests::{ACCEPTED, LIMITS, PLAIN, everywhere, whole};

/// An append of this body.
pub(super) fn append(body: &str) -> Vec<u8> {
    post("/append", body)
}

pub(super) fn post(target: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST {target} HTTP/1.1\r\nHost: l\r\nContent-Length: {length}\r\n\r\n");
    (head + body).into_bytes()
}

/// The contents of answers.
fn told(answers: &[u8]) -> Vec<String> {
    let text = String::from_utf8(answers.to_vec()).unwrap();
    let contents = text.split("\r\n\r\n").skip(1);
    contents.map(|rest| rest.split("HTTP/1.1").next().unwrap_or_default().to_owned()).collect()
}

fn answer(place: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "HTTP/1.1 200 OK\r\nPlace: {place}\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\nConnection: keep-alive\r\n\r\n{content}"
    )
}

#[test]
fn a_whole_request_is_taken_once_at_every_split_and_answered_now_or_later() {
    let trace = everywhere(&[append("a"), append("?b"), append(""), append("?c")].concat());
    let taken: Vec<_> = trace.taken.iter().map(|(_, body)| &body[..]).collect();
    assert_eq!(taken, [&b"a"[..], b"?b", b"", b"?c"]);
    let (now, later) = (|| answer("-", "now"), |place| answer(place, "later"));
    let told = [now(), later("0"), now(), later("1")].concat();
    assert_eq!(String::from_utf8(trace.answers).unwrap(), told);
    assert_eq!(trace.end, End::Closed);
}

#[test]
fn what_a_path_sends_elsewhere_is_handed_over_untouched_however_it_arrived() {
    let trace = everywhere(&[append("a"), append("!b"), append("c")].concat());
    assert_eq!(trace.taken.len(), 1);
    assert_eq!(trace.answers, answer("-", "now").into_bytes());
    assert_eq!(trace.end, End::Left([append("!b"), append("c")].concat()));
}

#[test]
fn any_other_framing_is_handed_over_with_its_head() {
    let long = "x".repeat(LARGEST_BODY + 1);
    for (fields, body) in [
        ("Content-Length: 601\r\n", &*long),
        ("Content-Length: 601\r\n", ""),
        ("Content-Length: 2\r\nExpect: 100-continue\r\n", ""),
        ("Content-Length: 2\r\nUpgrade: h2c\r\n", "ab"),
        ("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n"),
    ] {
        let foreign =
            format!("POST /append HTTP/1.1\r\nHost: l\r\n{fields}\r\n{body}").into_bytes();
        // Also behind a head that differs in its length alone.
        let trace = everywhere(&[append("a"), foreign.clone()].concat());
        assert_eq!(trace.end, End::Left(foreign), "{fields}");
        assert_eq!(trace.answers, answer("-", "now").into_bytes());
    }
    let longest = append(&long[..LARGEST_BODY]);
    assert_eq!(whole(&longest).taken.len(), 1);
}

#[test]
fn nothing_overtakes_what_its_connection_has_handed_in() {
    for later in ["a", "?a", "!a"] {
        let trace = everywhere(&[append("a"), PLAIN.to_vec(), append(later)].concat());
        assert_eq!(trace.end, End::Left(append(later)), "{later}");
        assert_eq!(trace.answers, [answer("-", "now").as_bytes(), ACCEPTED].concat());
    }
}

#[test]
fn while_the_rest_is_missing_it_is_a_body_that_can_be_late() {
    let late = |input: &[u8]| {
        let mut shared = shared(LIMITS);
        let mut session = Session::new(None);
        assert_eq!(session.receive(&mut shared, input), NextStep::More);
        assert_eq!(session.phase(), Phase::Body);
        (shared, session)
    };
    let most = append("abc");
    for end in [most.len() - 3, most.len() - 1] {
        let (mut desk, mut session) = late(&most[..end]);
        assert_eq!(session.expire(&mut desk), NextStep::End);
        assert_eq!(statuses(&desk.out).unwrap(), [408]);
        let (mut desk, mut session) = late(&most[..end]);
        assert_eq!(session.end_of_input(&mut desk), NextStep::End);
        assert_eq!(statuses(&desk.out).unwrap(), [400]);
        assert!(desk.guards.script.borrow().taken.is_empty());
    }
}

const LOOK: &[u8] = b"GET /v1/look HTTP/1.1\r\nHost: l\r\n\r\n";

#[test]
fn what_shows_effects_is_read_when_everything_before_it_is_answered() {
    let all = [LOOK, &append("?a"), LOOK, &append("?b"), &append("?c"), LOOK, LOOK].concat();
    let trace = everywhere(&all);
    assert_eq!(told(&trace.answers), ["0", "later", "1", "later", "later", "3", "3"]);
    assert_eq!(trace.end, End::Closed);
}

#[test]
fn a_handler_runs_alone_and_those_behind_it_wait() {
    let handled = |body| post("/handled", body);
    let all =
        [append("?a"), handled("?b"), append("c"), handled("~d"), LOOK.to_vec(), append("?e")];
    let trace = everywhere(&all.concat());
    let taken: Vec<_> = trace.taken.iter().map(|(_, body)| &body[..]).collect();
    assert_eq!(taken, [&b"?a"[..], b"?b", b"c", b"~d", b"?e"]);
    assert_eq!(told(&trace.answers), ["later", "later", "now", "handled", "2", "later"]);
    assert_eq!(trace.end, End::Closed);
    let mut shared = shared(LIMITS);
    let mut session = Session::new(None);
    let turn = session.receive(&mut shared, &[handled("?a"), append("b"), LOOK.to_vec()].concat());
    assert_eq!((turn, session.phase()), (NextStep::Wait, Phase::Handler));
    assert_eq!(shared.guards.script.borrow().taken.len(), 1, "nothing behind it has begun");
}

#[test]
fn what_a_path_sends_elsewhere_goes_to_the_next_one_that_claims_it() {
    let both = |body| post("/both", body);
    let trace = everywhere(&[both("a"), both("!b"), both("!?c"), both("d")].concat());
    let taken: Vec<_> = trace.taken.iter().map(|(path, body)| (&path[..], &body[..])).collect();
    let expected: [(&str, &[u8]); 4] =
        [("/append", b"a"), ("/handled", b"!b"), ("/handled", b"!?c"), ("/append", b"d")];
    assert_eq!(taken, expected);
    assert_eq!(told(&trace.answers), ["now", "handled", "handled", "now"]);
    assert_eq!(trace.end, End::Closed);
}

#[test]
fn a_connection_with_much_to_do_lets_others_go_first() {
    let mut shared = shared(LIMITS);
    let mut session = Session::new(None);
    let mut turn =
        session.receive(&mut shared, &[append("a").repeat(20), LOOK.repeat(20)].concat());
    let mut turns = 1;
    while turn == NextStep::Later {
        turns += 1;
        turn = session.resume(&mut shared);
    }
    assert_eq!((turn, turns), (NextStep::More, 3));
    assert_eq!(statuses(&shared.out).unwrap().len(), 40);
    // One at a time never waits for others.
    for _ in 0..100 {
        assert_eq!(session.receive(&mut shared, LOOK), NextStep::More);
    }
}
