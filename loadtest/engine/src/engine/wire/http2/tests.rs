use super::encoder::Index;
use super::frame::FrameHead;
use super::*;

pub(super) const GET: Request<'_> =
    Request { endpoint: 0, fixed: None, method: "GET", path: "/a", headers: &[], body: b"" };
const ALL: Needs = Needs { head: true, body: true };

pub(super) fn layout() -> Layout<'static> {
    Layout { authority: "h:1", scheme: "http", keep_alive: true }
}

pub(super) fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(kind, flags, stream, payload, &mut out);
    out
}

pub(super) fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_settings(settings, &mut out);
    out
}

/// A block of literals only.
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        Encoder::new().field(name, value, Index::Repeated, &mut out);
    }
    out
}

pub(super) fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    framed(frame::HEADERS, flags | frame::END_HEADERS, stream, &block(fields))
}

pub(super) fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    framed(frame::DATA, flags, stream, payload)
}

/// What happened, with the answer as the workload would see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WireEvent {
    Begun(u32),
    Answered(u32, u16, Vec<u8>, u64),
    Lost(u32, ErrorKind),
    Unprocessed(u32),
    Broken(ErrorKind),
}

/// A connection under test, what it wrote, and what it remembers.
pub(super) struct Client {
    pub(super) wire: Http2,
    pub(super) out: Vec<u8>,
    heads: BlockCache,
    seen: ServerFacts,
}

impl Client {
    /// Open, with the peer's settings read.
    pub(super) fn with(places: u32, phases: bool, theirs: &[(u16, u32)]) -> Self {
        let mut client = Client {
            wire: Http2::new(places, phases),
            out: Vec::new(),
            heads: BlockCache::default(),
            seen: ServerFacts::default(),
        };
        client.wire.open(&mut client.out);
        assert_eq!(client.read(&settings(theirs)), []);
        client.out.clear();
        client
    }

    pub(super) fn new(places: u32) -> Self {
        Self::with(places, false, &[])
    }

    pub(super) fn send(&mut self, place: u32, request: &Request<'_>) {
        self.wire.send(place, request, ALL, layout(), &mut self.out);
    }

    /// Reads to the end of `input`, as the worker does.
    pub(super) fn read(&mut self, mut input: &[u8]) -> Vec<WireEvent> {
        let mut told = Vec::new();
        loop {
            let advance = self.wire.advance(input, &mut self.heads, &mut self.seen, &mut self.out);
            let (used, event) = match advance {
                Ok(Advance::More) => return told,
                Ok(Advance::Begun { used, place }) => (used, WireEvent::Begun(place)),
                Ok(Advance::Lost { used, place, kind }) => (used, WireEvent::Lost(place, kind)),
                Ok(Advance::Unprocessed { used, place }) => (used, WireEvent::Unprocessed(place)),
                Ok(Advance::Answered { used, place }) => {
                    let answer = self.wire.answer(place, 0);
                    let body = answer.body.to_vec();
                    (used, WireEvent::Answered(place, answer.status, body, answer.body_bytes))
                }
                Err(kind) => {
                    told.push(WireEvent::Broken(kind));
                    return told;
                }
            };
            assert!(used <= input.len());
            input = &input[used..];
            let answered = matches!(event, WireEvent::Answered(..));
            told.push(event);
            if answered && input.is_empty() {
                return told;
            }
        }
    }

    /// The frames written since the last look: kind, flags, stream, payload.
    pub(super) fn written(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let out = std::mem::take(&mut self.out);
        let mut rest = out.as_slice();
        let mut frames = Vec::new();
        while let Some(head) = FrameHead::parse(rest) {
            let payload = rest[9..9 + head.length].to_vec();
            frames.push((head.kind, head.flags, head.stream, payload));
            rest = &rest[9 + head.length..];
        }
        assert!(rest.is_empty());
        frames
    }

    pub(super) fn kinds(&mut self) -> Vec<(u8, u32)> {
        self.written().into_iter().map(|(kind, _, stream, _)| (kind, stream)).collect()
    }
}

