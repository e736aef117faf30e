//! Five forms of report, as they are found in published benchmarks, written from
//! one or several result files. All are Markdown that reads well as plain text;
//! every ratio and change is computed from raw values (check C15), and the last
//! lines are the verdicts of the inputs.

mod block;
mod comparison;
mod ladder;
mod library;
mod sweep;

use super::view;
use super::view::StepView;
use crate::numbers::timestamp;
use crate::page::Page;
use crate::plan::Load;
use crate::result::Report;

/// The numbers of the forms, each with what it shows.
pub const FORMS: [(u8, &str); 5] = [
    (1, "metrics, percentile spreads, and two concurrency levels compared"),
    (2, "ladder by users, several builds side by side, the best of each row"),
    (3, "writes and reads, scaling by connections, sweeps, run history"),
    (4, "an ab-style block for each endpoint"),
    (5, "environment, library micro-benchmarks, endpoints, ranking, library against HTTP"),
];

/// One micro-benchmark of a library, whichever program measured it.
#[derive(Clone, Debug, PartialEq)]
pub struct MicroRow {
    /// Its name, e.g. `append/1KiB`.
    pub name: String,
    /// Operations a second; above 0.
    pub ops_per_s: f64,
    /// Time of one operation, in nanoseconds; above 0.
    pub time_ns: f64,
    /// Memory allocated by one operation, in bytes; `None` if not measured.
    pub bytes: Option<f64>,
    /// Allocations made by one operation; `None` if not measured.
    pub allocs: Option<f64>,
}

/// Why a form could not be written. Trying again does not help; other input does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormError {
    /// There is no form of this number.
    Unknown(u8),
    /// The form needs input it was not given.
    Lacks {
        /// The form's number.
        form: u8,
        /// What it needs, and where that comes from.
        needs: &'static str,
    },
}

impl std::fmt::Display for FormError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FormError::Unknown(number) => {
                write!(f, "there is no form {number}; the forms are ")?;
                let last = FORMS.len() - 1;
                for (at, (number, what)) in FORMS.iter().enumerate() {
                    let before = if at == 0 { "" } else { "; " };
                    let and = if at == last { "and " } else { "" };
                    write!(f, "{before}{and}{number} ({what})")?;
                }
                Ok(())
            }
            FormError::Lacks { form, needs } => write!(f, "form {form} needs {needs}"),
        }
    }
}

impl std::error::Error for FormError {}

/// Writes form `number` (1 to 5) from result files and, for form 5, micro-benchmarks.
///
/// # Errors
/// [`FormError`], which says what input the form lacks.
pub fn form(number: u8, reports: &[Report], micro: &[MicroRow]) -> Result<String, FormError> {
    if !FORMS.iter().any(|(known, _)| *known == number) {
        return Err(FormError::Unknown(number));
    }
    if !reports.iter().flat_map(|report| &report.steps).any(|step| !step.runs.is_empty()) {
        let needs =
            "at least one result file with a measured step (wellspring bench … --json FILE)";
        return Err(FormError::Lacks { form: number, needs });
    }
    let title = reports.iter().map(|report| report.title.as_str()).collect::<Vec<_>>().join(", ");
    let mut page = Page::titled(&title);
    match number {
        1 => comparison::write(&mut page, reports),
        2 => ladder::write(&mut page, reports)?,
        3 => sweep::write(&mut page, reports),
        4 => block::write(&mut page, reports),
        _ => library::write(&mut page, reports, micro)?,
    }
    verdicts(&mut page, reports);
    Ok(page.markdown())
}

/// The last lines: the verdict of each input, with its name where there are several.
fn verdicts(page: &mut Page, reports: &[Report]) {
    for (report, name) in reports.iter().zip(names(reports)) {
        let verdict = view::verdict(report.verdict.as_ref());
        if reports.len() > 1 {
            page.text(format!("{name}: {verdict}"));
        } else {
            page.text(verdict);
        }
    }
}

/// The reports' titles, told apart by a number where they are equal.
fn names(reports: &[Report]) -> Vec<String> {
    let title = |report: &Report| report.title.clone();
    let mut names: Vec<String> = Vec::new();
    for (at, report) in reports.iter().enumerate() {
        let earlier = reports[..at].iter().filter(|r| r.title == report.title).count();
        names.push(match earlier {
            0 => title(report),
            _ => format!("{} ({})", report.title, earlier + 1),
        });
    }
    names
}

/// One line on where a report comes from.
fn origin(report: &Report) -> String {
    let environment = &report.environment;
    let mut parts =
        vec![timestamp(report.started_unix_us), format!("target {}", environment.target)];
    parts.extend(environment.server.header.as_ref().map(|header| format!("server {header}")));
    parts.extend(environment.cpu_model.clone());
    parts.extend(environment.kernel.clone());
    parts.extend(environment.git_revision.as_ref().map(|revision| format!("git {revision}")));
    parts.push(report.tool.clone());
    parts.join(" · ")
}

/// A step of one of the reports, with the name of that report.
struct Named<'a> {
    report: String,
    view: StepView<'a>,
}

