//! Arbitrary bytes as a Bolt connection after its handshake, in one piece and in several: the same
//! asks and the same answers, nothing before authentication, at most one summary a message, memory
//! in proportion to the input, and never a panic.
use wellspring_bolt::{
    Failure, MAX_CHUNK_BYTES, Phase, Remaining, Session, Version, begin_message, end_message,
    measure_messages,
};

/// Memory of a session without input, in bytes.
const BASE_BYTES: usize = 8 << 10;

/// The asks, the output, and whether the connection ended.
type Played = (Vec<String>, Vec<u8>, bool);

fn play(version: Version, input: &[u8], lengths: &[u8], answers: u8) -> Played {
    let mut session = Session::new(version);
    let (mut asks, mut sent, mut rest) = (Vec::new(), Vec::new(), input);
    let mut lengths = lengths.iter().map(|length| usize::from(*length) + 1);
    while !rest.is_empty() && !session.is_closed() {
        let (piece, after) = rest.split_at(lengths.next().unwrap_or(rest.len()).min(rest.len()));
        rest = after;
        session.receive(piece);
        assert!(session.memory_bytes() <= BASE_BYTES + 32 * input.len());
        while let Some(ask) = session.next_ask() {
            let is_early = matches!(session.phase(), Phase::Negotiation | Phase::Authentication);
            assert_eq!(is_early, ["HELLO", "LOGON"].contains(&ask.name()));
            match answers >> (asks.len() % 4 * 2) & 3 {
                0 | 1 => session.succeed(Remaining::Nothing, |_| {}),
                2 => session.succeed(Remaining::Rows, |metadata| metadata.int("t_first", 1)),
                _ => session.fail(&Failure::new("Neo.ClientError.Statement.X", "no")),
            }
            asks.push(format!("{ask:?}"));
        }
        sent.extend_from_slice(session.output());
        session.consume(session.output().len());
    }
    (asks, sent, session.is_closed())
}

/// Messages of the lengths that the input has before each, behind a greeting.
fn framed(mut input: &[u8]) -> (Vec<u8>, u64) {
    let (mut out, mut messages) = (Vec::new(), 2);
    for greeting in [[0xB1, 0x01, 0xA0], [0xB1, 0x6A, 0xA0]] {
        let start = begin_message(&mut out);
        out.extend_from_slice(&greeting);
        end_message(&mut out, start);
    }
    while let Some((&length, rest)) = input.split_first() {
        let (message, rest) = rest.split_at(usize::from(length).min(rest.len()));
        input = rest;
        if !message.is_empty() {
            let start = begin_message(&mut out);
            out.extend_from_slice(message);
            end_message(&mut out, start);
            messages += 1;
        }
    }
    (out, messages)
}

pub fn run(bytes: &[u8]) {
    let Some(([minor, answers, form, lengths @ ..], input)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let version = Version::new(5, minor % 9).or(Version::new(4, 4)).expect("served");
    let (input, messages) = if form & 1 == 0 { (input.to_vec(), u64::MAX) } else { framed(input) };
    assert!(input.len() < MAX_CHUNK_BYTES);
    let whole = play(version, &input, &[], *answers);
    let cut = play(version, &input, lengths, *answers);
    // A reset jumps ahead of what it comes with: then the pieces make a difference.
    let jumps = |pair: &[u8]| matches!(pair, [0xB0, 0x0F | 0x02]);
    if !input.windows(2).any(jumps) {
        assert_eq!(whole, cut);
    }
    for (_, sent, _) in [whole, cut] {
        let measured = measure_messages(&sent, u64::MAX);
        assert_eq!(measured.bytes, sent.len(), "only whole messages are sent");
        assert!(measured.messages <= messages);
    }
}
