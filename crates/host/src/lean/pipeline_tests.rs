//! Any requests in any segments, and rubbish.

use super::replay::{End, replay, statuses};
use super::session_tests::{LIMITS, PLAIN, whole, without_continue};
use super::visit_tests::{clicked, visit};
use proptest::prelude::*;

/// A request and its answer.
#[derive(Debug, Clone)]
struct Case {
    bytes: Vec<u8>,
    taken: Option<(String, Vec<u8>)>,
    status: u16,
}

fn case() -> impl Strategy<Value = Case> {
    prop_oneof![3 => event_case(), 2 => visit_case()]
}

fn append_case() -> impl Strategy<Value = Case> {
    let body = prop::collection::vec(any::<u8>(), 0..80);
    (body, any::<bool>(), any::<bool>()).prop_map(|(mut body, lf, newline)| {
        if body.first() == Some(&b'!') {
            body[0] = b'?';
        }
        let length = body.len();
        let head = format!("POST /append HTTP/1.1\r\nHost: l\r\nContent-Length: {length}\r\n\r\n");
        let head = if lf { head.replace("\r\n", "\n") } else { head };
        let before = if newline { &b"\r\n"[..] } else { b"" };
        Case {
            bytes: [before, head.as_bytes(), &body].concat(),
            taken: Some(("/append".to_owned(), body)),
            status: 200,
        }
    })
}

fn visit_case() -> impl Strategy<Value = Case> {
    let code = prop_oneof![Just("Yci"), Just("a"), Just("0123456789"), Just("unknown")];
    (code, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(code, lf, agent, newline)| {
        let head = if agent {
            String::from_utf8(visit(code)).unwrap()
        } else {
            format!("GET /{code} HTTP/1.1\r\nHost: l\r\n\r\n")
        };
        let data = if agent { clicked(code).1 } else { b" ".to_vec() };
        let head = if lf { head.replace("\r\n", "\n") } else { head };
        let before = if newline { "\r\n" } else { "" };
        let known = code != "unknown";
        Case {
            bytes: [before, &head].concat().into(),
            taken: known.then(|| (code.to_owned(), data)),
            status: if known { 302 } else { 404 },
        }
    })
}

fn event_case() -> impl Strategy<Value = Case> {
    let target = prop_oneof![Just("/e"), Just("/e?a=1"), Just("/e?full"), Just("/e?bad")];
    let body = prop::collection::vec(any::<u8>(), 0..80);
    (target, body, any::<bool>(), prop::collection::vec(1usize..20, 8), any::<[bool; 4]>())
        .prop_map(|(target, body, chunked, cuts, [lf, expect, type_, newline])| {
            let mut head = format!("POST {target} HTTP/1.1\r\nHost: l\r\n");
            head.push_str(if type_ { "Content-Type: application/json\r\n" } else { "" });
            // A refusal after an expectation closes the connection, which is another test.
            let refused = target == "/e?bad" || body.first() == Some(&b'!');
            head.push_str(if expect && !refused { "Expect: 100-continue\r\n" } else { "" });
            let mut framed = Vec::new();
            if chunked {
                head.push_str("Transfer-Encoding: chunked\r\n\r\n");
                let mut rest = &body[..];
                for cut in cuts.iter().cycle() {
                    let (chunk, behind) = rest.split_at((*cut).min(rest.len()));
                    framed.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                    framed.extend_from_slice(chunk);
                    framed.extend_from_slice(b"\r\n");
                    rest = behind;
                    if chunk.is_empty() {
                        break;
                    }
                }
            } else {
                head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
                framed.extend_from_slice(&body);
            }
            let head = if lf { head.replace("\r\n", "\n") } else { head };
            let before = if newline { &b"\r\n"[..] } else { b"" };
            Case {
                bytes: [before, head.as_bytes(), &framed].concat(),
                taken: (!refused).then(|| (target.to_owned(), body)),
                status: if refused { 422 } else { 202 },
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_pipeline_in_any_segments_is_taken_once_and_in_order(
        cases in prop_oneof![
            prop::collection::vec(case(), 1..12),
            prop::collection::vec(append_case(), 1..12),
        ],
        steps in prop::collection::vec(1usize..200, 1..20),
    ) {
        let input: Vec<u8> = cases.iter().flat_map(|case| case.bytes.clone()).collect();
        let mut pieces = Vec::new();
        let (mut rest, mut steps) = (&input[..], steps.into_iter().cycle());
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(steps.next().unwrap().min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        let trace = replay(LIMITS, pieces.into_iter());
        let taken: Vec<_> = cases.iter().filter_map(|case| case.taken.clone()).collect();
        prop_assert_eq!(trace.taken, taken);
        let expected: Vec<u16> = cases.iter().map(|case| case.status).collect();
        prop_assert_eq!(statuses(&trace.answers), Some(expected));
        prop_assert_eq!(trace.end, End::Closed);
    }

    #[test]
    fn rubbish_is_the_same_at_every_split_and_never_a_panic(
        mut input in prop::collection::vec(any::<u8>(), 0..300),
        at in any::<prop::sample::Index>(),
        flip in any::<prop::sample::Index>(),
    ) {
        // Half of it is nearly right.
        if input.len() % 2 == 0 {
            let right = match input.len() % 6 {
                0 => PLAIN.to_vec(),
                2 => visit("Yci"),
                _ => super::whole_tests::append("a?"),
            };
            let flip = flip.index(right.len());
            let near = [&right[..flip], &input[..input.len().min(2)], &right[flip..], PLAIN].concat();
            input = near;
        }
        let whole = whole(&input);
        prop_assert!(statuses(&whole.answers).is_some());
        if !input.is_empty() {
            let (a, b) = input.split_at(at.index(input.len()));
            prop_assert_eq!(without_continue(replay(LIMITS, [a, b].into_iter())), whole);
        }
    }
}
