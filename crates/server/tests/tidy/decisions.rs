//! The records of decisions: short, of one form, and all of them in the index.

use crate::{entries, root};
use std::fs;

/// The most bytes of a record.
const MOST_BYTES: usize = 4_096;

/// Pages of the folder that are no records.
const OTHERS: [&str; 2] = ["README.md", "template.md"];

/// What is wrong with the record in the file `name`.
fn faults(name: &str, text: &str) -> Vec<String> {
    let number = name.split('-').next().expect("a number");
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let heading = lines.next().unwrap_or_default();
    let mut found = Vec::new();
    if number.len() != 4 || number.bytes().any(|byte| !byte.is_ascii_digit()) {
        found.push("the file's name begins with no four digits".to_owned());
    }
    if !heading.starts_with(&format!("# {number}: ")) {
        found.push(format!("the heading is {heading:?}, not \"# {number}: …\""));
    }
    // A line in italics may say what has come of it.
    let opening = lines.find(|line| !line.starts_with('*') || line.starts_with("**"));
    if !opening.is_some_and(|line| line.starts_with("**Context.**")) {
        found.push("it does not begin with **Context.**".to_owned());
    }
    if !text.contains("\n**Decision.**") {
        found.push("no paragraph begins with **Decision.**".to_owned());
    }
    if text.len() > MOST_BYTES {
        found.push(format!("{} bytes, {MOST_BYTES} are allowed", text.len()));
    }
    found
}

/// Whether a row of the index is that of the record `name`: `| [n](name) | date | status | … |`.
fn is_row_of(row: &str, name: &str) -> bool {
    let number = &name[..4];
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let [_, record, date, status, decision, _] = cells[..] else { return false };
    let is_date = date.len() == 10
        && date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let states = ["accepted", "amended by [", "extended by [", "superseded "];
    record == format!("[{number}]({name})")
        && is_date
        && states.iter().any(|state| status.starts_with(state))
        && !decision.is_empty()
}

#[test]
fn records_of_decisions_are_short_of_one_form_and_in_the_index() {
    let folder = root().join("docs/decisions");
    let index = fs::read_to_string(folder.join("README.md")).expect("the index");
    let mut wrong = Vec::new();
    let mut records = Vec::new();
    for path in entries(&folder) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if OTHERS.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("UTF-8");
        let found = faults(&name, &text);
        wrong.extend(found.iter().map(|fault| format!("docs/decisions/{name}: {fault}")));
        records.push(name);
    }
    let rows: Vec<&str> = index.lines().filter(|line| line.starts_with("| [")).collect();
    let are_all = rows.len() == records.len()
        && rows.iter().zip(&records).all(|(row, name)| is_row_of(row, name));
    if !are_all {
        let lacking = records.iter().find(|name| !rows.iter().any(|row| is_row_of(row, name)));
        wrong.push(format!(
            "docs/decisions/README.md: a row for each record, in order: | [0001](0001-….md) | \
             2026-11-21 | accepted | … |; without one: {lacking:?}"
        ));
    }
    assert!(wrong.is_empty(), "{}\nSee docs/decisions/template.md.", wrong.join("\n"));
}

#[test]
fn faults_of_a_record_are_found() {
    let good = "# 0007: A thing\n\n*Superseded in part.*\n\n**Context.** x\n\n**Decision.** y\n";
    assert_eq!(faults("0007-a.md", good), Vec::<String>::new());
    assert_eq!(faults("0008-a.md", good).len(), 1);
    assert_eq!(faults("7-a.md", &good.replace("Context", "Question")).len(), 3);
    assert_eq!(faults("0007-a.md", &good.replace("\n**Decision.**", "Decided: ")).len(), 1);
    assert_eq!(faults("0007-a.md", &(good.to_owned() + &"z".repeat(MOST_BYTES))).len(), 1);
    let row = "| [0007](0007-a.md) | 2026-11-21 | superseded by [0008](0008-b.md) | Y |";
    assert!(is_row_of(row, "0007-a.md") && !is_row_of(row, "0008-b.md"));
    assert!(!is_row_of(&row.replace("superseded", "maybe"), "0007-a.md"));
    assert!(!is_row_of(&row.replace("2026-11-21", "yesterday"), "0007-a.md"));
}
