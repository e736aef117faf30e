//! Reports and comparisons of `wellspring bench`: the real binary against small servers whose
//! faults are known, and against the real server over TLS.

use crate::load_tester;
use crate::server::NOBODY;
use crate::tls_certificates::{Authority, Ground, text};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn bench(dir: &Path, args: &[&str]) -> Output {
    let mut command = load_tester::bench().expect("looked for before");
    for name in ["URL", "CACERT", "CLIENT_CERT", "CLIENT_KEY", "TOKEN"] {
        command.env_remove(format!("WELLSPRING_{name}"));
    }
    command.args(args).current_dir(dir).output().expect("the binary runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read(dir: &Path, file: &str) -> String {
    std::fs::read_to_string(dir.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// An HTTP/1.1 server with configured delays that counts its requests.
struct Shop {
    url: String,
    /// Requests by path.
    asked: Arc<Mutex<Vec<String>>>,
    /// Requests without the right `Authorization`.
    strangers: Arc<AtomicU64>,
}

/// How a shop answers.
#[derive(Clone, Copy)]
struct Manner {
    /// How long `/look` takes.
    look: Duration,
    /// Whether answers are written in two pieces with Nagle's algorithm on.
    pieces: Pieces,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    One,
    TwoWithNagle,
}

const AUTHORIZATION: &str = "authorization: bearer s3cret-of-the-shop";

impl Shop {
    fn open(manner: Manner) -> Shop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, strangers) = (Arc::default(), Arc::default());
        let shop = Shop { url, asked: Arc::clone(&asked), strangers: Arc::clone(&strangers) };
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (asked, strangers) = (Arc::clone(&asked), Arc::clone(&strangers));
                std::thread::spawn(move || serve(socket, manner, &asked, &strangers));
            }
        });
        shop
    }

    fn times_asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|there| *there == path).count()
    }
}

fn serve(
    mut socket: TcpStream,
    manner: Manner,
    asked: &Mutex<Vec<String>>,
    strangers: &AtomicU64,
) -> std::io::Result<()> {
    socket.set_nodelay(manner.pieces == Pieces::One)?;
    let mut buffer = [0; 4096];
    loop {
        // A request without a body is small enough to come at once.
        let count = socket.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let head = String::from_utf8_lossy(&buffer[..count]).to_lowercase();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if !head.contains(AUTHORIZATION) {
            strangers.fetch_add(1, Ordering::Relaxed);
        }
        if path == "/look" {
            std::thread::sleep(manner.look);
        }
        asked.lock().unwrap().push(path);
        let (head, body) = ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ok");
        match manner.pieces {
            Pieces::One => socket.write_all(format!("{head}{body}").as_bytes())?,
            Pieces::TwoWithNagle => {
                socket.write_all(head.as_bytes())?;
                socket.write_all(body.as_bytes())?;
            }
        }
    }
}

fn quick() -> Manner {
    Manner { look: Duration::ZERO, pieces: Pieces::One }
}

const SCENARIO: &str = r#"
name = "a visit to the shop"

[[setup]]
path = "/opened"

[[step]]
name = "book"
path = "/book"

[[step]]
name = "look"
path = "/look"

[[teardown]]
path = "/closed"

[load]
users = 2
duration = "400ms"
warmup = "100ms"
"#;