pub(super) fn answered(place: u32, status: u16, body: &[u8]) -> WireEvent {
    WireEvent::Answered(place, status, body.to_vec(), body.len() as u64)
}

#[test]
fn a_client_says_first_what_it_takes() {
    let mut wire = Http2::new(1, false);
    let mut out = Vec::new();
    wire.open(&mut out);
    let rest = out.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let expected = b"\0\0\x18\x04\0\0\0\0\0\
        \0\x01\0\0\0\0\
        \0\x02\0\0\0\0\
        \0\x04\x7f\xff\xff\xff\
        \0\x05\0\x01\0\0\
        \0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0";
    assert_eq!(rest, expected);
}

#[test]
fn a_request_that_is_repeated_shrinks_to_indexes() {
    let mut client = Client::new(3);
    let fixed = Request { fixed: Some(3), ..GET };
    client.send(0, &fixed);
    client.send(1, &fixed);
    client.send(2, &fixed);
    let frames = client.written();
    assert_eq!(frames[0], (1, 5, 1, b"\x82\x86\x44\x02/a\x41\x03h:1".to_vec()));
    assert_eq!(frames[1], (1, 5, 3, b"\x82\x86\xbf\xbe".to_vec()));
    assert_eq!(frames[2], (1, 5, 5, b"\x82\x86\xbf\xbe".to_vec()));
    // Another path moves the indexes: what was laid out is laid out anew.
    let told = client.read(&headers(1, frame::END_STREAM, &[(":status", "200")]));
    assert_eq!(told, [answered(0, 200, b"")]);
    client.send(0, &Request { fixed: Some(4), path: "/b", ..GET });
    let told = client.read(&headers(3, frame::END_STREAM, &[(":status", "200")]));
    assert_eq!(told, [answered(1, 200, b"")]);
    client.send(1, &fixed);
    let frames = client.written();
    assert_eq!(frames[0].3, b"\x82\x86\x44\x02/b\xbf");
    assert_eq!(frames[1].3, b"\x82\x86\xc0\xbf");
}

#[test]
fn a_body_follows_its_head_with_its_length() {
    let mut client = Client::new(1);
    let fields = [("x-a".to_owned(), "1".to_owned())];
    client.send(0, &Request { method: "POST", headers: &fields, body: b"{}", ..GET });
    let frames = client.written();
    assert_eq!((frames[0].0, frames[0].1, frames[0].2), (1, 4, 1));
    let mut sent = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    // Our own decoder reads it: nothing refers to the table yet.
    hpack::decode(&frames[0].3, |name, value| sent.push((text(name), text(value)))).unwrap();
    let sent: Vec<_> = sent.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/a"),
        (":authority", "h:1"),
        ("x-a", "1"),
        ("content-length", "2"),
    ];
    assert_eq!(sent, expected);
    assert_eq!(frames[1], (0, 1, 1, b"{}".to_vec()));
}

/// Everything an answer may be made of, on three streams at once.
fn medley() -> Vec<u8> {
    let mut bytes = framed(frame::PING, 0, 0, b"12345678");
    let head = block(&[(":status", "201"), ("x-long", &"y".repeat(90)), ("content-length", "6")]);
    let (first, rest) = head.split_at(30);
    let (second, third) = rest.split_at(40);
    // Padded, with a priority, in three pieces.
    let mut begin = vec![3, 0, 0, 0, 0, 16];
    begin.extend_from_slice(first);
    begin.extend_from_slice(&[0; 3]);
    bytes.extend(framed(frame::HEADERS, frame::PADDED | frame::HAS_PRIORITY, 3, &begin));
    bytes.extend(framed(frame::CONTINUATION, 0, 3, second));
    bytes.extend(framed(frame::CONTINUATION, frame::END_HEADERS, 3, third));
    bytes.extend(headers(1, 0, &[(":status", "103"), ("link", "</x>")]));
    bytes.extend(data(3, frame::PADDED, b"\x04abc\0\0\0\0"));
    bytes.extend(headers(1, 0, &[(":status", "200"), ("server", "s/2"), ("age", "7")]));
    bytes.extend(framed(frame::PRIORITY, 0, 9, &[0; 5]));
    bytes.extend(framed(0xfe, 0xff, 3, b"a frame from the future"));
    bytes.extend(data(1, 0, b"hel"));
    bytes.extend(data(1, 0, b""));
    bytes.extend(headers(5, frame::END_STREAM, &[(":status", "304"), ("content-length", "9")]));
    bytes.extend(data(3, frame::END_STREAM, b"def"));
    bytes.extend(data(1, 0, b"lo"));
    bytes.extend(headers(1, frame::END_STREAM, &[("x-check", "1")]));
    bytes.extend(data(3, frame::END_STREAM, b"late, to a closed stream"));
    bytes.extend(settings(&[(frame::MAX_FRAME_SIZE, 20_000)]));
    bytes
}