impl Named<'_> {
    /// The step's name, with the report's where there are several reports.
    fn label(&self, several: bool) -> String {
        if several {
            format!("{}, {}", self.report, self.view.step.name)
        } else {
            self.view.step.name.clone()
        }
    }
}

/// All measured steps of all reports in order.
fn measured_steps(reports: &[Report]) -> Vec<Named<'_>> {
    let named = reports.iter().zip(names(reports));
    named
        .flat_map(|(report, name)| {
            let measured = report.steps.iter().filter(|step| !step.runs.is_empty());
            measured.map(move |step| Named { report: name.clone(), view: StepView::of(step) })
        })
        .collect()
}

/// Names how the rate `new_per_s` compares with `old_per_s`: `speed-up 1.90×` where it is higher,
/// `slower 1.90×` where it is lower, `equal` where the digits would say 1.00.
fn pace(new_per_s: f64, old_per_s: f64) -> String {
    let ratio = new_per_s / old_per_s;
    if !ratio.is_finite() || ratio <= 0.0 {
        return crate::numbers::NOT_AVAILABLE.to_owned();
    }
    if (ratio.max(1.0 / ratio) - 1.0) < 0.005 {
        return "equal".to_owned();
    }
    let word = if ratio > 1.0 { "speed-up" } else { "slower" };
    format!("{word} {}", crate::numbers::factor(ratio.max(1.0 / ratio)))
}

/// What a step is in a ladder: so many users, or in open loop such a rate.
fn rung(view: &StepView<'_>) -> f64 {
    match view.step.settings.load {
        Load::Open { rate_per_s, .. } => rate_per_s,
        Load::Closed { .. } => view.in_flight() as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, assert_golden};

    /// A second build: everything 25% faster but the last rung, which is slower.
    fn build_b() -> Report {
        let mut report = sample::ladder();
        report.title = "build B".into();
        let rungs = [
            (1, 5_000, 200_000),
            (4, 15_000, 264_000),
            (16, 20_000, 792_000),
            (64, 12_000, 5_250_000),
        ];
        for (step, (connections, count, typical_ns)) in report.steps.iter_mut().zip(rungs) {
            assert_eq!(step.settings.connections, connections);
            step.runs =
                vec![sample::run(1, vec![sample::endpoint("GET /health", count, typical_ns)])];
        }
        report.findings.clear();
        report.verdict = Some(crate::result::Verdict::Trusted);
        report
    }

    fn micro() -> Vec<MicroRow> {
        vec![
            MicroRow {
                name: "log/append".into(),
                ops_per_s: 1.25e6,
                time_ns: 800.0,
                bytes: Some(512.0),
                allocs: Some(3.0),
            },
            MicroRow {
                name: "log/events".into(),
                ops_per_s: 4.0e6,
                time_ns: 250.0,
                bytes: None,
                allocs: None,
            },
        ]
    }

    #[test]
    fn the_five_forms() {
        let two = [sample::ladder(), build_b()];
        let mixed = [sample::two_endpoints()];
        let write = |number, reports: &[Report]| form(number, reports, &micro()).unwrap();
        assert_golden(&[
            ("form1.md", write(1, &two[..1])),
            ("form1_single.md", write(1, &[sample::open()])),
            ("form2.md", write(2, &two)),
            (
                "form3.md",
                write(3, &[sample::two_endpoints(), sample::repeated(), sample::ladder()]),
            ),
            ("form4.md", write(4, &[sample::failing(), sample::two_endpoints()])),
            ("form5.md", write(5, &mixed)),
        ]);
    }

    #[test]
    fn a_form_says_what_it_lacks() {
        let one = [sample::closed()];
        let said = |number, reports: &[Report], micro: &[MicroRow]| {
            form(number, reports, micro).unwrap_err().to_string()
        };
        assert!(said(1, &[], &[]).starts_with("form 1 needs at least one result file"));
        assert!(said(4, &[sample::report("empty", vec![])], &[]).starts_with("form 4 needs"));
        assert!(said(2, &one, &[]).contains("a ladder"));
        assert!(said(5, &one, &[]).contains("micro-benchmarks"));
        let unknown = said(6, &one, &[]);
        assert!(
            unknown.starts_with("there is no form 6; the forms are 1 (")
                && unknown.contains("; and 5 (")
        );
    }

    #[test]
    fn every_form_ends_with_the_verdicts_and_keeps_names_in_their_place() {
        let reports = [sample::hostile(), sample::hostile(), sample::ladder()];
        for (number, _) in FORMS {
            let text = form(number, &reports, &micro()).unwrap();
            let last: Vec<&str> = text.lines().rev().filter(|l| !l.is_empty()).take(3).collect();
            assert_eq!(last[0], "build A: USE WITH CARE: the rate fell during c=64 (C9)");
            assert!(last[1].contains(" (2): USE WITH CARE"), "{}", last[1]);
            let raw = text.replace("\\<", "");
            assert!(!raw.contains("<s") && !raw.contains('\x1b'), "{number}: {raw}");
        }
    }
}
