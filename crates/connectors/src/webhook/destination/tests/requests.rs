//! The requests sent, and the meaning of responses.

use super::*;
use base64::Engine as _;
use rcgen::{CertificateParams, KeyPair};
use ring::hmac;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// Whether a receiver would accept the signature.
fn is_signed(request: &ReceivedRequest) -> bool {
    let base64 = &base64::engine::general_purpose::STANDARD;
    let secret = base64.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    let part = |name: &str| request.header(name).unwrap();
    let mut signed = format!("{}.{}.", part("webhook-id"), part("webhook-timestamp")).into_bytes();
    signed.extend_from_slice(&request.body);
    let signature = part("webhook-signature").strip_prefix("v1,").unwrap();
    hmac::verify(&key, &signed, &base64.decode(signature).unwrap()).is_ok()
}

#[test]
fn a_request_is_what_is_promised_and_the_same_when_it_is_repeated() {
    let bench = Bench::new();
    bench.append(&Event::json("OrderPlaced", &["key:1", "größe:XL"], r#"{"n":1.50}"#));
    let mut count = 0;
    let receiver = Receiver::start(move |_| {
        count += 1;
        Reply::status(if count == 1 { 500 } else { 200 })
    });
    let mut destination = bench.destination(receiver.url(), |_| ());
    assert_eq!(bench.deliver(&mut destination), Ok(1));
    // As after a restart.
    let mut another = bench.destination(receiver.url(), |_| ());
    assert_eq!(bench.deliver(&mut another), Ok(1));
    let received = receiver.received();
    assert_eq!(received.len(), 3);
    for request in &received {
        assert_eq!(request.line, "POST /hook?token=of-the-url HTTP/1.1");
        assert_eq!(request.body, br#"{"n":1.50}"#);
        assert!(is_signed(request), "{request:?}");
        for (name, value) in [
            ("host", receiver.address.to_string().as_str()),
            ("content-type", "application/json"),
            ("idempotency-key", "cluster%2Emain%2Fshipping-1"),
            ("webhook-id", "cluster%2Emain%2Fshipping-1"),
            ("wellspring-log", "main"),
            ("wellspring-position", "1"),
            ("wellspring-type", "OrderPlaced"),
            ("wellspring-tags", r#"["key:1","gr\u00f6\u00dfe:XL"]"#),
            ("user-agent", concat!("wellspring/", env!("CARGO_PKG_VERSION"))),
            ("x-team", "shipping"),
            ("authorization", TOKEN),
        ] {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
    }
    assert_eq!(bench.retries(), 1);
}

#[test]
fn odd_texts_stay_in_their_header() {
    let bench = Bench::new();
    let odd = "key:\u{2028}é\"\\ \u{1f680}; X-More: 1";
    bench.append(&Event {
        kind: DataKind::Binary,
        data: Vec::new(),
        ..Event::json(" Ä: \"b\" ", &[odd], "")
    });
    let receiver = Receiver::start(|_| Reply::status(204));
    bench.deliver(&mut bench.destination(receiver.url(), |_| ())).unwrap();
    let received = receiver.received();
    let request = &received[0];
    assert_eq!(request.header("x-more"), None);
    assert_eq!(request.header("content-length"), Some("0"));
    assert_eq!(request.header("content-type"), Some("application/octet-stream"));
    let tags = request.header("wellspring-tags").unwrap();
    assert_eq!(serde_json::from_str::<Vec<String>>(tags).unwrap(), [odd]);
    let quoted = format!("\"{}\"", request.header("wellspring-type").unwrap());
    assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), " Ä: \"b\" ");
}

#[test]
fn a_connection_serves_request_after_request_however_answers_are_delimited() {
    let bench = Bench::new();
    bench.append_keys(&["a"; 9]);
    let mut count = 0;
    let receiver = Receiver::start(move |_| {
        count += 1;
        match count % 3 {
            0 => Reply::text(200, "thanks"),
            1 => Reply::Send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".into(),
            ),
            _ => Reply::Send("HTTP/1.1 204 No Content\r\n\r\n".into()),
        }
    });
    let mut destination = bench.destination(receiver.url(), |_| ());
    assert_eq!(bench.deliver(&mut destination), Ok(9));
    bench.append_keys(&["a"]);
    assert_eq!(bench.deliver_after(9, &mut destination), Ok(10));
    assert_eq!(receiver.positions(), (1..=10).collect::<Vec<_>>());
    assert_eq!((receiver.connections(), bench.retries()), (1, 0));
}

#[test]
fn connections_that_the_receiver_closes_are_reopened_at_once() {
    let bench = Bench::new();
    bench.append_keys(&["a"; 50]);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let receiver = Receiver::start(|_| Reply::SendAndClose(answer.into()));
    let mut destination = bench.destination(receiver.url(), |settings| {
        // A retry that counts would stop the sink.
        settings.target.max_tries = Some(1);
    });
    assert_eq!(bench.deliver(&mut destination), Ok(50));
    assert_eq!(receiver.positions(), (1..=50).collect::<Vec<_>>());
    assert_eq!((receiver.connections(), bench.retries()), (50, 0));
}

#[test]
fn a_huge_answer_is_not_read_to_its_end() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 500 X\r\nContent-Length: 9999999999\r\n\r\n",
    ] {
        let bench = Bench::new();
        bench.append_keys(&["a"; 2]);
        let mut count = 0;
        let receiver = Receiver::start(move |_| {
            count += 1;
            if count == 1 { Reply::Endless(head.into()) } else { Reply::status(200) }
        });
        let mut destination = bench.destination(receiver.url(), |_| ());
        assert_eq!(bench.deliver(&mut destination), Ok(2));
        // The sockets buffer a few MiB.
        assert!(receiver.endless_bytes() < 32 << 20, "{}", receiver.endless_bytes());
        assert_eq!(receiver.connections(), 2);
    }
}

