//! Order under failures, outages, stops.

use super::*;
use crate::sink::{CursorKeeper, Pump, PumpSettings};
use proptest::prelude::*;

/// Accepts an event once `accept` allows it, and checks that every earlier event with its key has
/// been accepted.
struct OrderCheck {
    accepted: BTreeMap<String, Vec<u64>>,
    attempts: BTreeMap<u64, usize>,
}

impl OrderCheck {
    fn new() -> Arc<Mutex<OrderCheck>> {
        let check = OrderCheck { accepted: BTreeMap::new(), attempts: BTreeMap::new() };
        Arc::new(Mutex::new(check))
    }

    /// Records a request; returns the number of earlier attempts at its event.
    fn attempt(&mut self, request: &ReceivedRequest) -> usize {
        let attempts = self.attempts.entry(request.position()).or_default();
        *attempts += 1;
        *attempts - 1
    }

    fn accept(&mut self, request: &ReceivedRequest) {
        let tags = request.header("wellspring-tags").unwrap().to_owned();
        let accepted = self.accepted.entry(tags).or_default();
        if !accepted.contains(&request.position()) {
            accepted.push(request.position());
        }
    }
}

#[test]
fn events_of_a_key_are_accepted_one_after_the_other_whatever_fails() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b", "a", "c", "a", "b", "a", "c", "b", "a"]);
    let check = OrderCheck::new();
    let of_script = Arc::clone(&check);
    let receiver = Receiver::start(move |request| {
        let mut check = of_script.lock().unwrap();
        let earlier = check.attempt(request);
        match (request.position() + earlier as u64) % 4 {
            _ if earlier >= 3 => {}
            0 => return Reply::status(503),
            1 => return Reply::Close,
            2 => return Reply::text(404, "not yet"),
            _ => {}
        }
        check.accept(request);
        Reply::status(201)
    });
    assert_eq!(bench.deliver(&mut bench.destination(receiver.url(), |_| ())), Ok(10));
    let check = check.lock().unwrap();
    let accepted: Vec<&[u64]> = check.accepted.values().map(Vec::as_slice).collect();
    assert_eq!(accepted, [&[1, 3, 5, 7, 10][..], &[2, 6, 9], &[4, 8]]);
    // An event is not even sent before the previous one is accepted.
    let sent = receiver.received();
    for positions in accepted {
        let of_key = sent.iter().map(ReceivedRequest::position).filter(|at| positions.contains(at));
        assert!(of_key.is_sorted(), "{:?}", receiver.positions());
    }
    assert!(bench.retries() > 0);
}