#[test]
fn an_answer_is_the_same_wherever_it_is_cut() {
    let bytes = medley();
    let expected = [answered(2, 304, b""), answered(1, 201, b"abcdef"), answered(0, 200, b"hello")];
    for cut in 0..bytes.len() {
        for second in [cut, cut + 1, (cut + bytes.len()) / 2] {
            let mut client = Client::new(3);
            (0..3).for_each(|place| client.send(place, &GET));
            client.out.clear();
            let mut told = client.read(&bytes[..cut]);
            told.extend(client.read(&bytes[cut..second]));
            told.extend(client.read(&bytes[second..]));
            assert_eq!(told, expected, "cut at {cut} and {second}");
            assert_eq!(client.seen.server.as_deref(), Some("s/2"));
            assert_eq!(client.seen.cache_hits, 2);
            let answer = client.wire.answer(1, 0);
            assert_eq!(answer.head.get("X-Long").map(str::len), Some(90));
            assert_eq!(client.kinds(), [(frame::PING, 0), (frame::SETTINGS, 0)]);
        }
    }
}

#[test]
fn with_phases_an_answer_begins_before_it_ends() {
    let mut client = Client::with(3, true, &[]);
    (0..3).for_each(|place| client.send(place, &GET));
    let told = client.read(&medley());
    let begun: Vec<_> = [1, 0, 2].into_iter().map(WireEvent::Begun).collect();
    let ended = [answered(2, 304, b""), answered(1, 201, b"abcdef"), answered(0, 200, b"hello")];
    assert_eq!(told, [begun, ended.to_vec()].concat());
}