#[test]
fn redirects_are_not_followed() {
    let bench = Bench::new();
    bench.append_keys(&["a"]);
    let elsewhere = Receiver::start(|_| Reply::status(200));
    let location = elsewhere.url();
    let mut statuses = vec![301, 302, 303, 307, 308].into_iter();
    let receiver = Receiver::start(move |_| match statuses.next() {
        Some(status) => Reply::Send(format!(
            "HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        )),
        None => Reply::status(200),
    });
    assert_eq!(bench.deliver(&mut bench.destination(receiver.url(), |_| ())), Ok(1));
    assert_eq!((receiver.received().len(), elsewhere.received().len()), (6, 0));
}

#[test]
fn a_receiver_may_ask_for_a_longer_wait() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b"]);
    let times = Arc::new(Mutex::new(BTreeMap::<u64, Vec<Instant>>::new()));
    let noted = Arc::clone(&times);
    let receiver = Receiver::start(move |request| {
        let mut noted = noted.lock().unwrap();
        let times = noted.entry(request.position()).or_default();
        #[allow(clippy::disallowed_methods)] // a test's clock
        times.push(Instant::now());
        if times.len() > 1 {
            return Reply::status(200);
        }
        let after = if request.position() == 1 { "Retry-After: 1\r\n" } else { "" };
        Reply::Send(format!("HTTP/1.1 429 X\r\n{after}Content-Length: 0\r\n\r\n"))
    });
    assert_eq!(bench.deliver(&mut bench.destination(receiver.url(), |_| ())), Ok(2));
    let times = times.lock().unwrap();
    let waited = |position: u64| times[&position][1] - times[&position][0];
    assert!(waited(1) >= Duration::from_millis(990), "{:?}", waited(1));
    assert!(waited(2) < Duration::from_millis(900), "{:?}", waited(2));
}

#[test]
fn so_many_requests_are_under_way_at_a_time_and_no_more() {
    let bench = Bench::new();
    for n in 0..40 {
        bench.append(&Event::json("T", &[], &n.to_string()));
    }
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let receiver =
        Receiver::start(|_| Reply::SendLater(Duration::from_millis(20), answer.to_owned()));
    let mut destination =
        bench.destination(receiver.url(), |settings| settings.target.in_flight = 4);
    assert_eq!(bench.deliver(&mut destination), Ok(40));
    assert_eq!((receiver.most_active(), receiver.connections()), (4, 4));
}

#[test]
fn over_tls_only_a_certificate_of_a_trusted_authority_is_accepted() {
    let bench = Bench::new();
    bench.append_keys(&["a"]);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let ca_file = bench.dir.path().join("ca.pem");
    std::fs::write(&ca_file, certificate.pem()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let receiver = Receiver::on(listener, Some(Arc::new(config)), |_| Reply::status(200));
    let url = format!("https://{}/", receiver.address);
    let trusting = |settings: &mut WebhookDestinationSettings| {
        settings.target.ca_file = Some(ca_file.clone());
    };
    assert_eq!(bench.deliver(&mut bench.destination(url.clone(), trusting)), Ok(1));
    assert_eq!(receiver.received().len(), 1);

    let other = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let other = other.self_signed(&KeyPair::generate().unwrap()).unwrap();
    std::fs::write(&ca_file, other.pem()).unwrap();
    let mut destination = bench.destination(url, trusting);
    assert_eq!(bench.deliver_until(&mut destination, || bench.is_retrying()), Ok(0));
    match bench.status.state() {
        ConnectorState::Retrying { reason } => assert!(reason.contains("TLS"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn few_connections_are_opened_at_a_time() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"]);
    for (opening, is_few) in [(Duration::from_secs(3_600), true), (Duration::ZERO, false)] {
        let receiver = Receiver::start(|_| {
            // As a server of HTTP/1.0: each connection brings one answer.
            let answer = "HTTP/1.1 204 X\r\nConnection: close\r\n\r\n".to_owned();
            Reply::SendLater(Duration::from_millis(20), answer)
        });
        let mut destination =
            bench.destination(receiver.url(), |settings| settings.target.in_flight = 64);
        destination.round.pace.opening = opening;
        assert_eq!(bench.deliver(&mut destination), Ok(14));
        assert!(receiver.most_active() <= if is_few { 4 } else { 14 });
        assert_eq!(bench.status.counters.retries.load(Relaxed), 0);
    }
}

#[test]
fn what_is_sent_again_says_why_until_it_is_accepted() {
    let bench = Bench::new();
    bench.append_keys(&["a", "b"]);
    let accepts = Arc::new(Mutex::new(false));
    let open = Arc::clone(&accepts);
    let receiver = Receiver::start(move |request| match request.position() {
        2 if !*open.lock().unwrap() => Reply::Close,
        _ => Reply::status(204),
    });
    let mut destination = bench.destination(receiver.url(), |_| ());
    std::thread::scope(|scope| {
        let delivering = scope.spawn(|| bench.deliver(&mut destination));
        wait_until(|| bench.status.retrying_for().is_some());
        let reason = bench.status.retrying_for().unwrap_or_default();
        assert!(reason.contains("position 2") && reason.contains("no response"), "{reason}");
        *accepts.lock().unwrap() = true;
        assert_eq!(delivering.join().unwrap(), Ok(2));
    });
    assert_eq!(bench.status.retrying_for(), None);
    assert!(bench.status.counters.retries.load(Relaxed) > 0);
}
