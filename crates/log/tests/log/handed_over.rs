//! Records handed over by a batcher: what the receiver refuses, and that each piece takes effect
//! once.

use crate::oracle::{append, read_all, small_segments};
use crate::shared::{node, take_lead};
use crate::shared_trouble::{HandClock, by_turns};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use wellspring_format::sealed_parts::{KeyId, PartKind, PartsWriter};
use wellspring_log::batcher::{
    Batcher, CloseOutcome, EventTemplate, HandOver, HandOverOutcome, HandedPiece,
    Options as Batching,
};
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{
    AcceptedStats, AppendError, Appended, Claims, EncodedEvents, HANDED_OVER_BYTES,
    HANDED_OVER_EVENTS, HandedOverFault, Log, Options, RecordView, RequestKey, Role, SharedOptions,
    TurnProgress,
};
use wellspring_patience::{PATIENCE, until};
use wellspring_types::{DataKind, Event};

fn key(number: u8) -> RequestKey {
    RequestKey { key: format!("piece-{number}"), digest: [number; 16] }
}

fn records(events: &[Event]) -> Vec<u8> {
    let mut encoded = EncodedEvents::new();
    events.iter().for_each(|event| encoded.push(&event.as_ref()).unwrap());
    encoded.bytes().to_vec()
}

fn event(number: u64) -> Event {
    Event::json("Handed", &["a:b", &format!("n:{number}")], &number.to_string())
}

fn take(log: &Log, records: &[u8], key: RequestKey) -> Result<Appended, AppendError> {
    let (tell, told) = mpsc::channel();
    log.take_handed_over(records, key, Box::new(move |done| tell.send(done).unwrap())).unwrap();
    told.recv_timeout(PATIENCE).unwrap()
}

fn fault(log: &Log, records: &[u8]) -> HandedOverFault {
    let unheard = Box::new(|outcome| panic!("told besides: {outcome:?}"));
    log.take_handed_over(records, key(0), unheard).unwrap_err()
}

fn fresh() -> Log {
    Log::open_on(Arc::new(SimulatedStorage::new(1)), small_segments()).unwrap()
}

#[test]
fn pieces_are_stored_once_and_count_for_the_giver_alone() {
    let log = fresh();
    let piece = records(&[event(1), event(2), event(3)]);
    let first = take(&log, &piece, key(1)).unwrap();
    assert_eq!((first.first, first.last, first.replayed), (1, 3, false));
    let again = take(&log, &piece, key(1)).unwrap();
    assert_eq!((again.first, again.last, again.replayed), (1, 3, true));
    let other = records(&[event(4)]);
    let reused = take(&log, &other, key(1));
    assert_eq!(reused, Err(AppendError::KeyReused { first: 1 }));
    assert!(matches!(HandOverOutcome::of(&reused), HandOverOutcome::Refused(_)));
    assert_eq!(take(&log, &other, key(2)).unwrap().first, 4);
    assert_eq!(log.accepted_stats(), AcceptedStats::default());
    let stored: Vec<Event> = read_all(&log).into_iter().map(|seen| seen.event).collect();
    assert_eq!(stored, (1..=4).map(event).collect::<Vec<_>>());
    log.close();
    let outcome = HandOverOutcome::of(&take(&log, &other, key(3)));
    assert_eq!(outcome, HandOverOutcome::NotTaken);
}

