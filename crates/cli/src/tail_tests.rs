//! Tests of following a log.

use super::*;
use clap::Parser;
use wellspring_client::test_server::{Reply, TestServer};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: TailArgs,
}

fn parse(url: &str, more: &[&str]) -> TailArgs {
    Line::try_parse_from([&["x", "--url", url], more].concat()).unwrap().args
}

fn event(position: u64) -> String {
    format!("{{\"position\":{position},\"type\":\"T\",\"tags\":[\"a:1\"],\"data\":{{}}}}")
}

const HISTORY: &str = "4f1c09d2a87b4e6f";

fn point(text: &str) -> ResumePoint {
    text.parse().unwrap()
}

fn message(position: u64) -> String {
    format!("id: {position}@{HISTORY}\ndata: {}\n\n", event(position))
}

fn stream(body: &str) -> Reply {
    let length = body.len();
    Reply::raw(&format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n"
    ))
}

#[test]
fn a_broken_subscription_goes_on_where_it_broke_off() {
    let server = TestServer::start(|request, earlier| {
        assert_eq!(request.header("accept"), "text/event-stream");
        match (earlier, request.header("last-event-id")) {
            // Cut in the middle of the second message: it comes again.
            (0, "5") => stream(&format!(": hi\n\n{}id: 7\ndata: {{", message(6))).then_hang_up(),
            (1, "6@4f1c09d2a87b4e6f") => Reply::json(503, r#"{"detail":"stopping"}"#),
            (2, "6@4f1c09d2a87b4e6f") => stream(&format!(
                "{}{}{}event: position\nid: 12@{HISTORY}\ndata: y\n\n",
                message(6),
                message(7),
                message(9)
            ))
            .then_hang_up(),
            (3, "12@4f1c09d2a87b4e6f") => Reply::json(404, r#"{"detail":"dropped"}"#),
            other => Reply::json(404, &format!("{{\"detail\":\"unexpected {other:?}\"}}")),
        }
    });
    let args = parse(server.url(), &["-f", "--after", "5", "--tag", "a:1"]);
    let mut printer = Printer { out: Vec::new(), json: true };
    let mut client = args.target.client().unwrap();
    let failure = follow(&args, &mut client, &mut printer, point("5")).unwrap_err();
    assert!(failure.message.contains("dropped"), "{}", failure.message);
    let printed = String::from_utf8(printer.out).unwrap();
    assert_eq!(printed, [6, 7, 9].map(|n| event(n) + "\n").concat());
}

#[test]
fn damage_that_the_server_meets_ends_it_and_troubles_that_pass_do_not() {
    let corrupt =
        r#"{"type":"/problems/corrupt","detail":"main/1.seg is damaged at byte 9","retry":"no"}"#;
    let server = TestServer::start(move |_, earlier| match earlier {
        0 => stream(&message(6)).then_hang_up(),
        // Everything that is worth another try, and the page of a proxy.
        1 => Reply::json(503, r#"{"type":"/problems/overloaded","retry":1}"#),
        2 => Reply::json(500, r#"{"type":"/problems/storage-failure","retry":"same"}"#),
        3 => Reply::typed(502, "text/html", "<h1>Bad gateway</h1>"),
        4 => Reply::json(500, corrupt),
        _ => Reply::json(404, r#"{"detail":"it came again"}"#),
    });
    let args = parse(server.url(), &["-f", "--after", "5"]);
    let mut printer = Printer { out: Vec::new(), json: true };
    let mut client = args.target.client().unwrap();
    let failure = follow(&args, &mut client, &mut printer, point("5")).unwrap_err();
    assert_eq!(failure.code, Code::Refused, "{}", failure.message);
    assert!(failure.message.contains("damaged at byte 9"), "{}", failure.message);
    assert_eq!(String::from_utf8(printer.out).unwrap(), event(6) + "\n");
}

#[test]
fn a_log_with_another_history_ends_it_and_the_message_says_where_this_one_is() {
    let other = r#"{"type":"/problems/another-history","detail":"it has another history","head":3,"history":"00000000000000ff"}"#;
    let server = TestServer::start(move |request, _| {
        let given = [request.header("last-event-id"), request.header("wellspring-history")];
        match given {
            ["9@4f1c09d2a87b4e6f", ""] | ["", HISTORY] => Reply::json(409, other),
            _ => Reply::json(404, &format!("{{\"detail\":\"unexpected {given:?}\"}}")),
        }
    });
    let given = format!("9@{HISTORY}");
    let args = parse(server.url(), &["-f", "--after", &given]);
    let mut printer = Printer { out: Vec::new(), json: true };
    let mut client = args.target.client().unwrap();
    for failure in [
        follow(&args, &mut client, &mut printer, point(&given)).unwrap_err(),
        from(&args, &mut client, &mut printer, point(&given)).unwrap_err(),
    ] {
        assert_eq!(failure.code, Code::Refused, "{}", failure.message);
        assert!(failure.message.contains("--after 3@00000000000000ff"), "{}", failure.message);
    }
    assert!(printer.out.is_empty());
}

#[test]
fn the_newest_come_in_their_order() {
    let server = TestServer::start(|request, _| {
        assert!(request.path.contains("order=desc") && request.path.contains("limit=2"));
        let page = format!("{{\"events\":[{},{}],\"head\":12,\"next\":7}}", event(9), event(8));
        Reply::raw(&format!(
            "HTTP/1.1 200 OK\r\nWellspring-History: {HISTORY}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{page}",
            page.len()
        ))
    });
    let args = parse(server.url(), &["-n", "2"]);
    let mut printer = Printer { out: Vec::new(), json: false };
    let head = newest(&args, &mut args.target.client().unwrap(), &mut printer).unwrap();
    assert_eq!(head, point("12@4f1c09d2a87b4e6f"));
    let printed = String::from_utf8(printer.out).unwrap();
    assert_eq!(printed, "8  -  T  [a:1]  {}\n9  -  T  [a:1]  {}\n");
}

#[test]
fn a_payload_cannot_move_the_cursor() {
    let text = "{\"position\":1,\"type\":\"T\",\"tags\":[],\"data\":\"\u{9b}2J\"}";
    let line = readable(&RecordedEvent::parse(text).unwrap());
    assert!(!line.chars().any(char::is_control), "{line:?}");
}

#[test]
fn a_server_that_says_when_to_come_again_is_left_alone_until_then() {
    let begun = std::sync::Mutex::new(Vec::new());
    #[allow(clippy::disallowed_methods)] // a test's clock
    let server = TestServer::start(move |request, earlier| {
        let mut begun = begun.lock().unwrap();
        begun.push(std::time::Instant::now());
        let busy = "HTTP/1.1 429 X\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
        match earlier {
            0 | 2 => Reply::raw(busy),
            1 => Reply::json(200, "{\"events\":[],\"head\":4,\"next\":null}"),
            _ => {
                let waited = [begun[1] - begun[0], begun[3] - begun[2]];
                let obeyed = waited.iter().all(|waited| waited.as_millis() >= 1_000);
                assert!(request.header("last-event-id") == "4");
                Reply::json(404, &format!("{{\"detail\":\"obeyed: {obeyed}\"}}"))
            }
        }
    });
    let args = parse(server.url(), &["-f"]);
    let mut printer = Printer { out: Vec::new(), json: true };
    let mut client = args.target.client().unwrap();
    let head = newest(&args, &mut client, &mut printer).unwrap();
    let failure = follow(&args, &mut client, &mut printer, head).unwrap_err();
    assert!(failure.message.contains("obeyed: true"), "{}", failure.message);
    // Without -f it is said and not waited for.
    let server = TestServer::start(|_, _| {
        Reply::raw("HTTP/1.1 429 X\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n")
    });
    let args = parse(server.url(), &[]);
    let failure = newest(&args, &mut args.target.client().unwrap(), &mut printer).unwrap_err();
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("try again in 9 s"), "{}", failure.message);
}

#[test]
fn a_number_of_events_from_a_position_on_is_the_most_there_will_be() {
    let server = TestServer::start(|request, _| {
        assert!(request.path.ends_with("?after=5&limit=2000"), "{}", request.path);
        let lines = [event(6), event(8)].map(|line| line + "\n").concat();
        Reply::typed(200, "application/x-ndjson", &lines)
    });
    let args = parse(server.url(), &["--after", "5", "-n", "2000"]);
    args.check().unwrap();
    let mut printer = Printer { out: Vec::new(), json: true };
    from(&args, &mut args.target.client().unwrap(), &mut printer, point("5")).unwrap();
    let printed = String::from_utf8(printer.out).unwrap();
    assert_eq!(printed, [6, 8].map(|n| event(n) + "\n").concat());
}

#[test]
fn a_number_that_means_nothing_is_refused() {
    let refused = |more: &[&str]| parse("http://127.0.0.1:1", more).check().unwrap_err().message;
    assert!(refused(&["-f", "--after", "5", "-n", "2"]).contains("give one of them"));
    assert!(refused(&["-f", "--from-start", "-n", "2"]).contains("give one of them"));
    assert!(refused(&["-n", "1001"]).contains("at most 1000 of the newest"));
    for fine in [&["-f", "-n", "2"][..], &["-n", "1000"], &["-f", "--after", "5"]] {
        parse("http://127.0.0.1:1", fine).check().unwrap();
    }
}
