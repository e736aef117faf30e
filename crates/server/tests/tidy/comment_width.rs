//! Comments wrap at 100 columns, as the code does: rustfmt leaves them alone.

use crate::tokens::tokens_and_comments;
use crate::wording::SOURCES;
use crate::{collect, relative, root};

const COLUMNS: usize = 100;

/// The lines of comments in `source` that are wider than [`COLUMNS`], each with its width. What
/// cannot be wrapped is passed over: code fences, indented code, tables, diagrams and addresses.
fn wide_lines(source: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    let mut in_fence = false;
    let mut last_line = 0;
    for comment in tokens_and_comments(source).1 {
        if comment.line > last_line + 1 {
            in_fence = false; // a fence ends with its block of comments
        }
        for (line, text) in (comment.line..).zip(comment.text.lines()) {
            last_line = line;
            let text = text.trim_start_matches(['/', '!', '*', ' ']);
            let indent = lines[line - 1].split("//").nth(1).map_or(0, |behind| {
                let behind = behind.trim_start_matches(['/', '!']);
                behind.len() - behind.trim_start().len()
            });
            if text.starts_with("```") {
                in_fence = !in_fence;
            }
            let width = lines[line - 1].chars().count();
            let is_exempt = in_fence
                || indent >= 5
                || text.starts_with('|')
                || text.contains(['─', '│', '►', '└'])
                || text.split_whitespace().count() <= 2 && text.contains("://");
            if width > COLUMNS && !is_exempt {
                found.push((line, width));
            }
        }
    }
    found
}

#[test]
fn comments_wrap_at_100_columns() {
    let mut faults = Vec::new();
    for folder in SOURCES {
        collect(&root().join(folder), &mut |path, source| {
            let wide = wide_lines(source).into_iter();
            let tell = |(line, width)| format!("{}:{line}: {width} columns", relative(path));
            faults.extend(wide.map(tell));
        });
    }
    assert!(faults.is_empty(), "{}\nWrap comments at {COLUMNS} columns.", faults.join("\n"));
}

#[test]
fn characters_are_counted_and_what_cannot_be_wrapped_is_passed_over() {
    let wide = "x".repeat(COLUMNS - 3);
    let fits = "é".repeat(COLUMNS - 4);
    let source = format!(
        "/// {fits}\n//! {wide}\n/// | {wide}\n// ```\n// {wide} y\n// ```\n///      {wide}\n\
         // ├─ {wide}\n// <https://example.com/{wide}>\nlet a = \"// {wide}\"; // {wide}\n"
    );
    assert_eq!(wide_lines(&source), [(2, COLUMNS + 1), (10, 212)]);
}
