//! `wellspring top` as people and scripts use it: the real binary against the real server.

use crate::server::{NOBODY, Server};
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn top(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .arg("top")
        .args(args)
        .env_remove("WELLSPRING_URL")
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `look` while one client appends, conflicts, ingests and sends requests that fail. Returns
/// its result, and the total number of rounds.
fn under_load<T>(server: &Server, look: impl FnOnce() -> T) -> (T, u64) {
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            let two = json!({"events": [{"type": "A", "data": 1}, {"type": "A", "data": 2}]});
            let never = json!({
                "events": [{"type": "B", "data": 1}],
                "condition": {"failIfExists": {"items": [{"types": ["A"]}]}},
            });
            while !stop.load(SeqCst) {
                client.post("/v1/append", &two).unwrap().expect(200);
                client.post("/v1/append", &never).unwrap().problem(409);
                client.post("/e", &json!({"e": 1})).unwrap().expect(202);
                client.get("/v1/events/999999999").unwrap().problem(404);
                rounds.fetch_add(1, SeqCst);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        while rounds.load(SeqCst) < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let seen = look();
        stop.store(true, SeqCst);
        (seen, rounds.load(SeqCst))
    })
}

/// The entry of a list whose `name` is `value`.
fn entry<'a>(list: &'a Value, name: &str, value: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|entry| entry[name] == value);
    found.unwrap_or_else(|| panic!("no {value} in {list}"))
}

