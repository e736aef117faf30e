//! Reads the Prometheus text format, version 0.0.4: names, labels and values. Comments (with
//! `HELP` and `TYPE`) and timestamps are passed over. `report/prometheus.rs` writes it.
//!
//! The format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;
use std::fmt;

/// One value with its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    labels: Vec<(String, String)>,
    /// As written; may be infinite or not a number.
    pub value: f64,
}

impl Series {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| &**value)
    }

    /// Whether it has all labels of `other`, with the same values.
    fn has_labels_of(&self, other: &Series) -> bool {
        other.labels.iter().all(|(name, value)| self.label(name) == Some(value))
    }

    /// The value as a count: not negative, whole, at most 2^53, up to which the format is exact.
    #[must_use]
    pub fn count(&self) -> u64 {
        whole(self.value)
    }

    /// A value in seconds, in whole µs.
    #[must_use]
    pub fn micros(&self) -> u64 {
        whole((self.value * 1e6).round())
    }
}

fn whole(value: f64) -> u64 {
    const EXACT: f64 = (1u64 << 53) as f64;
    value.clamp(0.0, EXACT) as u64
}

/// A page of figures, by name and in the page's order within a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page(BTreeMap<String, Vec<Series>>);

/// What is wrong with a page, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// The rule that is broken.
    pub what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Page {
    /// Reads a whole page.
    ///
    /// # Errors
    /// The first line that is no figure.
    pub fn parse(text: &str) -> Result<Page, Fault> {
        let mut page = Page::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_matches([' ', '\t']);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, series) = figure(line).map_err(|what| Fault { line: at + 1, what })?;
            page.0.entry(name.to_owned()).or_default().push(series);
        }
        Ok(page)
    }

    /// All series of a name.
    #[must_use]
    pub fn series(&self, name: &str) -> &[Series] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The sum of all samples of a metric on a page, which may hold lines that are not understood.
/// `metric` is a name, or a name with labels that a sample must have: `name{route="/e"}`. `None`
/// without any sample, or if `metric` is neither.
pub fn sum(page: &str, metric: &str) -> Option<f64> {
    let pattern = format!("{metric} 0");
    let (name, wanted) = figure(&pattern).ok()?;
    let lines = page.lines().filter(|line| line.starts_with(name));
    let samples = lines.filter_map(|line| {
        // What follows ` # ` is an exemplar of OpenMetrics.
        figure(line.split(" # ").next()?).ok()
    });
    let of_metric = samples.filter(|(there, s)| *there == name && s.has_labels_of(&wanted));
    of_metric.map(|(_, sample)| sample.value).reduce(|a, b| a + b)
}

fn figure(line: &str) -> Result<(&str, Series), &'static str> {
    let end = line.find(|c: char| !is_name(c)).unwrap_or(line.len());
    let (name, mut rest) = line.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("does not begin with the name of a figure");
    }
    let mut labels = Vec::new();
    rest = rest.trim_start_matches([' ', '\t']);
    if let Some(inner) = rest.strip_prefix('{') {
        rest = read_labels(inner, &mut labels)?;
    } else if rest.len() == line.len() - end {
        return Err("a name must be followed by labels or a space");
    }
    let mut words = rest.split([' ', '\t']).filter(|word| !word.is_empty());
    let value = words.next().ok_or("has no value")?;
    let value: f64 = value.parse().map_err(|_| "the value is not a number")?;
    if words.next().is_some_and(|time| time.parse::<i64>().is_err()) {
        return Err("what follows the value is not a time");
    }
    if words.next().is_some() {
        return Err("something follows the time");
    }
    Ok((name, Series { labels, value }))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Reads the labels after `{`, and returns the text after `}`.
fn read_labels<'a>(
    mut rest: &'a str,
    labels: &mut Vec<(String, String)>,
) -> Result<&'a str, &'static str> {
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if let Some(after) = rest.strip_prefix('}') {
            return Ok(after);
        }
        let (name, after) = rest.split_once('=').ok_or("the labels have no end")?;
        let name = name.trim_end_matches([' ', '\t']);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err("a label has no proper name");
        }
        let quoted = after.trim_start_matches([' ', '\t']);
        let quoted = quoted.strip_prefix('"').ok_or("a label's value is not in quotes")?;
        let mut value = String::new();
        rest = read_quoted(quoted, &mut value)?.trim_start_matches([' ', '\t']);
        labels.push((name.to_owned(), value));
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with('}') => {}
            None => return Err("labels are separated by commas"),
        }
    }
}

