//! What a person sees at the end of `wellspring bench URL`.

mod paint;
mod plots;

use super::tables;
use super::view::{self, ShownFinding, StepView};
use crate::numbers::{quantile_name, timestamp};
use crate::result::{Outcome, Report, Verdict};
use crate::table::{Align, Table, clip, pad, visible};
use paint::{Ink, Painter};

/// How the terminal is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns; below 40 it is taken as 40. Sentences are wrapped to it, the verdict is not.
    pub width: usize,
    /// Whether to write ANSI colours.
    pub colour: bool,
    /// Whether to list the checks that passed, too.
    pub all_checks: bool,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        TerminalOptions { width: 80, colour: false, all_checks: false }
    }
}

/// The report as text for a terminal. Its last line is the verdict.
#[must_use]
pub fn terminal(report: &Report, options: &TerminalOptions) -> String {
    let mut page = Page {
        out: String::new(),
        width: options.width.max(40),
        painter: Painter { colour: options.colour },
    };
    page.head(report);
    let views = StepView::all(report);
    match views.as_slice() {
        [] => page.sentences("", &["Nothing was measured.".to_owned()]),
        [view] => page.one_step(report, view),
        many => page.several_steps(report, many),
    }
    page.checks(report, options.all_checks);
    page.thresholds(report);
    page.verdict(report);
    page.out
}

/// The text so far.
struct Page {
    out: String,
    width: usize,
    painter: Painter,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn heading(&mut self, text: &str) {
        self.out.push('\n');
        let text = self.painter.paint(Ink::Strong, text);
        self.line(&text);
    }

    fn head(&mut self, report: &Report) {
        let title = visible(&report.title);
        let title = self.painter.paint(Ink::Strong, &clip(&title, self.width));
        self.line(&title);
        let mut about = vec![visible(&report.tool), timestamp(report.started_unix_us)];
        let settings = report.steps.first().map(|step| &step.settings);
        // The title often is the URL; the workload says what was asked of it.
        about.extend(settings.map(|settings| visible(&settings.workload)));
        about.extend(report.environment.server.protocol.as_deref().map(visible));
        about.extend(report.environment.server.header.as_deref().map(visible));
        let about = clip(&about.join(" · "), self.width);
        let about = self.painter.paint(Ink::Faint, &about);
        self.line(&about);
    }

    fn one_step(&mut self, report: &Report, view: &StepView<'_>) {
        self.out.push('\n');
        self.summary(report, view);
        self.search(report);
        let title = if view.step.runs.len() > 1 { "Latency, all runs together" } else { "Latency" };
        self.heading(title);
        self.table(&tables::latency(&view.total));
        if view.total.response.is_some() {
            self.out.push('\n');
            for (name, words) in tables::LATENCY_WORDS {
                self.labelled(name, words, Ink::Faint);
            }
        }
        self.distribution(view);
        self.over_time(view);
        if let Some(table) = tables::phases(&view.total) {
            self.heading("Where the time goes");
            self.table(&table);
        }
        if let Some(table) = tables::repeats(view) {
            self.heading("Runs");
            self.table(&table);
        }
        if let Some(table) = tables::endpoints(view) {
            self.heading("Endpoints");
            self.table(&table);
        }
        self.statuses(view);
        self.errors(&[("", view)]);
    }

