//! Families in the Prometheus text format, version 0.0.4.
//!
//! The format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use super::family::{Distribution, Family, Kind, Labels, Series, Value};
use std::fmt::{self, Write as _};

/// A page with all families that have a series.
pub fn page(families: &[Family]) -> String {
    let mut out = String::with_capacity(32 << 10);
    for family in families.iter().filter(|family| !family.is_empty()) {
        // Writing to a string does not fail.
        let _ = write_family(&mut out, family);
    }
    out
}

fn write_family(out: &mut String, family: &Family) -> fmt::Result {
    let Family { name, help, kind, series } = family;
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", Escaped(help, ""))?;
    for Series { labels, value } in series {
        match value {
            Value::Whole(value) => writeln!(out, "{name}{} {value}", Braced(labels, None))?,
            Value::Real(value) => writeln!(out, "{name}{} {value}", Braced(labels, None))?,
            Value::Distribution(distribution) => {
                write_distribution(out, name, labels, distribution)?;
            }
        }
    }
    Ok(())
}

fn write_distribution(
    out: &mut String,
    name: &str,
    labels: &Labels,
    distribution: &Distribution,
) -> fmt::Result {
    let mut below = 0;
    for (bound, count) in distribution.bounds.iter().zip(&distribution.counts) {
        below += count;
        writeln!(out, "{name}_bucket{} {below}", Braced(labels, Some(*bound)))?;
    }
    let count: u64 = distribution.counts.iter().sum();
    writeln!(out, "{name}_bucket{} {count}", Braced(labels, Some(f64::INFINITY)))?;
    writeln!(out, "{name}_sum{} {}", Braced(labels, None), distribution.sum)?;
    writeln!(out, "{name}_count{} {count}", Braced(labels, None))
}

/// Labels as they stand behind a name, perhaps with a bucket's bound.
struct Braced<'a>(&'a Labels, Option<f64>);

impl fmt::Display for Braced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Braced(labels, bound) = self;
        if labels.is_empty() && bound.is_none() {
            return Ok(());
        }
        let mut before = '{';
        for (name, value) in *labels {
            write!(f, "{before}{name}=\"{}\"", Escaped(value, "\""))?;
            before = ',';
        }
        match bound {
            Some(bound) if bound.is_infinite() => write!(f, "{before}le=\"+Inf\"}}"),
            Some(bound) => write!(f, "{before}le=\"{bound}\"}}"),
            None => f.write_char('}'),
        }
    }
}

/// A text with backslashes before what would end it, which line ends and these characters do.
struct Escaped<'a>(&'a str, &'static str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\\' => f.write_str("\\\\")?,
                c if self.1.contains(c) => write!(f, "\\{c}")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_written_as_the_format_says() {
        let label = |value: &str| vec![("log", value.to_owned())];
        let distribution =
            Distribution { bounds: vec![0.00005, 1.0], counts: vec![2, 0, 1], sum: 3.5 };
        let families = [
            Family::gauge("g", "Has no\nlabels \\.", 2.5),
            Family::new(Kind::Gauge, "empty", "Nothing."),
            Family::new(Kind::Counter, "c_total", "Counts.")
                .with(label("a"), 7)
                .with(label("b\"\\\n"), u64::MAX),
            Family::new(Kind::Histogram, "h_seconds", "Times.").with(label("a"), distribution),
        ];
        let expected = r#"# HELP g Has no\nlabels \\.
# TYPE g gauge
g 2.5
# HELP c_total Counts.
# TYPE c_total counter
c_total{log="a"} 7
c_total{log="b\"\\\n"} 18446744073709551615
# HELP h_seconds Times.
# TYPE h_seconds histogram
h_seconds_bucket{log="a",le="0.00005"} 2
h_seconds_bucket{log="a",le="1"} 2
h_seconds_bucket{log="a",le="+Inf"} 3
h_seconds_sum{log="a"} 3.5
h_seconds_count{log="a"} 3
"#;
        assert_eq!(page(&families), expected);
    }
}
