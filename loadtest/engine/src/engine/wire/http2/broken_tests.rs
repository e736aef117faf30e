//! What must not be taken for an answer.

use super::tests::{Client, GET, WireEvent, answered, block, data, framed, headers, settings};
use super::*;
use proptest::prelude::*;

#[test]
fn a_body_of_another_length_than_announced_is_no_answer() {
    let ok = [(":status", "200"), ("content-length", "3")];
    let lost = [WireEvent::Lost(0, ErrorKind::Protocol)];
    for (method, frames, expected) in [
        ("GET", [headers(1, 0, &ok), data(1, 1, b"abc")].concat(), None),
        ("GET", [headers(1, 0, &ok), data(1, 1, b"ab")].concat(), Some(())),
        ("GET", [headers(1, 0, &ok), data(1, 0, b"abcd")].concat(), Some(())),
        ("GET", headers(1, 1, &ok), Some(())),
        ("HEAD", headers(1, 1, &ok), None),
        ("HEAD", [headers(1, 0, &ok), data(1, 1, b"")].concat(), None),
        ("HEAD", [headers(1, 0, &ok), data(1, 1, b"abc")].concat(), Some(())),
        ("GET", [headers(1, 0, &[(":status", "204")]), data(1, 1, b"a")].concat(), Some(())),
        (
            "GET",
            [headers(1, 0, &ok), data(1, 0, b"ab"), headers(1, 1, &[("a", "b")])].concat(),
            Some(()),
        ),
    ] {
        let mut client = Client::new(1);
        client.send(0, &Request { method, ..GET });
        let told = client.read(&frames);
        match expected {
            Some(()) => assert_eq!(told, lost, "{method} {frames:?}"),
            None => assert!(matches!(told[..], [WireEvent::Answered(0, 200, ..)]), "{told:?}"),
        }
        client.send(0, &GET);
        assert_eq!(client.read(&headers(3, 1, &[(":status", "200")])), [answered(0, 200, b"")]);
    }
}

#[test]
fn what_is_not_http_hurts_its_own_stream() {
    for frames in [
        data(1, 0, b"a body without a head"),
        headers(1, 1, &[("server", "no status")]),
        headers(1, 1, &[(":status", "100")]),
        headers(1, 0, &[(":status", "101")]),
        [headers(1, 0, &[(":status", "200")]), headers(1, 0, &[("a", "b")])].concat(),
        [headers(1, 0, &[(":status", "200")]), headers(1, 1, &[(":status", "200")])].concat(),
        framed(frame::WINDOW_UPDATE, 0, 1, &[0; 4]),
    ] {
        let mut client = Client::new(2);
        client.send(0, &GET);
        client.send(1, &GET);
        client.out.clear();
        assert_eq!(client.read(&frames), [WireEvent::Lost(0, ErrorKind::Protocol)], "{frames:?}");
        assert_eq!(client.kinds(), [(frame::RST_STREAM, 1)]);
        assert_eq!(client.read(&headers(3, 1, &[(":status", "200")])), [answered(1, 200, b"")]);
    }
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    let head = headers(1, 0, &[(":status", "200")]);
    let open_block = framed(frame::HEADERS, 0, 1, &block(&[(":status", "200")]));
    for frames in [
        headers(2, 0, &[(":status", "200")]),
        headers(5, 0, &[(":status", "200")]),
        data(0, 0, b""),
        [head.clone(), data(1, frame::PADDED, b"\x05abc")].concat(),
        [head.clone(), data(1, frame::PADDED, b"")].concat(),
        framed(frame::HEADERS, frame::END_HEADERS, 1, b"\xbe"),
        framed(frame::HEADERS, frame::END_HEADERS | frame::PADDED, 1, b"\xff"),
        framed(frame::CONTINUATION, frame::END_HEADERS, 1, b"\x88"),
        [open_block.clone(), framed(frame::PING, 0, 0, &[0; 8])].concat(),
        [open_block, framed(frame::CONTINUATION, 4, 3, b"")].concat(),
        framed(frame::PUSH_PROMISE, 4, 1, b"\0\0\0\x02\x82"),
        framed(frame::PING, 0, 0, b"1234567"),
        framed(frame::PING, 0, 1, b"12345678"),
        framed(frame::GOAWAY, 0, 0, b"1234567"),
        framed(frame::RST_STREAM, 0, 1, b"123"),
        framed(frame::RST_STREAM, 0, 7, b"1234"),
        framed(frame::WINDOW_UPDATE, 0, 0, &[0; 4]),
        framed(frame::WINDOW_UPDATE, 0, 0, &0x7fff_ffffu32.to_be_bytes()),
        framed(frame::SETTINGS, 0, 0, b"12345"),
        framed(frame::SETTINGS, 0, 1, b""),
        framed(frame::SETTINGS, frame::ACK, 0, b"123456"),
        settings(&[(frame::ENABLE_PUSH, 1)]),
        settings(&[(frame::INITIAL_WINDOW_SIZE, 1 << 31)]),
        settings(&[(frame::MAX_FRAME_SIZE, 16_383)]),
        framed(frame::DATA, 0, 1, &vec![0; 70_000]),
    ] {
        let mut client = Client::new(2);
        client.send(0, &GET);
        client.send(1, &GET);
        let told = client.read(&frames);
        let (kind, stream) = (frames[3], frames[8]);
        let broken = [WireEvent::Broken(ErrorKind::Protocol)];
        assert_eq!(told, broken, "kind {kind} on stream {stream}: {:?}", &frames[9..]);
        assert!(client.wire.why().is_some());
    }
    let mut client = Client::new(1);
    client.send(0, &GET);
    let mut endless = framed(frame::HEADERS, 0, 1, &[0x88; 60_000]);
    for _ in 0..4 {
        endless.extend(framed(frame::CONTINUATION, 0, 1, &[0x88; 60_000]));
    }
    assert_eq!(client.read(&endless), [WireEvent::Broken(ErrorKind::TooLarge)]);
}

