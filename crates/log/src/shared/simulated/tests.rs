use super::*;
use crate::shared::{
    Arrival, AskId, Fetched, LogStart, OfferId, OfferOutcome, SharedLog, SharedLogError,
};
use crate::threads::Signal;

fn entry(i: u64) -> Arc<[u8]> {
    i.to_le_bytes().into()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn now(node: &mut SimulatedNode) -> Result<Arrival, SharedLogError> {
    node.next(Waker::noop())
}

/// The next arrival, waiting for at most this many seconds.
fn patiently(node: &mut SimulatedNode, seconds: u64) -> Result<Arrival, SharedLogError> {
    let mut arrival = NOTHING;
    Signal::wait(Duration::from_secs(seconds), |waker| {
        arrival = node.next(waker);
        arrival != NOTHING
    });
    arrival
}

fn placed(id: u64, place: u64) -> Result<Arrival, SharedLogError> {
    Ok(Arrival::Offer { id: OfferId(id), outcome: OfferOutcome::Placed(Place(place)) })
}

fn stands(place: u64, i: u64) -> Result<Arrival, SharedLogError> {
    Ok(Arrival::Entry { place: Place(place), entry: entry(i) })
}

const NOTHING: Result<Arrival, SharedLogError> = Ok(Arrival::Nothing);

#[test]
fn offers_land_at_once_and_every_node_sees_them_in_one_order() {
    let log = SimulatedLog::immediate();
    let (mut a, mut b) = (log.connect(1), log.connect(2));
    a.follow(Place(0));
    b.follow(Place(0));
    a.offer(OfferId(1), Place(0), entry(10));
    b.offer(OfferId(1), Place(0), entry(20));
    assert_eq!((now(&mut a), now(&mut a)), (placed(1, 1), stands(1, 10)));
    assert_eq!((now(&mut a), now(&mut a)), (stands(2, 20), NOTHING));
    b.ask_end(AskId(7));
    assert_eq!(now(&mut b), placed(1, 2));
    assert_eq!(now(&mut b), Ok(Arrival::End { id: AskId(7), end: Some(Place(2)) }));
    assert_eq!((now(&mut b), now(&mut b)), (stands(1, 10), stands(2, 20)));
    let mut late = log.connect(3);
    late.follow(Place(1));
    assert_eq!((now(&mut late), now(&mut late)), (stands(2, 20), NOTHING));
    let (one, two) = ((Place(1), entry(10)), (Place(2), entry(20)));
    assert_eq!(late.fetch(Place(0), 1), Ok(Fetched::Entries(vec![one.clone()])));
    assert_eq!(late.fetch(Place(0), 16), Ok(Fetched::Entries(vec![one, two])));
    assert_eq!(late.fetch(Place(2), 16), Ok(Fetched::Entries(Vec::new())));
}

#[test]
fn a_reader_that_got_nothing_is_woken_by_the_next_entry() {
    let log = SimulatedLog::immediate();
    let mut reader = log.connect(1);
    reader.follow(Place(0));
    let (send, woken) = std::sync::mpsc::channel();
    let thread = crate::threads::spawn("reader", move || {
        send.send(patiently(&mut reader, 60)).unwrap();
    })
    .unwrap();
    let mut writer = log.connect(2);
    writer.offer(OfferId(1), Place(0), entry(5));
    assert_eq!(woken.recv().unwrap(), stands(1, 5));
    thread.join().unwrap();
}

#[test]
fn by_hand_nothing_happens_by_itself() {
    let log = SimulatedLog::by_hand(1);
    let mut a = log.connect(1);
    a.follow(Place(0));
    for i in 1..=4 {
        a.offer(OfferId(i), Place(0), entry(i));
    }
    a.ask_end(AskId(1));
    assert_eq!(now(&mut a), NOTHING);
    let ids: Vec<UnderWayId> = log.under_way().iter().map(|under_way| under_way.id).collect();
    // The third overtakes the first, which lands twice; the second is lost, and the fourth lands
    // without a report.
    assert_eq!(log.land(ids[2]), Landing::Stands(Place(1)));
    let again = log.duplicate(ids[0]).unwrap();
    assert_eq!(log.land(ids[0]), Landing::Stands(Place(2)));
    assert_eq!(log.land(ids[0]), Landing::NothingToLand);
    log.lose(ids[1]);
    log.report_unknown(ids[3]);
    let unknown = Ok(Arrival::Offer { id: OfferId(4), outcome: OfferOutcome::Unknown });
    assert_eq!((now(&mut a), now(&mut a)), (unknown, NOTHING));
    let stages: Vec<Stage> = log.under_way().iter().map(|under_way| under_way.stage).collect();
    let (settled, zombie) = (Stage::Settled, Stage::Zombie);
    assert_eq!(stages, [settled, settled, zombie, Stage::Asked, zombie]);
    assert_eq!(log.land(ids[3]), Landing::Stands(Place(3)));
    log.report(ids[0]);
    assert_eq!(now(&mut a), placed(1, 2));
    assert_eq!(log.land(again), Landing::Stands(Place(4)));
    log.lose(ids[2]);
    log.show(1, 2);
    assert_eq!((now(&mut a), now(&mut a), now(&mut a)), (stands(1, 3), stands(2, 1), NOTHING));
    log.answer(ids[4]);
    let Ok(Arrival::End { end: Some(end), .. }) = now(&mut a) else { panic!("an answer") };
    assert!(end <= Place(4));
    assert_eq!(log.show(1, 100), Place(4));
    assert_eq!(log.waiting_for(1), 2);
    assert_eq!((now(&mut a), now(&mut a)), (stands(3, 4), stands(4, 1)));
    assert_eq!(log.under_way_len(), 0);
}

#[test]
fn a_question_is_answered_by_a_place_not_before_the_end_when_it_was_asked() {
    for seed in 0..50 {
        let log = SimulatedLog::by_hand(seed);
        let mut a = log.connect(1);
        log.append(b"1");
        a.ask_end(AskId(1));
        log.append(b"2");
        log.append(b"3");
        log.answer(log.under_way()[0].id);
        let Ok(Arrival::End { end: Some(end), .. }) = now(&mut a) else { panic!("an answer") };
        assert!((Place(1)..=Place(3)).contains(&end), "{end:?}");
        a.ask_end(AskId(2));
        log.answer_unknown(log.under_way()[0].id);
        assert_eq!(now(&mut a), Ok(Arrival::End { id: AskId(2), end: None }));
    }
}

#[test]
fn an_engine_that_compares_refuses_what_is_stale() {
    let settings = Settings { compares: true, ..Settings::default() };
    let log = SimulatedLog::immediate().with(settings);
    let (mut a, mut b) = (log.connect(1), log.connect(2));
    a.offer(OfferId(1), Place(0), entry(1));
    b.offer(OfferId(1), Place(0), entry(2));
    assert_eq!(now(&mut a), placed(1, 1));
    let refused = Ok(Arrival::Offer { id: OfferId(1), outcome: OfferOutcome::Refused });
    assert_eq!(now(&mut b), refused);
    b.offer(OfferId(2), Place(1), entry(3));
    assert_eq!(now(&mut b), placed(2, 2));
    let log = SimulatedLog::by_hand(0).with(settings);
    let mut c = log.connect(3);
    c.offer(OfferId(1), Place(0), entry(1));
    let first = log.under_way()[0].id;
    let twice = log.duplicate(first).unwrap();
    assert_eq!(log.land(first), Landing::Stands(Place(1)));
    assert_eq!(log.land(twice), Landing::Refused);
}

#[test]
fn offers_of_the_dead_may_land() {
    let log = SimulatedLog::by_hand(1);
    let mut a = log.connect(1);
    a.offer(OfferId(1), Place(0), entry(1));
    drop(a);
    let under_way = log.under_way();
    assert_eq!(under_way[0].stage, Stage::Zombie);
    assert_eq!(log.land(under_way[0].id), Landing::Stands(Place(1)));
    log.report(under_way[0].id);
    assert_eq!(log.entries(), [(Place(1), entry(1))]);
    assert_eq!(log.under_way_len(), 0);
}

#[test]
fn a_node_that_is_cut_off_hears_nothing_until_it_is_connected_again() {
    let log = SimulatedLog::immediate();
    let mut a = log.connect(1);
    a.follow(Place(0));
    log.disconnect(1);
    a.offer(OfferId(1), Place(0), entry(1));
    assert!(matches!(now(&mut a), Err(SharedLogError::Unavailable { .. })));
    assert!(a.fetch(Place(0), 1).is_err() && a.gap_after(Place(0)).is_err());
    assert_eq!(log.end(), Place(0));
    log.reconnect(1);
    assert_eq!((now(&mut a), now(&mut a)), (placed(1, 1), stands(1, 1)));
}

#[test]
fn what_was_dropped_or_forgotten_is_gone() {
    let log = SimulatedLog::immediate();
    (0..5u64).for_each(|i| {
        log.append(&entry(i));
    });
    log.drop_up_to(Place(2));
    let mut a = log.connect(1);
    let lost = LogStart { place: Place(2), state: None };
    assert_eq!((a.gap_after(Place(1)), a.gap_after(Place(2))), (Ok(Some(lost)), Ok(None)));
    a.follow(Place(1));
    assert!(matches!(now(&mut a), Err(SharedLogError::Unusable { .. })));
    assert!(matches!(a.fetch(Place(1), 9), Err(SharedLogError::Unusable { .. })));
    let mut b = log.connect(2);
    b.follow(Place(2));
    assert_eq!(now(&mut b), stands(3, 2));
    log.forget_after(Place(3));
    assert_eq!((log.end(), now(&mut b)), (Place(3), NOTHING));
    log.append(&entry(9));
    assert_eq!(now(&mut b), stands(4, 9));
}

#[test]
fn the_elected_node_is_reported_as_set() {
    let settings = Settings { elects: true, ..Settings::default() };
    let log = SimulatedLog::by_hand(1).with(settings);
    let (a, b) = (log.connect(1), log.connect(2));
    log.elect(1, EngineLeader::ThisNode);
    assert_eq!(a.engine_leader(), Some(EngineLeader::ThisNode));
    assert_eq!(b.engine_leader(), Some(EngineLeader::NotThisNode));
    assert_eq!(SimulatedLog::immediate().connect(1).engine_leader(), None);
}

#[test]
fn faults_lose_repeat_delay_and_reorder_offers_but_never_what_stands() {
    let faults = Faults {
        lose_permille: 100,
        duplicate_permille: 100,
        reorder_permille: 200,
        delay_us: 300,
    };
    let log = SimulatedLog::faulty(3, faults);
    let mut a = log.connect(1);
    a.follow(Place(0));
    for i in 0..500 {
        a.offer(OfferId(i), Place(0), entry(i));
    }
    let (mut arrived, mut outcomes) = (Vec::new(), 0);
    loop {
        match patiently(&mut a, 1).unwrap() {
            Arrival::Entry { place, entry } => {
                assert_eq!(place, Place(arrived.len() as u64 + 1));
                arrived.push(number(&entry));
            }
            Arrival::Offer { .. } => outcomes += 1,
            Arrival::End { .. } => unreachable!("nothing was asked"),
            Arrival::Gap(_) | Arrival::Nothing => break,
        }
    }
    let there: std::collections::BTreeSet<u64> = arrived.iter().copied().collect();
    assert!((400..490).contains(&there.len()), "{} lost", 500 - there.len());
    assert!(arrived.len() > there.len() + 20, "repeated");
    assert!(!arrived.is_sorted(), "reordered");
    assert!((450..500).contains(&outcomes), "{outcomes} outcomes");
    let mut b = log.connect(2);
    b.follow(Place(0));
    for (i, expected) in arrived.iter().enumerate() {
        assert_eq!(now(&mut b), stands(i as u64 + 1, *expected));
    }
}
