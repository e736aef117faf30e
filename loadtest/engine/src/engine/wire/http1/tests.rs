use super::*;
use proptest::prelude::*;

const GET: Request<'_> =
    Request { endpoint: 0, fixed: None, method: "GET", path: "/a", headers: &[], body: b"" };
const ALL: Needs = Needs { head: true, body: true };

fn layout() -> Layout<'static> {
    Layout { authority: "h:1", scheme: "http", keep_alive: true }
}

fn asked(method: &'static str, needs: Needs) -> Http1 {
    let mut wire = Http1::new(false);
    wire.send(0, &Request { method, ..GET }, needs, layout(), &mut Vec::new());
    wire
}

/// Feeds `answer` in pieces cut at `cuts`; the result of the last piece.
fn fed(wire: &mut Http1, answer: &[u8], cuts: &[usize]) -> Result<Advance, ErrorKind> {
    let (mut heads, mut seen) = (HeadCache::default(), ServerFacts::default());
    let mut last = Ok(Advance::More);
    let mut from = 0;
    for to in cuts.iter().copied().chain([answer.len()]) {
        last = wire.advance(&answer[from..to], &mut heads, &mut seen);
        if to < answer.len() && last != Ok(Advance::More) {
            return last;
        }
        from = to;
    }
    last
}

#[test]
fn requests_are_laid_out_to_the_byte() {
    let mut out = Vec::new();
    let headers = [("x-a".to_owned(), "1".to_owned())];
    let post = Request { method: "POST", path: "/e", headers: &headers, body: b"{}", ..GET };
    Http1::new(false).send(0, &post, ALL, layout(), &mut out);
    assert_eq!(out, b"POST /e HTTP/1.1\r\nHost: h:1\r\nx-a: 1\r\nContent-Length: 2\r\n\r\n{}");
    out.clear();
    Http1::new(false).send(0, &GET, ALL, Layout { keep_alive: false, ..layout() }, &mut out);
    assert_eq!(out, b"GET /a HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n");
}

#[test]
fn an_answer_is_the_same_wherever_it_is_cut() {
    let answers: [(&[u8], u16, &[u8]); 5] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: s\r\n\r\nhello", 200, b"hello"),
        (
            b"HTTP/1.1 201 X\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nT: x\r\n\r\n",
            201,
            b"hello",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b""),
    ];
    for (bytes, status, body) in answers {
        for cut in 0..bytes.len() {
            for next in [cut, (cut + bytes.len()) / 2] {
                let mut wire = asked("GET", ALL);
                let last = fed(&mut wire, bytes, &[cut, next]);
                assert!(matches!(last, Ok(Advance::Answered { .. })), "{cut}: {last:?}");
                let answer = wire.answer(0, 0);
                assert_eq!((answer.status, answer.body), (status, body), "cut at {cut}");
                assert_eq!(answer.body_bytes, body.len() as u64);
            }
        }
    }
}

#[test]
fn a_repeated_head_means_the_same_without_parsing() {
    let (mut heads, mut seen) = (HeadCache::default(), ServerFacts::default());
    let answer = b"HTTP/1.1 200 OK\r\nAge: 3\r\nContent-Length: 2\r\n\r\nok";
    let mut wire = Http1::new(false);
    for round in 1..=3 {
        wire.send(0, &GET, Needs::default(), layout(), &mut Vec::new());
        let last = wire.advance(answer, &mut heads, &mut seen);
        assert_eq!(last, Ok(Advance::Answered { used: answer.len(), place: 0 }));
        assert_eq!(wire.answer(0, 0).status, 200);
        assert_eq!(seen.cache_hits, round);
    }
    // Another head after it is read as itself.
    wire.send(0, &GET, Needs::default(), layout(), &mut Vec::new());
    let other = b"HTTP/1.1 500 Oh\r\nAge: 0\r\nContent-Length: 0\r\n\r\n";
    assert!(matches!(wire.advance(other, &mut heads, &mut seen), Ok(Advance::Answered { .. })));
    assert_eq!(wire.answer(0, 0).status, 500);
    assert_eq!(seen.cache_hits, 3);
}

#[test]
fn a_head_request_has_no_body_whatever_its_length_says() {
    let mut wire = asked("HEAD", ALL);
    let last = fed(&mut wire, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", &[]);
    assert!(matches!(last, Ok(Advance::Answered { .. })));
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    let mut wire = asked("GET", ALL);
    assert_eq!(fed(&mut wire, b"HTTP/1.1 200 OK\r\n\r\nabc", &[]), Ok(Advance::More));
    assert_eq!(wire.closed(), Ok(0));
    assert_eq!(wire.answer(0, 0).body, b"abc");
    assert!(!wire.reusable());
}

#[test]
fn an_answer_that_was_not_wholly_read_is_never_one() {
    for part in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"] {
        let mut wire = asked("GET", ALL);
        assert_eq!(fed(&mut wire, part.as_bytes(), &[]), Ok(Advance::More));
        assert_eq!(wire.closed(), Err(ErrorKind::Closed), "{part:?}");
    }
}

#[test]
fn what_is_not_http_or_not_one_answer_is_refused() {
    let broken: [&[u8]; 9] = [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naXX",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    ];
    for bytes in broken {
        let mut wire = asked("GET", ALL);
        let last = fed(&mut wire, bytes, &[]);
        assert_eq!(last, Err(ErrorKind::Protocol), "{}", String::from_utf8_lossy(bytes));
    }
    let unasked =
        Http1::new(false).advance(b"x", &mut HeadCache::default(), &mut ServerFacts::default());
    assert_eq!(unasked, Err(ErrorKind::Protocol));
}

#[test]
fn whether_a_connection_is_kept_follows_version_and_field() {
    for (bytes, kept) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", true),
    ] {
        let mut wire = asked("GET", ALL);
        assert!(matches!(fed(&mut wire, bytes.as_bytes(), &[]), Ok(Advance::Answered { .. })));
        assert_eq!(wire.reusable(), kept, "{bytes}");
    }
}

proptest! {
    #[test]
    fn no_input_panics_or_is_read_past_its_end(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
        begin in prop::sample::select(vec![
            "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n",
        ]),
    ) {
        let mut wire = asked("GET", ALL);
        let (mut heads, mut seen) = (HeadCache::default(), ServerFacts::default());
        let mut last = wire.advance(begin.as_bytes(), &mut heads, &mut seen);
        for piece in pieces {
            if last != Ok(Advance::More) {
                break;
            }
            last = wire.advance(&piece, &mut heads, &mut seen);
            if let Ok(Advance::Answered { used, .. }) = last {
                prop_assert_eq!(used, piece.len());
            }
        }
    }
}
