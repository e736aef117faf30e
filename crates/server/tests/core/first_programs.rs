//! The first programs on the pages `docs/coming-from` are run as printed, each page against its own
//! server.

use crate::readme::{is_shown, run, shown};
use crate::server::Server;
use std::fs;
use std::path::Path;

/// The commands of a page in their order, with its programs in Python among them.
fn commands(page: &str) -> String {
    let mut commands = String::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        match block.split_once('\n') {
            Some(("sh", text)) => commands += &format!("{text}\n"),
            Some(("python", text)) => {
                commands += &format!("python3 - <<'PROGRAM'\n{text}\nPROGRAM\n");
            }
            _ => {}
        }
    }
    commands
}

#[test]
fn first_programs_of_people_who_know_another_product_work_as_printed() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from");
    let mut paths: Vec<_> =
        fs::read_dir(pages).expect("a folder").map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "{paths:?}");
    for path in paths {
        let name = path.display();
        let commands = commands(&fs::read_to_string(&path).expect("UTF-8"));
        assert!(!commands.is_empty(), "{name} has a program");
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_in(&folder.path().join("data"), &[]);
        let output = run(folder.path(), &server, &commands);
        let out = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{out}\n{errors}", output.status);
        for answer in shown(&commands) {
            assert!(is_shown(&answer, &out), "{name}: {answer} is shown, found is\n{out}");
        }
    }
}

#[test]
fn commands_and_programs_of_a_page_keep_their_order() {
    let page = "# A\n\n```sh\na\n```\ntext\n```json\n{}\n```\n```python\nb\n```\n";
    assert_eq!(commands(page), "a\npython3 - <<'PROGRAM'\nb\nPROGRAM\n");
}
