//! Every command in `README.md` is run as printed, by bash, against a server.

use crate::load_tester;
use crate::server::Server;
use std::path::Path;
use std::process::{Command, Output};

/// The shell commands of a section, and the answers shown behind them.
fn section(name: &str) -> (String, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = std::fs::read_to_string(path).expect("README.md");
    let text = page.split(&format!("\n## {name}\n")).nth(1).unwrap_or_else(|| panic!("{name}"));
    let text = text.split("\n## ").next().expect("a section");
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands: String = blocks.collect();
    assert!(!commands.is_empty(), "{name} has commands");
    let shown = shown(&commands);
    (commands, shown)
}

/// The answers shown in comments behind commands.
pub(super) fn shown(commands: &str) -> Vec<String> {
    let shown = commands.lines().filter_map(|line| line.strip_prefix("# {"));
    shown.map(|line| format!("{{{}", line.split("   ").next().unwrap())).collect()
}

/// What a reader does by hand: Ctrl-C ends what follows, a password is typed.
const HANDS: &str = r#"
set -euo pipefail
curl() {
    case " $* " in
    *" -N "*) command curl -sS --fail --max-time 2 "$@" || [ $? = 28 ] ;;
    *) command curl -sS --fail-with-body "$@" ;;
    esac
    echo
}
wellspring() {
    case " $* " in
    *" -f "* | *" -f") timeout 3 "$PROGRAM" "$@" || [ $? = 124 ] ;;
    " user add "* | " login "*) "$PROGRAM" "$@" --password-file password ;;
    " bench "*) [ -z "$BENCH" ] || "$PROGRAM" "$@" -z 300ms -q ;;
    *) "$PROGRAM" "$@" ;;
    esac
}
"#;

pub(super) fn run(folder: &Path, server: &Server, commands: &str) -> Output {
    let address = server.address.to_string();
    let commands = commands.replace("127.0.0.1:4000", &address);
    let commands = commands.replace("localhost:4000", &address);
    Command::new("bash")
        .args(["-c", &format!("{HANDS}{commands}")])
        .current_dir(folder)
        .env("PROGRAM", env!("CARGO_BIN_EXE_wellspring"))
        .env("BENCH", if load_tester::bench().is_some() { "found" } else { "" })
        .env("WELLSPRING_URL", server.url())
        .env("XDG_STATE_HOME", folder)
        .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("WELLSPRING_TOKEN")
        .output()
        .expect("bash is installed")
}

/// Whether `found` has the pieces of `shown` between each `…`, in their order.
pub(super) fn is_shown(shown: &str, found: &str) -> bool {
    let mut rest = found;
    shown.split('…').all(|piece| {
        let at = rest.find(piece);
        rest = at.map_or(rest, |at| &rest[at + piece.len()..]);
        at.is_some()
    })
}

#[test]
fn every_command_in_the_readme_works_as_printed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(&folder.path().join("data"), &[]);
    std::fs::write(folder.path().join("orders.csv"), "customer,order,total\n7,1,12.5\n").unwrap();
    std::fs::write(folder.path().join("password"), "correct horse").unwrap();
    let mut answers = 0;
    // The account comes last: after it the others would need credentials.
    for name in ["Two people want the last seat", "Ten minutes", "Also inside", "In production"] {
        let (commands, shown) = section(name);
        let output = run(folder.path(), &server, &commands);
        let out = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{out}\n{errors}", output.status);
        for answer in &shown {
            assert!(is_shown(answer, &out), "{name}: {answer} is shown, found is\n{out}");
        }
        answers += shown.len();
    }
    assert!(answers >= 4, "{answers} answers are shown");
}

#[test]
fn a_command_that_fails_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    for commands in ["curl localhost:4000/v1/nowhere", "wellspring log create A", "nonsense"] {
        let output =
            run(folder.path(), &server, &format!("{commands}\ncurl localhost:4000/health"));
        assert!(!output.status.success(), "{commands}");
    }
    assert!(is_shown("a…c", "xabc") && !is_shown("a…c", "cab"));
}
