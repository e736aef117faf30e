//! The commands of docs/production.md work as they stand, in their order, at a server that speaks
//! TLS and has accounts. The drill of its section "Restore" is in `backups`.

use crate::closed::PASSWORD;
use crate::program::{ProgramOutput, file, run};
use crate::server::Server;
use crate::tls_certificates::{Ground, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../../docs/production.md");

/// The shell blocks of a section.
fn blocks(section: &str) -> Vec<&'static str> {
    let heading = format!("\n## {section}\n");
    let (_, after) = PAGE.split_once(&heading).unwrap_or_else(|| panic!("no section {section}"));
    let text = after.split("\n## ").next().unwrap();
    text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect()
}

/// The block of a section that holds this text.
fn block(section: &str, part: &str) -> &'static str {
    let found = blocks(section).into_iter().find(|block| block.contains(part));
    found.unwrap_or_else(|| panic!("{section} has no block with {part}"))
}

/// A shell for the page, with places of its own.
struct Reader<'a> {
    home: &'a Path,
    replacements: Vec<(&'static str, String)>,
}

impl Reader<'_> {
    /// Types commands; stops at the first that fails.
    fn types(&self, commands: &str) -> String {
        let mut script = commands.to_owned();
        for (from, to) in &self.replacements {
            script = script.replace(from, to);
        }
        let program = Path::new(env!("CARGO_BIN_EXE_wellspring")).parent().unwrap();
        let path = format!("{}:{}", text(program), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-euc", &script])
            .current_dir(self.home)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let output = ProgramOutput::of(output);
        assert_eq!(output.code, Some(0), "{script}\n{output:?}");
        output.out
    }
}

#[test]
fn its_commands_work_as_they_stand() {
    let ground = Ground::new();
    let home = ground.dir.path();
    let (data, place) = (home.join("data"), home.join("backup"));
    std::fs::copy(&ground.authority.file, home.join("ca.pem")).unwrap();
    let password = file(home, "password", PASSWORD);
    let ann = ["user", "add", "ann", "--role", "admin", "--data", text(&data)];
    run(&[&ann[..], &["--password-file", text(&password)]].concat()).done();
    let server = Server::start_alone(None, &[], &data, &ground.pair.flags());
    let url = format!("https://localhost:{}", server.address.port());
    let mut reader = Reader {
        home,
        replacements: vec![
            ("https://events.example.com:4000", url.clone()),
            ("/backup/wellspring", text(&place).to_owned()),
            ("/var/lib/wellspring", text(&data).to_owned()),
            // Without a terminal nothing asks for it.
            ("login ann", format!("login ann --password-file {}", text(&password))),
            ("sudo ", String::new()),
        ],
    };
    let shell = block("Run under systemd", "wellspring login");
    let monitor = block("Monitor", "--label prometheus");
    let backup = block("Backup", "--label backup");
    let (_, again) = backup.trim_end().rsplit_once('\n').expect("several lines");
    // The name of a backup is its second.
    reader.types(&format!("{shell}{monitor}{backup}sleep 1.1\n{again}\n"));
    let key = std::fs::read_to_string(home.join("wellspring.key")).unwrap();
    let bearer = format!("Bearer {}", key.trim());
    let headers = [("Authorization", bearer.as_str())];
    let metrics = ground.client(&server).call("GET", "/metrics", &headers, b"").unwrap();
    assert_eq!(metrics.status, 200, "{}", metrics.text());

    let listed = run(&["backup", "list", "--json", "--from", text(&place)]).done();
    let names: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().into())
        .collect();
    assert_eq!(names.len(), 2, "{listed}");
    reader.replacements.push(("20261125T214438Z", names[0].clone()));
    // It ends with 0 only if the backup that it names was there to remove.
    let said = reader.types(&format!("{shell}{}", block("Backup", "backup list")));
    for part in ["finished", "log main:", "sound: every event is present"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
