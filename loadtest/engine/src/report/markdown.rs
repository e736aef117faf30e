//! The report in Markdown that also reads well as plain text.

use super::tables;
use super::view::{self, StepView};
use crate::numbers::{count, timestamp};
use crate::page::Page;
use crate::result::{Environment, Report};
use crate::table::Table;

/// The report in Markdown. Its last line is the verdict.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut page = Page::titled(&report.title);
    page.text(format!("Measured by {} on {}.", report.tool, timestamp(report.started_unix_us)));
    let views = StepView::all(report);
    if let Some(table) = tables::steps(report) {
        page.heading("Steps");
        page.table(table);
        if let Some(common) = view::common_load(&report.steps) {
            page.text(format!("Each step: {common}."));
        }
    }
    let search = tables::search(report);
    if !search.is_empty() {
        page.heading("Search");
        page.list(search);
    }
    for view in &views {
        page.step(report, view);
    }
    page.environment(report);
    page.checks(report);
    page.thresholds(report);
    page.verdict(report);
    page.markdown()
}

impl Page {
    fn step(&mut self, report: &Report, view: &StepView<'_>) {
        self.heading(&view.step.name);
        let mut summary = Table::new(["", "figure"]).words(1);
        summary.row(["target", view.step.settings.url.as_str()]);
        summary.row(["workload", view.step.settings.workload.as_str()]);
        for (name, text) in tables::summary(report, view) {
            summary.row([name, text.as_str()]);
        }
        self.table(summary);
        self.small_heading("Latency");
        self.table(tables::latency(&view.total));
        if view.total.response.is_some() {
            let words = tables::LATENCY_WORDS.map(|(name, words)| format!("{name}: {words}."));
            self.list(words);
        }
        let more = [
            ("Where the time goes", tables::phases(&view.total)),
            ("Runs", tables::repeats(view)),
            ("Endpoints", tables::endpoints(view)),
        ];
        for (title, table) in more {
            if let Some(table) = table {
                self.small_heading(title);
                self.table(table);
            }
        }
        self.small_heading("Answers by status");
        let mut statuses = Table::new(["status", "answers"]);
        for (status, text) in tables::statuses(&view.total) {
            statuses.row([status.to_string(), text]);
        }
        self.table(statuses);
        let errors = tables::errors(view);
        if !errors.is_empty() {
            self.small_heading("What went wrong");
            let mut table = Table::new(["what", "times"]);
            for (n, text) in errors {
                table.row([text, count(n)]);
            }
            self.table(table);
        }
    }

    fn environment(&mut self, report: &Report) {
        self.heading("Environment");
        self.table(environment(report));
    }

    fn checks(&mut self, report: &Report) {
        let said = view::findings(report, true);
        if said.is_empty() {
            return;
        }
        self.heading("Checks");
        let mut table = Table::new(["check", "outcome", "finding"]).words(1).words(2);
        for finding in said {
            let sentence = format!("{}{}", finding.place(), finding.sentence);
            table.row([
                finding.check.to_string(),
                view::outcome(finding.outcome).to_owned(),
                sentence,
            ]);
        }
        self.table(table);
    }

    fn thresholds(&mut self, report: &Report) {
        if let Some(table) = thresholds(report) {
            self.heading("Thresholds");
            self.table(table);
        }
    }

    /// The verdict, as the page's last line.
    fn verdict(&mut self, report: &Report) {
        self.text(view::verdict(report.verdict.as_ref()));
    }
}

/// The thresholds and whether they held; `None` without any.
pub(crate) fn thresholds(report: &Report) -> Option<Table> {
    if report.thresholds.is_empty() {
        return None;
    }
    let mut table = Table::new(["fail if", "step", "measured", "outcome"]).words(1).words(3);
    for threshold in &report.thresholds {
        table.row([
            threshold.expression.as_str(),
            threshold.step.as_str(),
            threshold.measured.as_deref().unwrap_or("not measured: too few answers"),
            if threshold.failed { "FAIL" } else { "pass" },
        ]);
    }
    Some(table)
}

/// Where and with what it was measured: what is known, one row each.
pub(crate) fn environment(report: &Report) -> Table {
    let environment = &report.environment;
    let mut table = Table::new(["", "environment"]).words(1);
    for (name, text) in environment_rows(environment) {
        table.row([name, text.as_str()]);
    }
    if !report.command.is_empty() {
        table.row(["command", &report.command.join(" ")]);
    }
    for (key, value) in &environment.notes {
        table.row([key, value]);
    }
    table
}

fn environment_rows(environment: &Environment) -> Vec<(&'static str, String)> {
    let cpus: Vec<String> = environment.allowed_cpus.iter().map(u32::to_string).collect();
    let local = environment
        .target_is_local
        .map(|local| if local { "this machine" } else { "another machine" }.to_owned());
    let server = &environment.server;
    let known = |text: &Option<String>| text.clone();
    let all = [
        ("target", Some(environment.target.clone())),
        ("target is", local),
        ("server", known(&server.header)),
        ("protocol", known(&server.protocol)),
        ("server program", known(&server.program)),
        ("server program SHA-256", known(&server.program_sha256)),
        ("processor", known(&environment.cpu_model)),
        ("processors", environment.cpus.map(|n| count(u64::from(n)))),
        ("allowed processors", (!cpus.is_empty()).then(|| cpus.join(", "))),
        ("cgroup limit", environment.cgroup_cpu_limit.as_ref().map(|n| format!("{n} processors"))),
        ("governor", known(&environment.governor)),
        ("memory", environment.memory_bytes.map(|bytes| crate::numbers::bytes(bytes as f64))),
        ("kernel", known(&environment.kernel)),
        ("client version", Some(environment.client_version.clone())),
        ("git revision", known(&environment.git_revision)),
    ];
    all.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, assert_golden};

    #[test]
    fn pages_of_open_failing_and_ladder() {
        assert_golden(&[
            ("open.md", markdown(&sample::open())),
            ("failing.md", markdown(&sample::failing())),
            ("ladder.md", markdown(&sample::ladder())),
        ]);
    }

    #[test]
    fn names_break_out_of_nothing() {
        let text = markdown(&sample::hostile());
        let raw = text.replace("\\<", "");
        assert!(text.contains("\\<script") && !raw.contains("<s") && !raw.contains("<i"), "{raw}");
        assert!(!text.contains('\x1b'));
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("USE WITH CARE"), "{last}");
    }
}