#[test]
fn a_server_of_another_protocol_is_named_as_such() {
    for first in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &framed(frame::PING, 0, 0, &[0; 8])] {
        let mut wire = Http2::new(1, false);
        let (mut heads, mut seen) = (BlockCache::default(), ServerFacts::default());
        let told = wire.advance(first, &mut heads, &mut seen, &mut Vec::new());
        assert_eq!(told, Err(ErrorKind::Protocol));
        assert!(wire.why().unwrap().contains("does not speak HTTP/2"));
    }
}

/// Frames that are nearly right.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let good_block = prop::sample::select(vec![
        block(&[(":status", "200")]),
        block(&[(":status", "200"), ("content-length", "4")]),
        block(&[(":status", "100")]),
        block(&[("a", "b")]),
        vec![],
    ]);
    let payload = prop_oneof![
        good_block,
        prop::collection::vec(any::<u8>(), 0..20),
        Just(vec![0; 8]),
        Just(vec![0, 0, 0, 3])
    ];
    let stream = prop::sample::select(vec![0u32, 1, 3, 5, 7, 9, 2]);
    (0u8..11, any::<u8>(), stream, payload)
        .prop_map(|(kind, flags, stream, payload)| framed(kind, flags & 0x2d, stream, &payload))
}

proptest! {
    #[test]
    fn no_input_panics(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8)) {
        let mut client = Client::with(2, true, &[]);
        client.send(0, &GET);
        for piece in pieces {
            client.read(&piece);
        }
    }

    #[test]
    fn frames_in_any_order_lose_no_place_and_mean_the_same_in_pieces(
        frames in prop::collection::vec(any_frame(), 1..12), cut in any::<prop::sample::Index>(),
    ) {
        let bytes = frames.concat();
        let run = |parts: &[&[u8]]| {
            let mut client = Client::with(4, false, &[(frame::MAX_CONCURRENT_STREAMS, 3)]);
            let post = Request { method: "POST", body: &[1; 70_000], ..GET };
            client.send(0, &post);
            (1..4).for_each(|place| client.send(place, &GET));
            let mut told: Vec<WireEvent> = Vec::new();
            for part in parts {
                if !matches!(told.last(), Some(WireEvent::Broken(_))) {
                    told.extend(client.read(part));
                }
            }
            let busy = client.wire.places.iter().filter(|at| at.stage != Stage::Free).count();
            (told, busy, client.out)
        };
        let (told, busy, out) = run(&[&bytes]);
        let broken = matches!(told.last(), Some(WireEvent::Broken(_)));
        prop_assert!(broken || told.len() + busy == 4, "{told:?} and {busy}");
        let at = cut.index(bytes.len());
        let again = run(&[&bytes[..at], &bytes[at..]]);
        prop_assert_eq!((told, busy, out), again);
    }
}
