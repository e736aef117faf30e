//! Five forms of report, as they are found in published benchmarks, written from
//! one or several result files. All are Markdown that reads well as plain text;
//! every ratio and change is computed from raw values (check C15), and the last
//! lines are the verdicts of the inputs.
//!
//! A form is a description, [`Form`]: its sections, each with the tables it shows. [`form`] reads
//! it and writes the page.

mod builds;
mod descriptions;
mod metric;
mod sweeps;

use super::measured::Measured;
use super::view::{self, StepView};
use crate::numbers::timestamp;
use crate::page::Page;
use crate::result::Report;
use crate::table::Table;

pub(crate) use descriptions::FORMS;

/// A form: what it shows, and of what it is made.
#[derive(Clone, Copy)]
pub struct Form {
    /// Its number, by which it is asked for.
    pub number: u8,
    /// What it shows.
    pub shows: &'static str,
    /// What it needs besides a measured step, and where that comes from.
    lacks: fn(&Input<'_>) -> Option<&'static str>,
    sections: &'static [Section],
}

/// Tables under one heading.
#[derive(Clone, Copy)]
struct Section {
    /// Empty if the tables have headings of their own.
    heading: &'static str,
    tables: fn(&Input<'_>) -> Vec<Part>,
    /// Said below the tables.
    note: &'static str,
    /// Said in their place if there are none; if empty, the section is left out then.
    missing: &'static str,
}

/// A table with what stands around it.
struct Part {
    heading: Heading,
    before: String,
    table: Option<Table>,
    after: String,
}

enum Heading {
    None,
    Main(String),
    Small(String),
}

impl Part {
    fn of(table: Table) -> Self {
        let (before, after) = (String::new(), String::new());
        Part { heading: Heading::None, before, table: Some(table), after }
    }

    fn headed(self, text: impl Into<String>) -> Self {
        Part { heading: Heading::Main(text.into()), ..self }
    }

    fn small_headed(self, text: impl Into<String>) -> Self {
        Part { heading: Heading::Small(text.into()), ..self }
    }

    fn write(self, page: &mut Page) {
        match self.heading {
            Heading::None => {}
            Heading::Main(text) => page.heading(text),
            Heading::Small(text) => page.small_heading(text),
        }
        paragraph(page, self.before);
        if let Some(table) = self.table {
            page.table(table);
        }
        paragraph(page, self.after);
    }
}

fn paragraph(page: &mut Page, text: impl Into<String> + AsRef<str>) {
    if !text.as_ref().is_empty() {
        page.text(text);
    }
}

/// What a form is written from.
struct Input<'a> {
    reports: &'a [Report],
    /// The reports' titles, told apart by a number where they are equal.
    names: Vec<String>,
    /// All measured steps of all reports, in order.
    steps: Vec<MeasuredStep<'a>>,
    micro: &'a [MicroRow],
}

/// A step of one of the reports.
struct MeasuredStep<'a> {
    view: StepView<'a>,
    measured: Measured,
}

impl<'a> Input<'a> {
    fn new(reports: &'a [Report], micro: &'a [MicroRow]) -> Self {
        let names = names(reports);
        let steps = reports.iter().zip(&names).flat_map(|(report, name)| {
            let measured = report.steps.iter().filter(|step| !step.runs.is_empty());
            measured.map(move |step| {
                let label = match reports.len() {
                    1 => step.name.clone(),
                    _ => format!("{name}, {}", step.name),
                };
                let view = StepView::of(step);
                MeasuredStep { measured: Measured::step(&view, name, label), view }
            })
        });
        Input { reports, steps: steps.collect(), names, micro }
    }

    fn several(&self) -> bool {
        self.reports.len() > 1
    }

    /// The measured steps as rows.
    fn measured(&self) -> Vec<Measured> {
        self.steps.iter().map(|step| step.measured.clone()).collect()
    }

    /// The measured endpoints of all steps as rows.
    fn endpoints(&self) -> Vec<Measured> {
        self.steps.iter().flat_map(MeasuredStep::endpoints).collect()
    }
}

impl MeasuredStep<'_> {
    fn endpoints(&self) -> Vec<Measured> {
        self.measured.endpoints(&self.view)
    }
}

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
                for (at, Form { number, shows, .. }) in FORMS.iter().enumerate() {
                    let before = if at == 0 { "" } else { "; " };
                    let and = if at == last { "and " } else { "" };
                    write!(f, "{before}{and}{number} ({shows})")?;
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
    let form = FORMS.iter().find(|form| form.number == number);
    let form = form.ok_or(FormError::Unknown(number))?;
    let input = Input::new(reports, micro);
    let lacks = match input.steps.as_slice() {
        [] => {
            Some("at least one result file with a measured step (wellspring bench … --json FILE)")
        }
        _ => (form.lacks)(&input),
    };
    if let Some(needs) = lacks {
        return Err(FormError::Lacks { form: number, needs });
    }
    let titles: Vec<&str> = reports.iter().map(|report| report.title.as_str()).collect();
    let mut page = Page::titled(titles.join(", "));
    page.list(reports.iter().map(origin));
    for section in form.sections {
        section.write(&mut page, &input);
    }
    for (report, name) in reports.iter().zip(&input.names) {
        let verdict = view::verdict(report.verdict.as_ref());
        page.text(if input.several() { format!("{name}: {verdict}") } else { verdict });
    }
    Ok(page.markdown())
}

impl Section {
    fn write(&self, page: &mut Page, input: &Input<'_>) {
        let parts = (self.tables)(input);
        if parts.is_empty() && self.missing.is_empty() {
            return;
        }
        if !self.heading.is_empty() {
            page.heading(self.heading);
        }
        let note = if parts.is_empty() { self.missing } else { self.note };
        parts.into_iter().for_each(|part| part.write(page));
        paragraph(page, note);
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
        for Form { number, .. } in FORMS {
            let text = form(number, &reports, &micro()).unwrap();
            let last: Vec<&str> = text.lines().rev().filter(|l| !l.is_empty()).take(3).collect();
            assert_eq!(last[0], "build A: USE WITH CARE: the rate fell during c=64 (C9)");
            assert!(last[1].contains(" (2): USE WITH CARE"), "{}", last[1]);
            let raw = text.replace("\\<", "");
            assert!(!raw.contains("<s") && !raw.contains('\x1b'), "{number}: {raw}");
        }
    }
}