#[test]
fn json_is_what_the_load_was() {
    let server = Server::start();
    server.client().call("PUT", "/v1/logs/quiet", &[], b"").unwrap();
    let url = server.url();
    let (output, rounds) =
        under_load(&server, || top(&["--url", &url, "--json", "--interval", "500ms"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} in {document}"));
    let interval_s = number(&document["interval_s"]);
    assert!((0.5..30.0).contains(&interval_s), "{interval_s}");
    assert_eq!(document["restarted"], false);

    let main = entry(&document["logs"], "log", "main");
    let done = number(&main["appends_per_s"]) * interval_s;
    assert!(done >= 1.0 && done <= rounds as f64 + 5.0, "{done} appends in {rounds} rounds");
    // Either sample may fall within a round, and on a busy machine one page is not of one instant:
    // of the roughly hundred rounds a few may differ.
    let near = |figure: &Value, expected: f64, by: f64| {
        let counted = number(figure) * interval_s;
        assert!((counted - expected).abs() <= by + 1e-6, "{counted} is not {expected}: {document}");
    };
    near(&main["conflicts_per_s"], done, 5.0);
    near(&main["ingest"]["accepted_per_s"], done, 5.0);
    near(&main["ingest"]["shed_per_s"], 0.0, 0.0);
    near(&main["events_per_s"], done * 3.0, 15.0);
    assert!(number(&main["events_per_batch"]) >= 1.0 && number(&main["barrier_us"]) > 0.0);
    assert!(number(&main["head"]) >= done * 3.0 - 15.0 && number(&main["disk_bytes"]) > 0.0);
    assert_eq!(
        (&main["ingest"]["overflow"], &main["ingest"]["storage_full"]),
        (&json!("block"), &json!(false))
    );
    assert!(number(&main["ingest"]["room_bytes"]) > 0.0);
    let quiet = entry(&document["logs"], "log", "quiet");
    assert_eq!((&quiet["events_per_s"], &quiet["events_per_batch"]), (&json!(0.0), &Value::Null));

    let append = entry(&document["routes"], "route", "POST /v1/append");
    near(&append["requests_per_s"], done * 2.0, 10.0);
    near(&append["client_errors_per_s"], done, 5.0);
    let lost = entry(&document["routes"], "route", "GET /v1/events/{position}");
    near(&lost["client_errors_per_s"], done, 5.0);
    let latency = &append["latency"];
    let (p50, p99) = (number(&latency["p50"]["about_us"]), number(&latency["p99"]["about_us"]));
    assert!(0.0 < p50 && p50 <= p99 && p99 <= 10e6, "{latency}");
    assert!(number(&latency["p50"]["at_most_us"]) >= p50, "{latency}");

    let links = entry(&document["views"], "view", "links");
    assert_eq!((&links["state"], &links["answers"]), (&json!("live"), &json!(true)));
    let whole = &document["server"];
    assert!(number(&whole["requests_per_s"]) * interval_s >= done * 4.0 - 20.0);
    near(&whole["server_errors_per_s"], 0.0, 0.0);
    // The load's connection and that of `top`.
    assert!(number(&whole["connections"]) >= 2.0 && number(&whole["open_files"]) > 2.0);
    assert!(number(&whole["resident_bytes"]) > 1e6);
}

#[test]
fn once_is_a_plain_table() {
    let server = Server::start();
    let url = server.url();
    let (output, _) = under_load(&server, || top(&["--url", &url, "--once", "--interval", "0.3"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(!table.contains('\u{1b}'), "no colours: {table}");
    for (start, columns) in [
        ("wellspring top  http://127.0.0.1:", 3),
        ("Log ", 17),
        ("Ingest ", 11),
        ("View ", 7),
        ("links ", 7),
        ("Route ", 8),
        ("POST /v1/append ", 8),
        ("POST /e ", 8),
        ("GET /metrics ", 8),
    ] {
        let line = table.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no line begins with {start} in\n{table}"));
        let cells = line.split("  ").filter(|cell| !cell.trim().is_empty()).count();
        assert_eq!(cells, columns, "{line}");
    }
}

#[test]
fn what_cannot_be_shown_is_told_with_an_exit_code() {
    let nobody = format!("http://{NOBODY}");
    for (args, code, word) in [
        (&["--once", "--url", &nobody][..], 69, "is `wellspring serve` running there?"),
        (&["--json", "--url", &nobody], 69, "cannot reach"),
        (&["--url", &nobody], 64, "--once"),
        (&["--once", "--url", "ftp://h"], 64, "https://"),
        (&["--once", "--url", "https://h", "--cacert", "/nowhere"], 64, "/nowhere"),
        (&["--once", "--interval", "1ms"], 64, "100ms"),
    ] {
        let output = top(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word) && output.stdout.is_empty(), "{args:?}: {said}");
    }
}

/// Runs a command in a terminal of 120 by 40 cells according to `driver`: `wait(text)` reads until
/// the text appears, `press(keys)`, `tell(signal)`. Exits with the command's exit code, or 99 if a
/// text never appeared, and checks that the terminal's state is restored.
const TERMINAL: &str = r#"
import fcntl, os, pty, select, signal, struct, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    time.sleep(0.3)
    os.execv(sys.argv[2], sys.argv[2:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
before, seen = termios.tcgetattr(fd), ""
def read(seconds):
    global seen
    if select.select([fd], [], [], seconds)[0]:
        try: data = os.read(fd, 65536)
        except OSError: return False
        seen += data.decode("utf-8", "replace")
        return bool(data)
    return True
def wait(text):
    global seen
    end = time.time() + 20
    while text not in seen:
        if time.time() > end or not read(0.2):
            os.kill(pid, signal.SIGKILL)
            print("never came:", text, repr(seen[-3000:])); sys.exit(99)
    seen = seen[seen.index(text):]
def press(keys): os.write(fd, keys.encode())
def tell(number): os.kill(pid, number)
exec(sys.argv[1])
wait("\x1b[?1049l")
# The other end stays readable only while somebody holds it; the mode is asked for before that.
after = termios.tcgetattr(fd)
assert after == before, (before, after)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

fn in_a_terminal(driver: &str, url: &str) -> Option<i32> {
    let output = Command::new("python3")
        .args(["-c", TERMINAL, driver, env!("CARGO_BIN_EXE_wellspring"), "top"])
        .args(["--interval", "100ms", "--url", url])
        .env_remove("WELLSPRING_URL")
        .env("TERM", "xterm-256color")
        .output()
        .expect("python3 runs");
    println!("{}{}", text(&output.stdout), text(&output.stderr));
    output.status.code()
}

#[test]
fn the_live_view_draws_takes_keys_and_gives_the_terminal_back() {
    let server = Server::start();
    let url = server.url();
    let quit = "wait('requests/s'); wait('Route'); press('p'); wait('PAUSED'); press('q')";
    assert_eq!(in_a_terminal(quit, &url), Some(0));
    assert_eq!(in_a_terminal("wait('Route'); press('\\x03')", &url), Some(130));
    assert_eq!(in_a_terminal("wait('Route'); tell(signal.SIGTERM)", &url), Some(130));
    let nobody = "wait('trying'); press('q')";
    assert_eq!(in_a_terminal(nobody, &format!("http://{NOBODY}")), Some(0));
}