#[test]
fn a_key_that_fails_holds_up_no_other_and_a_stop_tells_how_far_it_came() {
    let bench = Bench::new();
    bench.append_keys(&["b", "b", "a", "b", "a", "b", "b"]);
    let receiver =
        Receiver::start(|request| Reply::status(if request.position() == 3 { 500 } else { 200 }));
    let mut destination = bench.destination(receiver.url(), |_| ());
    let others_done = || receiver.positions().contains(&7) && bench.is_retrying();
    let reached = bench.deliver_until(&mut destination, others_done);
    assert_eq!(reached, Ok(2), "the events up to the one that fails");
    let positions: BTreeSet<u64> = receiver.positions().into_iter().collect();
    assert_eq!(positions.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 6, 7], "5 waits for 3");
    match bench.status.state() {
        ConnectorState::Retrying { reason } => {
            assert!(reason.contains("position 3") && reason.contains("500"), "{reason}");
            assert!(!reason.contains("of-the-url"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_without_a_key_wait_for_none() {
    let bench = Bench::new();
    bench.append_keys(&["a", "a", "a"]);
    bench.append(&Event::json("T", &[], "1"));
    let accepted = Arc::new(Mutex::new(BTreeSet::new()));
    let of_script = Arc::clone(&accepted);
    // The first is accepted once all others are.
    let receiver = Receiver::start(move |request| {
        let mut accepted = of_script.lock().unwrap();
        if request.position() == 1 && accepted.len() < 3 {
            return Reply::status(500);
        }
        accepted.insert(request.position());
        Reply::status(200)
    });
    let mut destination = bench.destination(receiver.url(), |settings| {
        settings.partition_by = None;
    });
    assert_eq!(bench.deliver(&mut destination), Ok(4));
}

#[test]
fn no_answer_in_time_is_tried_again_and_does_not_count() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b"]);
    let mut silences = 3;
    let receiver = Receiver::start(move |request| match request.position() {
        1 if silences > 0 => {
            silences -= 1;
            Reply::Silence
        }
        _ => Reply::status(200),
    });
    let mut destination = bench.destination(receiver.url(), |settings| {
        settings.target.timeout_ms = 100;
        settings.target.max_tries = Some(1);
    });
    assert_eq!(bench.deliver(&mut destination), Ok(2));
    assert_eq!(receiver.received().len(), 5);
    assert_eq!(bench.retries(), 3);
}

#[test]
fn an_outage_is_waited_for_with_few_attempts_and_sets_nothing_aside() {
    let bench = Bench::new();
    for n in 0..500 {
        bench.append(&Event::json("T", &[], &n.to_string()));
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut destination = bench.destination(format!("http://{address}/"), |settings| {
        settings.target.max_tries = Some(1);
        settings.dead_letters = Some(DeadLetters::new(bench.dead.clone()));
    });
    std::thread::scope(|scope| {
        let delivering = scope.spawn(|| bench.deliver(&mut destination));
        wait_until(|| bench.is_retrying());
        match bench.status.state() {
            ConnectorState::Retrying { reason } => {
                assert!(reason.contains(&address.to_string()), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(200));
        // One every 10 to 20 ms, and those in flight at the beginning.
        assert!(bench.retries() < 100, "{}", bench.retries());
        let listener = TcpListener::bind(address).unwrap();
        let receiver = Receiver::on(listener, None, |_| Reply::status(200));
        assert_eq!(delivering.join().unwrap(), Ok(500));
        assert_eq!(receiver.received().len(), 500);
    });
    assert_eq!((bench.set_aside(), bench.dead.head()), (0, 0));
    assert_eq!(bench.status.state(), ConnectorState::Running);
}

#[test]
fn a_stop_lets_finish_what_is_under_way_and_sends_nothing_more() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b", "a", "b"]);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let receiver =
        Receiver::start(|_| Reply::SendLater(Duration::from_millis(300), answer.to_owned()));
    let mut destination = bench.destination(receiver.url(), |_| ());
    let reached = bench.deliver_until(&mut destination, || receiver.received().len() == 2);
    assert_eq!(reached, Ok(2));
    assert_eq!(receiver.received().len(), 2);
}

#[test]
fn a_stop_does_not_wait_for_an_answer_for_long() {
    let bench = Bench::new();
    bench.append_keys(&["a"]);
    let receiver = Receiver::start(|_| Reply::Silence);
    let mut destination = bench.destination(receiver.url(), |settings| {
        settings.target.timeout_ms = 600_000;
    });
    destination.round.pace.farewell = Duration::from_millis(100);
    let began = SystemClock.monotonic_us();
    let reached = bench.deliver_until(&mut destination, || receiver.received().len() == 1);
    assert_eq!(reached, Ok(0));
    assert!(SystemClock.monotonic_us() - began < 5_000_000);
}

#[test]
fn what_cannot_be_used_stops_the_sink_and_names_no_credential() {
    let bench = Bench::new();
    let open = |change: fn(&mut WebhookDestinationSettings)| {
        bench.destination("http://127.0.0.1:1/".into(), change).open()
    };
    assert_eq!(open(|_| ()), Ok(None));
    let changes: [fn(&mut WebhookDestinationSettings); 4] = [
        |settings| settings.target.url = "http://hunter2@host/".into(),
        |settings| settings.target.headers[0].1 = "hunter2\r\nX-More: 1".into(),
        |settings| {
            settings.target.url = "https://host/".into();
            settings.target.ca_file = Some("/nonexistent/ca.pem".into());
        },
        |settings| settings.target.in_flight = 0,
    ];
    for change in changes {
        let fault = open(change).unwrap_err();
        assert!(matches!(fault, Fault::Stop { code: StopCode::Unusable, .. }), "{fault:?}");
        assert!(!format!("{fault:?}").contains("hunter2"), "{fault:?}");
    }
    for bad in ["hunter2\r\nX-More: 1", "whsec_hunter2%"] {
        let mut destination = bench.destination("http://127.0.0.1:1/".into(), |_| ());
        destination.secret = Box::new(move |_| Ok(Zeroizing::new(bad.to_owned())));
        let fault = destination.open().unwrap_err();
        assert!(matches!(fault, Fault::Stop { code: StopCode::Unusable, .. }), "{fault:?}");
        assert!(!format!("{fault:?}{destination:?}").contains("hunter2"), "{fault:?}");
    }
    let mut destination = bench.destination("http://127.0.0.1:1/".into(), |_| ());
    destination.secret = Box::new(|_| Err(Fault::stop(StopCode::Forbidden, "no such secret")));
    assert_eq!(destination.open(), Err(Fault::stop(StopCode::Forbidden, "no such secret")));
}

#[test]
fn a_changed_secret_is_used_from_the_next_opening_on() {
    let bench = Bench::new();
    bench.append_keys(&["a"]);
    let receiver = Receiver::start(|_| Reply::status(200));
    let mut destination = bench.destination(receiver.url(), |_| ());
    let count = Mutex::new(0);
    destination.secret = Box::new(move |name| {
        let mut count = count.lock().unwrap();
        *count += usize::from(name == "token");
        Ok(Zeroizing::new(format!("secret {count}")))
    });
    bench.deliver(&mut destination).unwrap();
    bench.deliver_after(0, &mut destination).unwrap();
    bench.deliver(&mut destination).unwrap();
    let sent = receiver.received();
    let sent: Vec<_> = sent.iter().map(|request| request.header("authorization")).collect();
    assert_eq!(sent, [Some("secret 1"), Some("secret 1"), Some("secret 2")]);
}

#[test]
fn a_pump_drives_it() {
    struct NoStore;
    impl crate::CursorStore for NoStore {
        fn load(&self) -> Option<Cursor> {
            None
        }
        fn save(&mut self, _: Cursor) -> Result<(), Fault> {
            Ok(())
        }
    }
    let bench = Bench::new();
    bench.append_keys(&["a", "b", "c", "a"]);
    let receiver = Receiver::start(|_| Reply::status(200));
    let settings = PumpSettings {
        log: bench.log.clone(),
        query: Query::all(),
        generation: 1,
        history: None,
        start: 0,
        skip: BTreeSet::from([2]),
        clock: Arc::new(SystemClock),
    };
    let control = Arc::new(Control::default());
    let destination = Box::new(bench.destination(receiver.url(), |_| ()));
    let keeper = CursorKeeper::Store(Box::new(NoStore));
    let pump =
        Pump::new(settings, destination, keeper, Arc::clone(&bench.status), Arc::clone(&control));
    std::thread::scope(|scope| {
        scope.spawn(|| pump.run());
        wait_until(|| bench.status.position() == 4);
        control.stop();
    });
    let mut positions = receiver.positions();
    positions.sort_unstable();
    assert_eq!(positions, [1, 3, 4]);
    assert_eq!(bench.status.state(), ConnectorState::Ended);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// At least once, and the first acceptances of a key are in log order.
    #[test]
    fn whatever_fails_at_random_all_is_accepted_in_order(
        keys in proptest::collection::vec(0..6_usize, 1..40),
        outcomes in proptest::collection::vec(0..8_usize, 64),
        in_flight in 1..9_usize,
    ) {
        let bench = Bench::new();
        for key in &keys {
            let tags: &[&str] = if *key == 0 { &[] } else { &[&format!("key:{key}")] };
            bench.append(&Event::json("T", tags, "1"));
        }
        let check = OrderCheck::new();
        let of_script = Arc::clone(&check);
        let receiver = Receiver::start(move |request| {
            let mut check = of_script.lock().unwrap();
            let earlier = check.attempt(request);
            let outcome = outcomes[(request.position() as usize * 7 + earlier) % outcomes.len()];
            let fails = earlier < 4;
            match outcome {
                0 if fails => Reply::status(500),
                1 if fails => Reply::Close,
                2 if fails => Reply::Send("no HTTP at all\r\n\r\n".into()),
                3 if fails => Reply::Silence,
                4 if fails => Reply::SendAndClose("HTTP/1.1 200".into()),
                5 if fails => {
                    // The receiver accepts it, and its response is lost.
                    check.accept(request);
                    Reply::Close
                }
                6 => {
                    check.accept(request);
                    Reply::SendAndClose("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx".into())
                }
                _ => {
                    check.accept(request);
                    Reply::status(200)
                }
            }
        });
        let mut destination = bench.destination(receiver.url(), |settings| {
            settings.target.in_flight = in_flight;
            settings.target.timeout_ms = 50;
        });
        prop_assert_eq!(bench.deliver(&mut destination), Ok(keys.len() as u64));
        let check = check.lock().unwrap();
        let mut accepted: Vec<u64> = check.accepted.values().flatten().copied().collect();
        accepted.sort_unstable();
        prop_assert_eq!(accepted, (1..=keys.len() as u64).collect::<Vec<_>>());
        for (key, positions) in &check.accepted {
            prop_assert!(key == "[]" || positions.is_sorted(), "{}: {:?}", key, positions);
        }
    }
}