#[test]
fn a_slower_step_of_a_scenario_is_found_when_two_servers_take_turns() {
    if load_tester::bench().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("shop.toml"), SCENARIO).unwrap();
    let look = |ms| Manner { look: Duration::from_millis(ms), ..quick() };
    let (a, b) = (Shop::open(look(15)), Shop::open(look(21)));
    let args = ["compare", "--scenario", "shop.toml", &a.url, &b.url, "--pairs", "6", "-n", "160"];
    let more =
        ["--no-headroom", "-q", "--json", "c.json", "--html", "c.html", "--save-a", "a.json"];
    let output = bench(dir.path(), &[&args[..], &more].concat());
    // 75: on a busy machine a side may not be measurable; the figures are reported anyway.
    assert!(matches!(output.status.code(), Some(0 | 75)), "{}", error(&output));
    let comparison: Value = serde_json::from_str(&read(dir.path(), "c.json")).unwrap();
    let step = &comparison["steps"][0];
    assert_eq!((step["design"].as_str(), step["runs_a"].as_u64()), (Some("paired"), Some(6)));
    let endpoints = step["endpoints"].as_array().unwrap();
    let names: Vec<&str> = endpoints.iter().map(|e| e["endpoint"].as_str().unwrap()).collect();
    assert_eq!(names, ["book", "look"]);
    let p50 = &endpoints[1]["metrics"][0];
    assert_eq!((p50["metric"].as_str(), p50["verdict"].as_str()), (Some("p50"), Some("slower")));
    let pooled = step["metrics"].as_array().unwrap().iter().find(|m| m["metric"] == "p50").unwrap();
    assert_eq!(pooled["verdict"], "not_comparable", "{pooled}");
    let told = out(&output);
    assert!(told.contains("By endpoint") && told.contains("look: B's p50 is "), "{told}");
    let page = read(dir.path(), "c.html");
    assert!(page.contains("a visit to the shop at http") && page.contains("<svg"), "{page}");
    // Setup and teardown went to both, once.
    for shop in [&a, &b] {
        assert_eq!((shop.times_asked("/opened"), shop.times_asked("/closed")), (1, 1));
        assert!(shop.times_asked("/look") > 20);
    }
    let again = bench(dir.path(), &["report", "a.json", "--html", "a.html"]);
    assert!(out(&again).contains("Endpoints"), "{}", out(&again));
    assert!(read(dir.path(), "a.html").contains("<svg"));
}

#[test]
fn what_setup_made_is_taken_down_even_if_the_other_server_is_not_there() {
    if load_tester::bench().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("shop.toml"), SCENARIO).unwrap();
    let a = Shop::open(quick());
    let b = format!("http://{NOBODY}");
    let output = bench(dir.path(), &["compare", "--scenario", "shop.toml", &a.url, &b, "-q"]);
    assert_eq!(output.status.code(), Some(69), "{}", error(&output));
    assert_eq!((a.times_asked("/opened"), a.times_asked("/closed")), (1, 1));
}

#[test]
fn one_throughput_is_given_in_all_places() {
    if load_tester::bench().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let shop = Shop::open(quick());
    let url = format!("{}/book", shop.url);
    let args = ["-c", "2", "-z", "200ms", "--repeat", "3", "-q", "--no-headroom"];
    let files = ["--json", "r.json", "--html", "r.html", &url];
    let output = bench(dir.path(), &[&args[..], &files].concat());
    assert!(output.status.success(), "{}", error(&output));
    let quiet = out(&output);
    let figure = quiet.split("throughput ").nth(1).unwrap().split("/s").next().unwrap();
    assert!(quiet.contains("/s (geometric mean of 3 runs), p50 "), "{quiet}");
    let labelled = format!("{figure}/s, geometric mean of 3 runs");
    for form in ["text", "md", "html"] {
        let report = out(&bench(dir.path(), &["report", "--as", form, "r.json"]));
        assert!(report.contains(&labelled), "{form}: {labelled} is not in\n{report}");
    }
    let page = read(dir.path(), "r.html");
    assert!(page.contains(&format!("<b>{figure}/s</b>")), "{page}");
    assert!(page.contains("Latency within which each share of requests completed."), "{page}");
    let compared = out(&bench(dir.path(), &["compare", "r.json", "r.json"]));
    let row = compared.lines().find(|line| line.trim().starts_with("throughput")).unwrap();
    assert!(row.contains(&format!("{figure}/s")), "{row}");
}

#[test]
fn a_page_of_several_result_files_is_refused_and_one_on_standard_output_stands_alone() {
    if load_tester::bench().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let shop = Shop::open(quick());
    let args = ["-n", "20", "-c", "1", "-q", "--no-headroom", "--json", "r.json", &shop.url];
    assert!(bench(dir.path(), &args).status.success());
    let two = bench(dir.path(), &["report", "r.json", "r.json", "--html", "x.html"]);
    assert_eq!(two.status.code(), Some(64), "{}", error(&two));
    for args in
        [&["report", "r.json", "--html", "-"][..], &["compare", "r.json", "r.json", "--html", "-"]]
    {
        let page = out(&bench(dir.path(), args));
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    }
    // File names are checked before anything is read or measured.
    let lost = bench(dir.path(), &["compare", "r.json", "r.json", "--html", "/nonexistent/x.html"]);
    assert_eq!(lost.status.code(), Some(74), "{}", error(&lost));
}