#[test]
fn a_body_of_any_size_waits_for_its_windows() {
    let body: Vec<u8> = (0..200_000u32).map(|at| at.to_le_bytes()[1]).collect();
    let mut client = Client::with(2, false, &[(frame::INITIAL_WINDOW_SIZE, 100_000)]);
    let post = Request { method: "POST", body: &body, ..GET };
    client.send(0, &post);
    client.send(1, &post);
    let mut arrived = [Vec::new(), Vec::new()];
    let mut ended = [0; 2];
    let mut collect = |client: &mut Client| -> usize {
        let mut count = 0;
        for (kind, flags, stream, payload) in client.written() {
            if kind == frame::DATA {
                assert!(payload.len() <= 16_384);
                let which = usize::from(stream == 3);
                ended[which] += usize::from(flags & frame::END_STREAM != 0);
                count += payload.len();
                arrived[which].extend(payload);
            }
        }
        count
    };
    // The connection's window holds all, then each stream's.
    assert_eq!(collect(&mut client), 65_535);
    let more = |stream, by: u32| framed(frame::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    client.read(&more(0, 10_000));
    assert_eq!(collect(&mut client), 10_000);
    client.read(&more(0, 1_000_000));
    assert_eq!(collect(&mut client), 200_000 - 75_535);
    client.read(&more(3, 50_000));
    assert_eq!(collect(&mut client), 50_000);
    // A smaller initial window takes back what was not used; more is needed to go on.
    client.read(&settings(&[(frame::INITIAL_WINDOW_SIZE, 90_000)]));
    client.read(&more(1, 10_000));
    assert_eq!(collect(&mut client), 0);
    client.read(&settings(&[(frame::INITIAL_WINDOW_SIZE, 500_000)]));
    assert_eq!(collect(&mut client), 150_000);
    assert_eq!((ended, arrived[0] == body, arrived[1] == body), ([1, 1], true, true));
}

#[test]
fn an_answer_before_the_whole_request_was_sent_is_one() {
    let mut client = Client::new(1);
    client.send(0, &Request { method: "POST", body: &[7; 100_000], ..GET });
    client.out.clear();
    let told = client.read(&headers(1, frame::END_STREAM, &[(":status", "413")]));
    assert_eq!(told, [answered(0, 413, b"")]);
    assert_eq!(client.kinds(), [(frame::RST_STREAM, 1)]);
    client.send(0, &GET);
    client.read(&framed(frame::WINDOW_UPDATE, 0, 0, &90_000u32.to_be_bytes()));
    assert_eq!(client.kinds(), [(frame::HEADERS, 3)]);
}

#[test]
fn no_more_streams_are_opened_than_the_peer_takes() {
    let mut client = Client::with(4, false, &[(frame::MAX_CONCURRENT_STREAMS, 2)]);
    let paths = ["/0", "/1", "/2", "/3"];
    for (place, path) in (0..).zip(paths) {
        client.send(place, &Request { path, ..GET });
    }
    assert_eq!(client.kinds(), [(1, 1), (1, 3)]);
    let told = client.read(&headers(3, frame::END_STREAM, &[(":status", "200")]));
    assert_eq!(told, [answered(1, 200, b"")]);
    assert_eq!(client.kinds(), [(1, 5)]);
    // The one that waits is given up; the next finds its place in the queue.
    assert!(client.wire.cancel(3, &mut client.out));
    client.send(1, &GET);
    assert_eq!(client.kinds(), []);
    client.read(&settings(&[(frame::MAX_CONCURRENT_STREAMS, 9)]));
    let frames = client.written();
    assert_eq!((frames[1].0, frames[1].2), (1, 7));
    assert!(frames[1].3.windows(2).any(|pair| pair == b"/a"));
    let told = client.read(&headers(7, frame::END_STREAM, &[(":status", "200")]));
    assert_eq!(told, [answered(1, 200, b"")]);
}

#[test]
fn before_its_settings_a_peer_is_not_overrun() {
    let mut wire = Http2::new(300, false);
    let mut out = Vec::new();
    (0..300).for_each(|place| wire.send(place, &GET, ALL, layout(), &mut out));
    assert_eq!((wire.streams.open, wire.waiting.len()), (100, 200));
    let (mut heads, mut seen) = (BlockCache::default(), ServerFacts::default());
    wire.advance(&settings(&[]), &mut heads, &mut seen, &mut out).unwrap();
    assert_eq!((wire.streams.open, wire.waiting.len()), (300, 0));
}

#[test]
fn a_request_given_up_leaves_nothing_behind() {
    let mut client = Client::new(2);
    client.send(0, &GET);
    client.send(1, &GET);
    client.out.clear();
    let mut part = headers(1, 0, &[(":status", "200")]);
    part.extend(&data(1, frame::END_STREAM, b"abcdef")[..12]);
    assert_eq!(client.read(&part), []);
    assert!(client.wire.cancel(0, &mut client.out));
    assert_eq!(client.written(), [(frame::RST_STREAM, 0, 1, 8u32.to_be_bytes().to_vec())]);
    client.send(0, &GET);
    let mut rest = b"def".to_vec();
    rest.extend(headers(5, frame::END_STREAM, &[(":status", "204")]));
    rest.extend(headers(1, frame::END_STREAM, &[(":status", "200")]));
    rest.extend(headers(3, frame::END_STREAM, &[(":status", "200")]));
    assert_eq!(client.read(&rest), [answered(0, 204, b""), answered(1, 200, b"")]);
}

#[test]
fn a_stream_that_is_reset_or_refused_is_lost_and_the_rest_goes_on() {
    let mut client = Client::new(4);
    (0..4).for_each(|place| client.send(place, &GET));
    let mut bytes = framed(frame::RST_STREAM, 0, 3, &7u32.to_be_bytes());
    bytes.extend(headers(1, frame::END_STREAM, &[(":status", "200")]));
    assert_eq!(client.read(&bytes), [WireEvent::Lost(1, ErrorKind::Reset), answered(0, 200, b"")]);
    assert!(client.wire.why().unwrap().contains("REFUSED_STREAM"));
    assert!(client.wire.reusable());
    let mut bytes = framed(frame::GOAWAY, 0, 0, b"\0\0\0\x05\0\0\0\x0bcalm down");
    bytes.extend(headers(5, frame::END_STREAM, &[(":status", "200")]));
    assert_eq!(client.read(&bytes), [WireEvent::Lost(3, ErrorKind::Closed), answered(2, 200, b"")]);
    assert!(client.wire.why().unwrap().contains("ENHANCE_YOUR_CALM"));
    assert!(!client.wire.reusable() && client.wire.going_away());
    assert_eq!(client.wire.closed(), Err(ErrorKind::Closed));
}

#[test]
fn a_peer_that_leaves_in_order_gives_back_what_it_has_not_taken() {
    let mut client = Client::with(3, false, &[(frame::MAX_CONCURRENT_STREAMS, 1)]);
    (0..3).for_each(|place| client.send(place, &GET));
    let mut bytes = framed(frame::GOAWAY, 0, 0, b"\0\0\0\x01\0\0\0\0");
    bytes.extend(headers(1, frame::END_STREAM, &[(":status", "200")]));
    let back = WireEvent::Unprocessed;
    assert_eq!(client.read(&bytes), [back(1), back(2), answered(0, 200, b"")]);
    // Streams that were begun, too.
    let mut client = Client::new(3);
    (0..3).for_each(|place| client.send(place, &GET));
    let bytes = framed(frame::GOAWAY, 0, 0, b"\0\0\0\x03\0\0\0\0");
    assert_eq!(client.read(&bytes), [back(2)]);
}

#[test]
fn a_connection_ends_with_its_numbers_or_when_it_is_not_kept() {
    let mut client = Client::new(1);
    assert!(client.wire.reusable());
    client.wire.streams.wear_out(4);
    client.send(0, &GET);
    let id = client.kinds()[0].1;
    assert!(client.wire.reusable());
    client.read(&headers(id, frame::END_STREAM, &[(":status", "200")]));
    client.send(0, &GET);
    assert!(!client.wire.reusable() && !client.wire.going_away());
    let mut client = Client::new(1);
    let once = Layout { keep_alive: false, ..layout() };
    client.wire.send(0, &GET, ALL, once, &mut client.out);
    assert!(!client.wire.reusable());
}

#[test]
fn what_is_not_needed_is_not_kept() {
    let mut client = Client::new(1);
    client.wire.send(0, &GET, Needs::default(), layout(), &mut client.out);
    let told = client.read(&[headers(1, 0, &[(":status", "200")]), data(1, 1, b"abc")].concat());
    assert_eq!(told, [WireEvent::Answered(0, 200, Vec::new(), 3)]);
    assert!(client.wire.answer(0, 0).head.0.is_empty());
}

#[test]
fn what_was_received_is_given_back_before_the_window_is_used_up() {
    let mut client = Client::new(1);
    client.wire.send(0, &GET, Needs::default(), layout(), &mut client.out);
    client.read(&headers(1, 0, &[(":status", "200")]));
    client.out.clear();
    // As if nearly half of both windows had been used.
    let before = (1 << 30) - 6;
    assert_eq!(client.wire.receive_window.arrived(before), None);
    assert_eq!(client.wire.places[0].receive_window.arrived(before), None);
    assert_eq!(client.read(&data(1, 0, b"12345")), []);
    assert_eq!(client.written(), []);
    assert_eq!(client.read(&data(1, 0, b"6")), []);
    let back = (1u32 << 30).to_be_bytes().to_vec();
    let update = |stream| (frame::WINDOW_UPDATE, 0, stream, back.clone());
    assert_eq!(client.written(), [update(0), update(1)]);
}
