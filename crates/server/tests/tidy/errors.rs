//! Errors are values: how many results of product code have a sentence instead of a type.

use super::tokens::{Token, tokens_and_comments};
use super::{collect, root};

/// The results that are left. The number may only fall.
const MOST: usize = 25;

/// The results in product code whose error is `String`.
fn sentences(source: &str) -> usize {
    let (tokens, _) = tokens_and_comments(source);
    let product: Vec<&Token<'_>> = tokens.iter().filter(|token| !token.in_test).collect();
    let begins = product.windows(2).enumerate();
    let begins = begins.filter(|(_, two)| two[0].text == "Result" && two[1].text == "<");
    begins.filter(|(at, _)| has_sentence(&product[at + 1..])).count()
}

/// Whether the last argument of these generics, which begin with `<`, is `String`.
fn has_sentence(tokens: &[&Token<'_>]) -> bool {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "<" => depth += 1,
            // Of an arrow, it closes nothing.
            ">" if tokens[at - 1].text == "-" => {}
            ">" if depth == 1 => {
                return tokens[at - 1].text == "String" && tokens[at - 2].text == ",";
            }
            ">" => depth -= 1,
            ";" | "{" => return false,
            _ => {}
        }
    }
    false
}

#[test]
fn results_with_a_sentence_for_an_error_become_fewer() {
    assert_eq!(sentences("fn a() -> Result<Vec<(u8, String)>, String> {}"), 1);
    assert_eq!(
        sentences("fn a(x: impl Fn() -> Result<(), String>) -> Result<String, Error> {}"),
        1
    );
    assert_eq!(sentences("fn a() -> Result<Map<u8, String>, Error> {}"), 0);
    assert_eq!(sentences("#[cfg(test)] fn a() -> Result<(), String> {}"), 0);
    let mut found = 0;
    let mut files = Vec::new();
    for top in ["crates", "loadtest"] {
        collect(&root().join(top), &mut |path, text| {
            let is_test = path.components().any(|part| part.as_os_str() == "tests")
                || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
            let here = if is_test { 0 } else { sentences(text) };
            found += here;
            if here > 0 {
                files.push(format!("{here:3} {}", super::relative(path)));
            }
        });
    }
    let list = files.join("\n");
    assert!(
        found <= MOST,
        "{found} results have a sentence for an error, at most {MOST} may:\n{list}"
    );
    assert!(found == MOST, "{found} are left: lower MOST to it, so that none comes back");
}