#[test]
fn answers_in_two_pieces_with_nagles_algorithm_get_a_hint() {
    if load_tester::bench().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let shop = Shop::open(Manner { pieces: Pieces::TwoWithNagle, ..quick() });
    let args = ["-n", "60", "-c", "1", "--no-headroom", "--warmup", "0", &shop.url];
    let told = out(&bench(dir.path(), &args));
    let words = told.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words.contains("C19") && words.contains("set TCP_NODELAY"), "{told}");
}

#[test]
fn scenarios_take_credentials_and_no_report_shows_them() {
    if load_tester::bench().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("shop.toml"), SCENARIO).unwrap();
    std::fs::write(dir.path().join("token"), "S3cret-of-the-shop\n").unwrap();
    let shop = Shop::open(quick());
    let measure = ["scenario", "shop.toml", "--url", &shop.url, "-q", "--no-headroom"];
    let files = ["--json", "r.json", "--html", "r.html", "--md", "r.md"];
    let spoken = "Authorization: Bearer S3cret-of-the-shop";
    for credentials in
        [&["--token-file", "token"][..], &["--bearer", "S3cret-of-the-shop"], &["-H", spoken]]
    {
        let output = bench(dir.path(), &[&measure[..], credentials, &files].concat());
        assert!(output.status.success(), "{}", error(&output));
        assert_eq!(shop.strangers.load(Ordering::Relaxed), 0, "{credentials:?}");
        for file in ["r.json", "r.html", "r.md"] {
            let text = read(dir.path(), file);
            assert!(!text.contains("S3cret"), "{credentials:?}: a secret is in {file}");
        }
    }
    let page = read(dir.path(), "r.html");
    assert!(page.contains("<title>a visit to the shop</title>"), "{page}");
    // The report offers what the file suggests.
    let report: Value = serde_json::from_str(&read(dir.path(), "r.json")).unwrap();
    let settings = &report["steps"][0]["settings"];
    assert_eq!(
        (settings["connections"].as_u64(), settings["warmup_ms"].as_u64()),
        (Some(2), Some(100))
    );
    assert!(bench(dir.path(), &measure).status.success());
    assert!(shop.strangers.load(Ordering::Relaxed) > 0);
}

#[test]
fn own_authorities_and_client_certificates_are_used_over_tls() {
    if load_tester::bench().is_none() {
        return;
    }
    let ground = Ground::new();
    let friends = Authority::new(ground.dir.path(), "friends");
    let friend = friends.issue(ground.dir.path(), "friend");
    let asked = ["--tls-client-ca", text(&friends.file), "--tls-client-auth", "required"];
    let server = ground.start(&asked);
    let base = format!("https://localhost:{}", server.address.port());
    let url = format!("{base}/health");
    let dir = ground.dir.path();
    std::fs::write(dir.join("health.toml"), "[[step]]\npath = \"/health\"\n").unwrap();
    let trusted = ["--cacert", text(&ground.authority.file)];
    let shown = ["--client-cert", text(&friend.certificate), "--client-key", text(&friend.key)];
    let short = ["-n", "20", "-q", "--no-headroom"];
    let run = |what: &[&str], tls: &[&[&str]]| bench(dir, &[what, &short, &tls.concat()].concat());
    let good = run(&["-c", "2", &url], &[&trusted, &shown]);
    assert!(good.status.success(), "{}", error(&good));
    assert!(out(&good).contains("0 of 20 failed"), "{}", out(&good));
    let scenario = ["scenario", "health.toml", "--url", &base, "--users", "2"];
    let good = run(&scenario, &[&trusted, &shown]);
    assert!(good.status.success(), "{}", error(&good));
    // Without a client certificate, and with an authority that did not sign the server's
    // certificate.
    let nameless = run(&["-c", "2", &url], &[&trusted]);
    assert!(!nameless.status.success());
    assert!(error(&nameless).contains("--client-cert"), "{}", error(&nameless));
    let stranger = run(&["-c", "2", &url], &[&["--cacert", text(&friends.file)], &shown]);
    assert_eq!(stranger.status.code(), Some(69), "{}", error(&stranger));
    assert!(error(&stranger).contains("--cacert"), "{}", error(&stranger));
    for (flags, code) in [
        (&["--cacert", "/nowhere.pem"][..], 64),
        (&["--client-cert", "a"], 64),
        (&["--cacert", "a", "--insecure"], 64),
    ] {
        let refused = run(&["-c", "2", &url], &[flags]);
        assert_eq!(refused.status.code(), Some(code), "{flags:?}: {}", error(&refused));
    }
}