#[test]
fn what_is_no_piece_is_refused_by_its_fault() {
    let log = fresh();
    let good = records(&[event(1), event(2)]);
    let len = RecordView::length(&good).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        fault(&log, &bytes).to_string()
    };
    /// Recomputes the checksum of the first record.
    fn mend(bytes: &mut [u8], len: usize) {
        let crc = crc32c::crc32c(&bytes[24..len]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    }
    assert_eq!(fault(&log, &[]), HandedOverFault::Empty);
    assert!(with(&|bytes| bytes.truncate(len + 7)).starts_with("record 1 cannot be read"));
    assert!(with(&|bytes| bytes[..4].fill(255)).contains("its length is impossible"));
    assert!(with(&|bytes| bytes[len - 1] ^= 1).contains("its checksum does not match"));
    assert!(with(&|bytes| bytes[8] = 1).contains("position"));
    assert!(with(&|bytes| bytes[len + 20] = 1).starts_with("record 1 has a position or a time"));
    let unknown_flag = with(&|bytes| {
        bytes[27] |= 128;
        mend(bytes, len);
    });
    assert!(unknown_flag.contains("its layout is invalid"), "{unknown_flag}");
    let control = with(&|bytes| {
        bytes[32] = 7;
        mend(bytes, len);
    });
    assert!(control.starts_with("events[0].type"), "{control}");
    let twice = with(&|bytes| {
        // Its second tag becomes its first.
        bytes[43..46].copy_from_slice(b"a:b");
        mend(bytes, len);
    });
    assert!(twice.starts_with("events[0].tags[1]"), "{twice}");
    // A shared log has none, and its segments could not say so.
    let mut sealed = EncodedEvents::new();
    let mut parts = PartsWriter::default();
    parts.push((0, PartKind::Personal, &KeyId([1; 32])), b"1", |_, _, _| ());
    sealed.push_sealed(&event(1).as_ref(), parts.bytes(), 0).unwrap();
    assert_eq!(fault(&log, sealed.bytes()), HandedOverFault::Sealed { record: 0 });
    // Taken from a log: with a key and a position.
    take(&log, &good, key(1)).unwrap();
    let many = records(&[Event::json("T", &[], "1")]).repeat(HANDED_OVER_EVENTS + 1);
    assert_eq!(fault(&log, &many), HandedOverFault::TooMany);
    let large = Event::json("T", &[], &format!("\"{}\"", "x".repeat(600_000)));
    let large = records(&[large.clone(), large]);
    assert_eq!(fault(&log, &large), HandedOverFault::TooLong { bytes: large.len() });
    let largest = format!("\"{}\"", "x".repeat(HANDED_OVER_BYTES - 2));
    let largest = records(&[Event::json("T", &["a"], &largest)]);
    assert!(largest.len() > HANDED_OVER_BYTES, "one alone may be longer");
    assert_eq!(take(&log, &largest, key(2)).unwrap().first, 3);
    let bad_key = RequestKey { key: "\n".into(), digest: [0; 16] };
    assert!(matches!(take(&log, &good, bad_key), Err(AppendError::Invalid(_))));
    assert_eq!(log.head(), 3, "nothing else was stored");
}

#[test]
fn a_keyed_record_is_refused() {
    let log = fresh();
    let mut bytes = records(&[event(1)]);
    let mut section = 1u16.to_le_bytes().to_vec();
    section.extend_from_slice(&[0; 16]);
    section.extend_from_slice(b"\x01k");
    bytes.splice(32..32, section);
    bytes[27] |= 4;
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[24..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(fault(&log, &bytes), HandedOverFault::Keyed { record: 0 });
}

proptest! {
    #[test]
    fn no_bytes_make_the_receiver_panic_and_no_changed_bit_is_taken(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
        mends in any::<bool>(),
    ) {
        let log = fresh();
        if mends && bytes.len() >= 32 {
            let len = bytes.len() as u32;
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            bytes[8..24].fill(0);
            bytes[27] &= 7;
            let crc = crc32c::crc32c(&bytes[24..]);
            bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        }
        let _ = log.take_handed_over(&bytes, key(1), Box::new(|_| {}));
        let mut good = records(&[event(1), event(2)]);
        let at = at.index(good.len());
        good[at] ^= 1 << bit;
        let taken = log.take_handed_over(&good, key(2), Box::new(|_| {}));
        prop_assert!(taken.is_err());
    }
}

/// A node that does not judge: its clock and its engine are driven by hand.
fn told_node(world: &SimulatedLog, clock: &Arc<HandClock>) -> Log {
    let engine = Box::new(world.connect(1));
    let options = SharedOptions { claims: Claims::WhenTold, ..node(1) };
    let storage = Arc::new(SimulatedStorage::new(1));
    let log = Log::open_shared(storage, by_turns(clock), options, engine).unwrap();
    run(&log);
    log
}

fn run(log: &Log) {
    while log.turn().did == TurnProgress::Something {}
}

#[test]
fn a_piece_that_comes_again_while_it_is_under_way_shares_its_doubt() {
    for arrives in [true, false] {
        let (world, clock) = (SimulatedLog::immediate(), Arc::default());
        let log = told_node(&world, &clock);
        let piece = records(&[event(1), event(2)]);
        let told: Arc<Mutex<Vec<Result<Appended, AppendError>>>> = Arc::default();
        let give = || {
            let told = Arc::clone(&told);
            let done = Box::new(move |outcome| told.lock().unwrap().push(outcome));
            log.take_handed_over(&piece, key(1), done).unwrap();
            run(&log);
        };
        give();
        let outcome = told.lock().unwrap().pop().unwrap();
        assert_eq!(outcome, Err(AppendError::NotLeading { leader: None }));
        assert_eq!(HandOverOutcome::of(&outcome), HandOverOutcome::NotTaken);
        log.claim_lead();
        run(&log);
        world.disconnect(1);
        give();
        give();
        assert_eq!(*told.lock().unwrap(), [], "nothing is known");
        if !arrives {
            let claim =
                wellspring_log::shared::entry::Claim { epoch: 9, node: "x", start: 1, url: "" };
            let other = wellspring_log::shared::entry::Entry::Claim(claim).encode();
            world.append(&other);
        }
        world.reconnect(1);
        run(&log);
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 2);
        if arrives {
            let placed = told.iter().map(|told| told.as_ref().unwrap());
            let placed: Vec<_> = placed.map(|told| (told.first, told.replayed)).collect();
            assert_eq!(placed, [(1, false), (1, true)]);
        } else {
            assert!(
                told.iter().all(|told| matches!(told, Err(AppendError::NotLeading { .. }))),
                "{told:?}"
            )
        }
    }
}