/// Reads up to the closing quote, and returns the text after it.
fn read_quoted<'a>(text: &'a str, value: &mut String) -> Result<&'a str, &'static str> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok(&text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('\\' | '"'))) => value.push(c),
                _ => return Err("a label's value has an unknown escape"),
            },
            c => value.push(c),
        }
    }
    Err("a label's value has no closing quote")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_server_writes_is_read_whole() {
        let text = include_str!("../../cli/src/top/metrics.txt");
        let page = Page::parse(text).unwrap();
        let series: usize = page.0.values().map(Vec::len).sum();
        assert_eq!(series, text.lines().filter(|line| !line.starts_with('#')).count());
        let requests = page.series("wellspring_requests_total");
        let taken = requests.iter().find(|s| s.label("route") == Some("POST /e")).unwrap();
        assert_eq!((taken.label("status"), taken.count()), (Some("202"), 3));
        assert_eq!(page.series("wellspring_log_head")[0].count(), 6);
        assert_eq!(page.series("process_open_fds")[0].labels, []);
        let sum = &page.series("wellspring_request_duration_seconds_sum")[0];
        assert!((sum.value - 0.001_564).abs() < 1e-12);
        assert!(page.series("nothing").is_empty());
    }

    #[test]
    fn the_format_is_read_in_all_its_forms() {
        let text = "# HELP a b\n\n a{x=\"1\\n\\\"\\\\\",y = \"}\" , } +Inf 1395066363000\nb\t-3.5e2\r\nc{} NaN\n";
        let page = Page::parse(text).unwrap();
        let a = &page.series("a")[0];
        assert_eq!((a.label("x"), a.label("y")), (Some("1\n\"\\"), Some("}")));
        assert_eq!((a.value, a.count()), (f64::INFINITY, 1 << 53));
        assert_eq!((page.series("b")[0].value, page.series("b")[0].count()), (-350.0, 0));
        assert_eq!(page.series("c")[0].count(), 0);
    }

    #[test]
    fn samples_of_one_name_are_added_and_others_left_alone() {
        let page = "# HELP a_total x\na_total{r=\"/x\"} 3 # {t=\"x\"} 1\n\
                    a_total{r=\"} 9\",s=\"1\"} 4\na_total_more 9\nb 1\n<p>\n";
        assert_eq!(sum(page, "a_total"), Some(7.0));
        assert_eq!(sum(page, "a_total{r=\"/x\"}"), Some(3.0));
        assert_eq!(sum(page, "a_total{s=\"1\"}"), Some(4.0));
        assert_eq!(sum(page, "a_total{s=\"2\"}"), None);
        assert_eq!(sum(page, "b"), Some(1.0));
        assert_eq!((sum(page, "c"), sum(page, ""), sum(page, "a{")), (None, None, None));
    }

    #[test]
    fn rubbish_is_named_with_its_line() {
        for (line, word) in [
            ("<html>", "name"),
            ("{\"status\":\"healthy\"}", "name"),
            ("9a 1", "name"),
            ("a", "labels or a space"),
            ("a-b 1", "space"),
            ("a{x=\"1\"}", "value"),
            ("a{x=\"1\" 1", "comma"),
            ("a{x=\"1", "closing quote"),
            ("a{x=1} 1", "quotes"),
            ("a{x} 1", "end"),
            ("a{=\"1\"} 1", "proper name"),
            ("a{x=\"\\t\"} 1", "escape"),
            ("a one", "number"),
            ("a 1 now", "time"),
            ("a 1 2 3", "follows"),
        ] {
            let fault = Page::parse(&format!("ok 1\n{line}\n")).unwrap_err();
            assert_eq!(fault.line, 2, "{line}");
            assert!(fault.what.contains(word), "{line}: {fault}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "\\PC*", cut in 0usize..12_000) {
            let _ = Page::parse(&text);
            let real = include_str!("../../cli/src/top/metrics.txt");
            let cut = cut.min(real.len());
            let _ = Page::parse(&format!("{}{text}{}", &real[..cut], &real[cut..]));
        }
    }
}
