//! As much of PromQL as it takes to tell which series, labels and functions an expression names.

use std::collections::BTreeSet;

/// Series that an expression selects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) name: String,
    /// The labels it is matched by.
    pub(crate) labels: Vec<String>,
    /// The function that is given its values over a range.
    pub(crate) range_of: Option<String>,
}

/// What an expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expression {
    pub(crate) selectors: Vec<Selector>,
    /// The labels of `by`, `on` and the like.
    pub(crate) grouped_by: BTreeSet<String>,
}

const FUNCTIONS: &[&str] = &[
    "rate",
    "irate",
    "increase",
    "deriv",
    "delta",
    "changes",
    "predict_linear",
    "time",
    "abs",
    "histogram_quantile",
    "absent",
    "clamp_min",
    "clamp_max",
    "max_over_time",
    "min_over_time",
    "avg_over_time",
    "label_replace",
    "scalar",
    "sum",
    "min",
    "max",
    "avg",
    "count",
    "topk",
];
const GROUPINGS: &[&str] = &["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: &[&str] = &["and", "or", "unless", "bool", "offset"];

/// Splits into names, numbers with their units, strings with their quotes, and signs.
fn tokens(text: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' {
            let end = rest[1..].find('"').ok_or_else(|| format!("a string has no end: {rest}"))?;
            end + 2
        } else {
            let of_word = |c: char| c.is_ascii_alphanumeric() || "_:$.".contains(c);
            rest.find(|c| !of_word(c)).unwrap_or(rest.len()).max(first.len_utf8())
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// Reads an expression; the error says what is wrong with it.
pub(crate) fn read_expression(text: &str) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    let mut expression = Expression::default();
    // Open brackets, each with the function it belongs to.
    let mut open: Vec<(&str, Option<&str>)> = Vec::new();
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        at += 1;
        match token {
            "(" => {
                let before = at.checked_sub(2).map(|before| tokens[before]);
                open.push((")", before.filter(|name| FUNCTIONS.contains(name))));
            }
            "[" => open.push(("]", None)),
            "{" => return Err("a selector without a name".to_owned()),
            ")" | "]" | "}" => {
                if open.pop().is_none_or(|(closing, _)| closing != token) {
                    return Err(format!("{token} closes nothing"));
                }
            }
            _ if GROUPINGS.contains(&token) => {
                let end = tokens[at..].iter().position(|token| *token == ")");
                let end = end.filter(|_| next == "(").ok_or(format!("no labels for {token}"))?;
                let labels = tokens[at..at + end].iter().filter(|token| is_name(token));
                expression.grouped_by.extend(labels.map(|label| (*label).to_owned()));
                at += end + 1;
            }
            _ if OPERATORS.contains(&token) || !is_name(token) => {}
            _ if next == "(" || FUNCTIONS.contains(&token) => {
                if !FUNCTIONS.contains(&token) {
                    return Err(format!("no function {token}"));
                }
            }
            _ => {
                let (labels, length) = matchers(&tokens[at..])?;
                at += length;
                let in_range = tokens.get(at) == Some(&"[");
                let function = open.last().and_then(|(_, function)| *function);
                if in_range && function.is_none() {
                    return Err(format!("a range of {token} outside a function"));
                }
                let range_of = function.filter(|_| in_range).map(str::to_owned);
                expression.selectors.push(Selector { name: token.to_owned(), labels, range_of });
            }
        }
    }
    match open.pop() {
        Some((closing, _)) => Err(format!("a {closing} is missing")),
        None if expression.selectors.is_empty() => Err("it selects nothing".to_owned()),
        None => Ok(expression),
    }
}

/// The labels of the matchers that follow a name, if any do, and how many tokens they take.
fn matchers(tokens: &[&str]) -> Result<(Vec<String>, usize), String> {
    if tokens.first() != Some(&"{") {
        return Ok((Vec::new(), 0));
    }
    let end = tokens.iter().position(|token| *token == "}").ok_or("a } is missing")?;
    let mut labels = Vec::new();
    for matcher in tokens[1..end].split(|token| *token == ",") {
        match matcher {
            [label, "=", value] | [label, "=" | "!", "~" | "=", value]
                if is_name(label) && value.starts_with('"') =>
            {
                labels.push((*label).to_owned());
            }
            _ => return Err(format!("not a matcher: {}", matcher.join(" "))),
        }
    }
    Ok((labels, end + 1))
}

#[test]
fn an_expression_is_read_with_its_series_labels_and_ranges() {
    let read = read_expression(
        "histogram_quantile(0.99, sum by (log, le) (rate(a_bucket{log=~\"$log\", x!=\"1\"}[5m]))) \
         / b{y=\"}\"} > 10 and on (instance) c",
    );
    let read = read.expect("sound");
    let selector = |name: &str, labels: &[&str], range_of: Option<&str>| Selector {
        name: name.to_owned(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        range_of: range_of.map(str::to_owned),
    };
    assert_eq!(
        read.selectors,
        [
            selector("a_bucket", &["log", "x"], Some("rate")),
            selector("b", &["y"], None),
            selector("c", &[], None)
        ]
    );
    assert_eq!(read.grouped_by.iter().collect::<Vec<_>>(), ["instance", "le", "log"]);
    for (wrong, fault) in [
        ("rate(a[5m]", "a ) is missing"),
        ("a) > 1", ") closes nothing"),
        ("rates(a[5m])", "no function rates"),
        ("a[5m]", "a range of a outside a function"),
        ("a{b}", "not a matcher: b"),
        ("a{b=\"c} > 1", "a string has no end: \"c} > 1"),
        ("sum by log (a)", "no labels for by"),
        ("1 > 0", "it selects nothing"),
    ] {
        assert_eq!(read_expression(wrong).expect_err(wrong), fault);
    }
}