/// A hand-over that is a function.
struct FnHandOver<F>(F);

impl<F: FnMut(HandedPiece<'_>) -> HandOverOutcome + Send + 'static> HandOver for FnHandOver<F> {
    fn hand_over(&mut self, piece: HandedPiece<'_>) -> HandOverOutcome {
        (self.0)(piece)
    }
}

fn push(batcher: &Batcher, numbers: std::ops::Range<u64>) {
    let template = EventTemplate::new("Handed", &["a:b"]).unwrap();
    let mut producer = batcher.producer(0, None);
    for number in numbers {
        producer.push_event(&template, DataKind::Json, number.to_string().as_bytes()).unwrap();
    }
}

fn numbers(log: &Log) -> Vec<u64> {
    let number = |data: Vec<u8>| std::str::from_utf8(&data).unwrap().parse().unwrap();
    read_all(log).into_iter().map(|seen| number(seen.event.data)).collect()
}

/// Two nodes, the first of which leads. However busy the machine is, neither claims on its own.
fn two() -> [Log; 2] {
    let world = SimulatedLog::immediate();
    let logs = [1, 2].map(|number| {
        let options = SharedOptions { claims: Claims::WhenTold, ..node(number) };
        let storage = Arc::new(SimulatedStorage::new(number));
        let engine = Box::new(world.connect(number));
        Log::open_shared(storage, small_segments(), options, engine).unwrap()
    });
    take_lead(&logs[0]);
    until("it follows", || matches!(logs[1].role(), Role::Following { leader: Some(_) }));
    logs
}

#[test]
fn a_batcher_hands_over_where_it_does_not_lead_and_stores_where_it_does() {
    let [leader, other] = two();
    let (to, pieces) = (leader.clone(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&pieces);
    let hand_over = Box::new(FnHandOver(move |piece: HandedPiece<'_>| {
        seen.lock().unwrap().push((piece.key.key.clone(), piece.records.len(), piece.events));
        HandOverOutcome::of(&take(&to, piece.records, piece.key))
    }));
    let batcher = other.batcher_handing_over(Batching::default(), hand_over).unwrap();
    push(&batcher, 0..50_000);
    until("all is stored", || batcher.figures().stored.events == 50_000);
    let figures = batcher.figures();
    assert_eq!(figures.stored, figures.accepted);
    let handed = pieces.lock().unwrap().clone();
    assert_eq!(handed.iter().map(|(_, _, events)| u64::from(*events)).sum::<u64>(), 50_000);
    assert!(handed.iter().all(|(_, bytes, _)| *bytes <= HANDED_OVER_BYTES));
    assert!(handed.iter().any(|(_, _, events)| *events == 4000), "pieces are joined");
    let keys: std::collections::BTreeSet<_> = handed.iter().map(|(key, ..)| key).collect();
    assert_eq!(keys.len(), handed.len(), "no key twice");
    assert!(keys.iter().all(|key| key.starts_with("server:handed-over/node-2/")), "{keys:?}");
    take_lead(&other);
    push(&batcher, 50_000..60_000);
    batcher.close();
    assert_eq!(batcher.figures().stored.events, 60_000);
    assert_eq!(pieces.lock().unwrap().len(), handed.len(), "now it stores by itself");
    assert_eq!(numbers(&other), (0..60_000).collect::<Vec<_>>());
    assert_eq!(leader.accepted_stats(), AcceptedStats::default());
}

/// The answer is lost, and the sending node leads when the piece comes again: it may or may not
/// find it in its own log.
#[test]
fn a_piece_in_doubt_is_stored_once_by_the_giver_that_leads_meanwhile() {
    for was_taken in [true, false] {
        let [leader, other] = two();
        let (to, own) = (leader.clone(), other.clone());
        let calls = Arc::new(AtomicU64::new(0));
        let called = Arc::clone(&calls);
        let hand_over = Box::new(FnHandOver(move |piece: HandedPiece<'_>| {
            called.fetch_add(1, Ordering::SeqCst);
            if was_taken {
                take(&to, piece.records, piece.key).unwrap();
            }
            take_lead(&own);
            HandOverOutcome::Unknown
        }));
        let batcher = other.batcher_handing_over(Batching::default(), hand_over).unwrap();
        push(&batcher, 0..10);
        batcher.close();
        assert_eq!(batcher.figures().stored.events, 10);
        assert_eq!(numbers(&other), (0..10).collect::<Vec<_>>(), "taken before: {was_taken}");
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}

/// A node that reports no effect does not know about earlier attempts: the piece keeps its key.
#[test]
fn a_piece_in_doubt_keeps_its_bytes_and_key_until_it_is_stored() {
    let [leader, other] = two();
    let (to, seen) = (leader.clone(), Arc::new(Mutex::new(Vec::new())));
    let all = Arc::clone(&seen);
    let hand_over = Box::new(FnHandOver(move |piece: HandedPiece<'_>| {
        let mut all = all.lock().unwrap();
        all.push((piece.key.clone(), piece.records.to_vec()));
        match all.len() {
            1 | 2 => HandOverOutcome::NotTaken,
            3 => {
                take(&to, piece.records, piece.key).unwrap();
                HandOverOutcome::Unknown
            }
            4 | 5 => HandOverOutcome::NotTaken,
            6 => HandOverOutcome::Unknown,
            _ => HandOverOutcome::of(&take(&to, piece.records, piece.key)),
        }
    }));
    let batcher = other.batcher_handing_over(Batching::default(), hand_over).unwrap();
    push(&batcher, 0..10);
    until("all is stored", || batcher.figures().stored.events == 10);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 7);
    assert!(seen[2..].iter().all(|piece| *piece == seen[2]), "the same piece");
    assert!(seen[0].0 != seen[1].0 && seen[1].0 != seen[2].0, "not taken: it is another piece");
    assert_eq!(numbers(&leader), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_piece_that_is_refused_ends_the_batcher_and_is_told_as_lost() {
    let [leader, other] = two();
    let (all_pushed, wait) = std::sync::mpsc::channel::<()>();
    let refuses = move |_: HandedPiece<'_>| {
        // Not before: the batcher takes nothing after it.
        let _ = wait.recv();
        HandOverOutcome::Refused("too new for me".into())
    };
    let batcher =
        other.batcher_handing_over(Batching::default(), Box::new(FnHandOver(refuses))).unwrap();
    push(&batcher, 0..10);
    drop(all_pushed);
    until("it has ended", || batcher.refusal().is_some());
    assert!(batcher.refusal().unwrap().to_string().contains("too new for me"));
    batcher.close();
    assert_eq!(batcher.figures().lost_possible().events, 10);
    assert_eq!(leader.head(), 0);
}

#[test]
fn a_batcher_that_closes_does_not_wait_for_a_piece_in_doubt_for_ever() {
    let [leader, other] = two();
    for limit in [Some(Duration::from_millis(200)), None] {
        let unknown = |_: HandedPiece<'_>| HandOverOutcome::Unknown;
        let batcher =
            other.batcher_handing_over(Batching::default(), Box::new(FnHandOver(unknown))).unwrap();
        push(&batcher, 0..10);
        match limit {
            Some(limit) => assert_eq!(batcher.close_within(limit), CloseOutcome::Ended),
            None => batcher.close(),
        }
        assert_eq!(batcher.figures().lost_possible().events, 10);
    }
    assert_eq!(leader.head(), 0);
}

#[test]
fn a_log_of_files_hands_nothing_over() {
    let log = Log::open_on(Arc::new(SimulatedStorage::new(1)), Options::default()).unwrap();
    let never = |_: HandedPiece<'_>| panic!("it always leads");
    let batcher =
        log.batcher_handing_over(Batching::default(), Box::new(FnHandOver(never))).unwrap();
    push(&batcher, 0..10);
    batcher.close();
    assert_eq!(numbers(&log), (0..10).collect::<Vec<_>>());
    log.append(append(&[event(1)])).unwrap();
}