    fn several_steps(&mut self, report: &Report, views: &[StepView<'_>]) {
        self.search(report);
        self.heading("Steps");
        let mut table = tables::steps(report).unwrap_or_else(|| Table::new([""]));
        if self.width < 90 {
            // The tail beyond p99 is the first to give way on a narrow terminal.
            let beyond = quantile_name(0.999);
            if let Some(at) = table.columns.iter().position(|(name, _)| *name == beyond) {
                table.columns.remove(at);
                for row in &mut table.rows {
                    row.remove(at);
                }
            }
        }
        self.table(&table);
        self.out.push('\n');
        match view::common_load(&report.steps) {
            Some(common) => self.sentences("  ", &[format!("Each step: {common}.")]),
            None => {
                for view in views {
                    let load = view::load(&view.step.settings);
                    let text = format!("{load}, {}", view::length(view.step));
                    self.labelled(&clip(&visible(&view.step.name), 9), &text, Ink::Faint);
                }
            }
        }
        for view in views {
            for sentence in view::early_ends(view.step) {
                self.labelled("ended", &sentence, Ink::Care);
            }
            if let Some(table) = tables::endpoints(view) {
                self.heading(&format!("Endpoints, {}", visible(&view.step.name)));
                self.table(&table);
            }
        }
        let named: Vec<(&str, &StepView<'_>)> =
            views.iter().map(|view| (view.step.name.as_str(), view)).collect();
        self.errors(&named);
    }

    fn summary(&mut self, report: &Report, view: &StepView<'_>) {
        for (name, text) in tables::summary(report, view) {
            let ink = match name {
                "failures" if view.failures() > 0 => Ink::Bad,
                "ended" => Ink::Care,
                _ => Ink::Faint,
            };
            self.labelled(name, &text, ink);
        }
    }

    /// A label in the left margin and text beside it, wrapped.
    fn labelled(&mut self, label: &str, text: &str, ink: Ink) {
        const MARGIN: usize = 13;
        let text = visible(text);
        for (at, part) in wrap(&text, self.width - MARGIN).iter().enumerate() {
            let label = pad(if at == 0 { label } else { "" }, MARGIN - 2, Align::Left);
            let label = self.painter.paint(ink, &label);
            self.line(&format!("  {label}{part}"));
        }
    }

    fn search(&mut self, report: &Report) {
        let lines = tables::search(report);
        if !lines.is_empty() {
            self.heading("Search");
            self.sentences("  ", &lines);
        }
    }

    fn sentences(&mut self, margin: &str, lines: &[String]) {
        for line in lines {
            for part in wrap(&visible(line), self.width - margin.len()) {
                self.line(&format!("{margin}{part}"));
            }
        }
    }

    fn table(&mut self, table: &Table) {
        for (at, line) in table.lines(self.width - 2).iter().enumerate() {
            let line = if at == 0 { self.painter.paint(Ink::Faint, line) } else { line.clone() };
            self.line(&format!("  {line}"));
        }
    }

    fn distribution(&mut self, view: &StepView<'_>) {
        let latency = view.total.latency();
        if latency.is_empty() {
            return;
        }
        self.heading(if view.is_open() { "Distribution of the response" } else { "Distribution" });
        for (label, bar, share) in plots::histogram(latency, self.width) {
            let bar = self.painter.paint(Ink::Plot, &bar);
            self.line(&format!("{label} │{bar} {share}"));
        }
    }

    fn over_time(&mut self, view: &StepView<'_>) {
        let Some(run) = view.step.runs.last() else { return };
        let (strips, seconds) = plots::strips(run, (self.width - 12).saturating_sub(26).max(10));
        if strips.is_empty() {
            return;
        }
        let mut title = "Over time, a block each second".to_owned();
        if seconds > 1 {
            title = format!("Over time, a block each {seconds} seconds, the worst of them");
        }
        if view.step.runs.len() > 1 {
            title += &format!(", run {}", run.repeat);
        }
        self.heading(&title);
        for strip in strips {
            let name = self.painter.paint(Ink::Faint, &pad(strip.name, 10, Align::Left));
            let blocks = self.painter.paint(Ink::Plot, &strip.blocks);
            self.line(&format!("  {name}{blocks}  {}", strip.range));
        }
    }

    fn statuses(&mut self, view: &StepView<'_>) {
        let statuses = tables::statuses(&view.total);
        if statuses.is_empty() {
            return;
        }
        self.heading("Answers by status");
        for (status, text) in statuses {
            let ink = match status {
                200..=299 => Ink::Good,
                500..=599 => Ink::Bad,
                _ => Ink::Care,
            };
            self.labelled(&status.to_string(), &text, ink);
        }
    }

    fn errors(&mut self, views: &[(&str, &StepView<'_>)]) {
        let errors: Vec<(&str, u64, String)> = views
            .iter()
            .flat_map(|(step, view)| {
                tables::errors(view).into_iter().map(|(n, text)| (*step, n, text))
            })
            .collect();
        if errors.is_empty() {
            return;
        }
        self.heading("What went wrong");
        for (step, n, text) in errors {
            let place = if step.is_empty() { String::new() } else { format!("[{step}] ") };
            self.labelled(&crate::numbers::count(n), &format!("{place}{text}"), Ink::Bad);
        }
    }

    fn checks(&mut self, report: &Report, all: bool) {
        let said = view::findings(report, all);
        if said.is_empty() {
            return;
        }
        self.heading("Checks");
        let shown = |finding: &&ShownFinding<'_>| all || finding.outcome != Outcome::NotChecked;
        for finding in said.iter().filter(shown) {
            self.finding(finding);
        }
        if all {
            return;
        }
        let unchecked = said.iter().filter(|said| said.outcome == Outcome::NotChecked);
        let mut names: Vec<String> = unchecked.map(|said| said.check.to_string()).collect();
        names.dedup();
        if !names.is_empty() {
            let text = format!("not checked: {} (--all-checks says why)", names.join(", "));
            self.labelled("?", &text, Ink::Faint);
        }
    }

    fn finding(&mut self, finding: &ShownFinding<'_>) {
        let (mark, ink) = match finding.outcome {
            Outcome::Passed => ("✓", Ink::Good),
            Outcome::NotChecked => ("?", Ink::Faint),
            Outcome::Note => ("·", Ink::Faint),
            Outcome::Care => ("!", Ink::Care),
            Outcome::Stop => ("✗", Ink::Bad),
        };
        let text = format!("{}{}", finding.place(), finding.sentence);
        self.labelled(&format!("{mark} {}", finding.check), &text, ink);
    }

    fn thresholds(&mut self, report: &Report) {
        if report.thresholds.is_empty() {
            return;
        }
        self.heading("Thresholds");
        let several = report.steps.len() > 1;
        for threshold in &report.thresholds {
            let place = if several { format!(" [{}]", threshold.step) } else { String::new() };
            let expression = &threshold.expression;
            let text = match (&threshold.measured, threshold.failed) {
                (None, _) => format!("{expression} not measured: too few answers{place}"),
                (Some(measured), true) => format!("{expression} reached ({measured}){place}"),
                (Some(measured), false) => format!("{expression} not reached ({measured}){place}"),
            };
            let (word, ink) =
                if threshold.failed { ("FAIL", Ink::Bad) } else { ("pass", Ink::Good) };
            self.labelled(word, &text, ink);
        }
    }

    fn verdict(&mut self, report: &Report) {
        let ink = match &report.verdict {
            Some(Verdict::Trusted) => Ink::Good,
            Some(Verdict::UseWithCare(_)) | None => Ink::Care,
            Some(Verdict::NotMeasurable(_)) => Ink::Bad,
        };
        let line = self.painter.paint(ink, &view::verdict(report.verdict.as_ref()));
        self.out.push('\n');
        self.line(&line);
    }
}

/// Breaks a text at spaces into lines of at most `width` characters; a longer word stays whole.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("one line at least");
        let long = last.chars().count() + 1 + word.chars().count();
        if last.is_empty() {
            last.push_str(word);
        } else if long <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, assert_golden};

    fn plain(report: &Report) -> String {
        terminal(report, &TerminalOptions::default())
    }

    #[test]
    fn closed_open_failing_repeated_and_several() {
        assert_golden(&[
            ("terminal_closed.txt", plain(&sample::closed())),
            ("terminal_open.txt", plain(&sample::open())),
            ("terminal_failing.txt", plain(&sample::failing())),
            ("terminal_repeated.txt", plain(&sample::repeated())),
            ("terminal_two_endpoints.txt", plain(&sample::two_endpoints())),
            ("terminal_ladder.txt", plain(&sample::ladder())),
        ]);
    }

    #[test]
    fn colour_adds_nothing_but_colour() {
        let coloured = TerminalOptions { colour: true, ..TerminalOptions::default() };
        let text = terminal(&sample::failing(), &coloured);
        let mut bare = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            bare.push_str(before);
            rest = after.split_once('m').expect("the end of the sequence").1;
        }
        bare.push_str(rest);
        let bare: Vec<&str> = bare.lines().map(str::trim_end).collect();
        assert_eq!(bare, plain(&sample::failing()).lines().collect::<Vec<_>>());
    }

    #[test]
    fn no_line_but_the_verdict_is_wider_than_the_terminal() {
        for report in [
            sample::closed(),
            sample::open(),
            sample::failing(),
            sample::repeated(),
            sample::ladder(),
        ] {
            for width in [80, 100, 160] {
                let text =
                    terminal(&report, &TerminalOptions { width, ..TerminalOptions::default() });
                let lines: Vec<&str> = text.lines().collect();
                for line in &lines[..lines.len() - 1] {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn all_checks_are_listed_on_request_and_the_verdict_comes_last() {
        let report = sample::closed();
        assert!(!plain(&report).contains("C1 "));
        let all = TerminalOptions { all_checks: true, ..TerminalOptions::default() };
        let text = terminal(&report, &all);
        assert!(text.contains("✓ C1"), "{text}");
        assert!(text.ends_with("\nTRUSTED\n"));
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_raw() {
        let text = plain(&sample::hostile());
        assert!(!text.contains('\x1b'), "{text}");
        let empty = sample::report("empty", Vec::new());
        assert!(plain(&empty).contains("Nothing was measured."));
    }
}
