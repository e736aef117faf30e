//! The renderers: each a pure function from a [`crate::result::Report`] to text.
//!
//! They print what is in the report and judge nothing: findings, thresholds and
//! the verdict are there already. All figures come from the raw values; what is
//! not known is `n/a`, never guessed. Each form ends with the verdict.

mod ab;
mod forms;
mod html;
mod markdown;
mod measured;
mod redact;
#[cfg(test)]
pub(crate) mod sample;
mod tables;
mod terminal;
mod view;

pub use ab::ab;
pub use forms::{Form, FormError, MicroRow, form};
pub use html::{comparison_html, html};
pub use markdown::markdown;
pub use redact::redact_command;
pub use terminal::{TerminalOptions, terminal};

#[cfg(test)]
mod tests {
    use super::forms::FORMS;
    use super::*;
    use crate::result::{EndpointResult, Finish, Report};

    fn all(report: &Report) -> Vec<String> {
        let micro =
            MicroRow { name: "a".into(), ops_per_s: 1e6, time_ns: 1e3, bytes: None, allocs: None };
        let reports = [report.clone(), report.clone()];
        let mut texts = vec![
            terminal(report, &TerminalOptions { all_checks: true, ..TerminalOptions::default() }),
            markdown(report),
            html(report),
            ab(report),
        ];
        texts.extend(
            FORMS.iter().filter_map(|shown| {
                form(shown.number, &reports, std::slice::from_ref(&micro)).ok()
            }),
        );
        texts
    }

    #[test]
    fn a_file_read_back_renders_the_same() {
        for report in [sample::open(), sample::failing()] {
            let read = Report::from_json(&report.to_json()).unwrap();
            assert_eq!(all(&read), all(&report));
        }
    }

    #[test]
    fn runs_in_which_nothing_happened_are_rendered_without_nonsense() {
        let mut silent = sample::run(1, vec![EndpointResult::new("GET /health")]);
        silent.measured_ns = 0;
        silent.client.workers.clear();
        silent.finish = Finish::Aborted("nobody answered".into());
        let none = sample::run(1, Vec::new());
        let mut steps = vec![
            sample::step("c=0", 0, vec![silent.clone(), silent]),
            sample::step("none", 4, vec![none]),
            sample::step("never run", 8, Vec::new()),
        ];
        let whole = sample::report("silent", steps.clone());
        let mut reports = vec![whole];
        while steps.pop().is_some() {
            reports.push(sample::report("silent", steps.clone()));
        }
        for text in reports.iter().flat_map(all) {
            for nonsense in ["NaN", "inf ", "inf/", "inf|", "-0 "] {
                assert!(!text.contains(nonsense), "{nonsense} in {text}");
            }
        }
    }
}
