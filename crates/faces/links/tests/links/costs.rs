//! What the parts of a redirect cost. Not run by default: `cargo test --release -p
//! wellspring-face-links --test links -- --ignored --nocapture`

use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;
use wellspring_face_links::view::permutation::AUTOMATIC_CODES;
use wellspring_face_links::view::{Code, Permutation, agent, referrer, url};

const CHROME: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const GOOGLEBOT: &str = "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// The minimum of many short runs, which excludes time lost to other processes.
fn least_ns(work: impl Fn()) -> f64 {
    const RUNS: u32 = 1000;
    let batches = (0..200).map(|_| {
        let clock = Instant::now();
        (0..RUNS).for_each(|_| work());
        clock.elapsed().as_nanos() as f64 / f64::from(RUNS)
    });
    batches.fold(f64::MAX, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn codes() {
    let permutation = Permutation::new(*b"0123456789abcdef");
    for start in [0u64, 238_328, 1_000_000_000_000, AUTOMATIC_CODES - 3_000_000] {
        let code = permutation.code(start).expect("a code");
        let text = code.as_text();
        // Each result feeds the next argument, so this measures latency, not throughput.
        let last = Cell::new(0);
        let parse_ns = least_ns(|| _ = black_box(Code::parse(black_box(text.as_bytes()))));
        let text_ns = least_ns(|| _ = black_box(black_box(code).as_text()));
        let code_ns = least_ns(|| {
            last.set(permutation.code(start + (last.get() & 1)).map_or(0, Code::number));
        });
        let number_ns = least_ns(|| {
            let next = Code::from_number(code.number() ^ (last.get() & 1)).unwrap_or(code);
            last.set(permutation.number(next).unwrap_or(0));
        });
        println!(
            "{} characters: parse {parse_ns:.1} ns, text {text_ns:.1}, permutation forth {code_ns:.1}, back {number_ns:.1}",
            code.len()
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn headers() {
    let hostile = "b c h m p s-".repeat(100);
    for header in [CHROME, FIREFOX, GOOGLEBOT, "curl/8.5.0", "python-requests/2.32.3", &hostile] {
        let ns = least_ns(|| _ = black_box(agent::family(black_box(header.as_bytes()))));
        println!(
            "{ns:.0} ns for {} bytes: {}",
            header.len(),
            agent::family(header.as_bytes()).family
        );
    }
    let referer = b"https://www.example.com/some/page?with=a&query=too";
    println!("referrer {:.0} ns", least_ns(|| _ = black_box(referrer::host(black_box(referer)))));
    let target = "https://www.example.com/some/page?with=a&query=too";
    println!("target {:.0} ns", least_ns(|| _ = black_box(url::check(black_box(target)))));
}
