//! Events that are refused too often.

use super::*;

fn with_dead_letters(
    bench: &Bench,
    max_tries: u32,
) -> impl FnOnce(&mut WebhookDestinationSettings) {
    let letters = DeadLetters::new(bench.dead.clone());
    move |settings| {
        settings.target.max_tries = Some(max_tries);
        settings.dead_letters = Some(letters);
    }
}

#[test]
fn an_event_that_is_refused_too_often_is_set_aside_once_and_the_next_of_its_key_follows() {
    let bench = Bench::new();
    bench.append_keys(&["a", "a", "b"]);
    let answer = format!("gone:\r\n\u{7} {TOKEN} {SECRET} é");
    let receiver = Receiver::start(move |request| match request.position() {
        1 => Reply::text(410, &answer),
        _ => Reply::status(200),
    });
    for delivery in 1..=3_usize {
        let mut destination =
            bench.destination(receiver.url(), with_dead_letters(&bench, 1 + delivery as u32));
        assert_eq!(bench.deliver(&mut destination), Ok(3));
        assert_eq!(bench.dead_letters().len(), 1, "after delivery {delivery}");
    }
    let tries = receiver.positions().into_iter().filter(|position| *position == 1).count();
    assert_eq!(tries, 2 + 3 + 4);
    let (tags, data) = &bench.dead_letters()[0];
    assert_eq!(tags, &["sink:shipping", "key:a"]);
    assert_eq!(
        data,
        &serde_json::json!({
            "sink": "shipping", "log": "main", "position": 1, "type": "T", "tries": 2,
            "status": 410, "answer": "gone:    … … é", "data": 0,
        })
    );
    assert_eq!(bench.set_aside(), 3);
    let order = receiver.positions();
    let first_of_second = order.iter().position(|position| *position == 2).unwrap();
    let ones_before = order[..first_of_second].iter().filter(|position| **position == 1).count();
    assert_eq!(ones_before, 2, "2 follows when 1 is set aside: {order:?}");
}

#[test]
fn all_that_fits_is_kept_of_an_event_whatever_it_is_and_however_it_is_sent() {
    let bench = Bench::new();
    let many: Vec<String> = (0..64).map(|n| format!("tag:{n}")).collect();
    let json = Event { tags: many, ..Event::json("Many", &[], r#"{"n":1.50}"#) };
    let binary = Event { kind: DataKind::Binary, data: vec![0, 255], ..json.clone() };
    let big = Event::json("Big", &["sink:shipping"], &format!("\"{}\"", "x".repeat((1 << 20) - 2)));
    for event in [&json, &binary, &big] {
        bench.append(event);
    }
    let receiver = Receiver::start(|_| Reply::text(400, &"é".repeat(9_000)));
    let mut destination = bench.destination(receiver.url(), |settings| {
        with_dead_letters(&bench, 1)(settings);
        settings.format = PayloadFormat::CloudEvents;
        // One after another, so that the order of dead letters is known.
        settings.target.in_flight = 1;
    });
    assert_eq!(bench.deliver(&mut destination), Ok(3));
    let mut letters = bench.dead_letters();
    letters.sort_by_key(|(_, data)| data["position"].as_u64());
    assert_eq!(letters.len(), 3);
    assert_eq!((letters[0].0.len(), letters[0].0[63].as_str()), (64, "tag:62"));
    assert_eq!(letters[0].1["data"]["n"], 1.5);
    assert_eq!(letters[1].1["data_base64"], "AP8=");
    assert_eq!(letters[2].0, ["sink:shipping"]);
    assert_eq!(letters[2].1["data_omitted"], true);
    assert_eq!(letters[2].1["answer"], "é".repeat(200));
}

#[test]
fn without_a_dead_letter_log_the_sink_stops_and_says_why() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b"]);
    let answer = format!("no {TOKEN}, thanks");
    let receiver = Receiver::start(move |request| match request.position() {
        2 => Reply::text(422, &answer),
        _ => Reply::status(200),
    });
    let mut destination = bench.destination(receiver.url(), |settings| {
        settings.target.max_tries = Some(3);
    });
    match bench.deliver(&mut destination) {
        Err(Fault::Stop { code: StopCode::Rejected, detail, position: Some(2) }) => {
            for part in ["position 2", "3 times", "422", "no …, thanks"] {
                assert!(detail.contains(part), "{detail}");
            }
        }
        other => panic!("{other:?}"),
    }
    let tries = receiver.positions().into_iter().filter(|position| *position == 2).count();
    assert_eq!(tries, 3);
}

#[test]
fn while_a_dead_letter_cannot_be_stored_its_event_is_not_handled() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b", "b", "a"]);
    bench.dead.close();
    let receiver =
        Receiver::start(|request| Reply::status(if request.position() == 2 { 500 } else { 200 }));
    let mut destination = bench.destination(receiver.url(), with_dead_letters(&bench, 1));
    assert_eq!(bench.deliver_until(&mut destination, || bench.is_retrying()), Ok(1));
    match bench.status.state() {
        ConnectorState::Retrying { reason } => assert!(reason.contains("dead letter"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(!receiver.positions().contains(&3), "3 waits for 2");
    let tries = receiver.positions().into_iter().filter(|position| *position == 2).count();
    assert_eq!(tries, 1, "it is not sent again");
}
