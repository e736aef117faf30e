//! The report as one page without anything outside it: no script, no font, no image to fetch.

mod comparison;
mod page;
mod plots;
mod svg;

pub use comparison::comparison_html;

use super::markdown::{environment, thresholds};
use super::tables;
use super::view::{self, StepView};
use crate::check::question;
use crate::histogram::Histogram;
use crate::numbers::{quantile, rate, timestamp};
use crate::result::{Outcome, Report};
use crate::table::Table;
use page::{Page, escape};
use std::fmt::Write as _;
use svg::COLOURS;

/// The report as a page of HTML. The last line of its text is the verdict.
#[must_use]
pub fn html(report: &Report) -> String {
    let about = format!("{} · {}", report.tool, timestamp(report.started_unix_us));
    let verdict = report.verdict.as_ref();
    let mut page = Page::titled(&report.title, &about, verdict);
    if let Some(table) = thresholds(report) {
        page.section("Thresholds");
        page.table(&table);
    }
    page.search(report);
    let views = StepView::all(report);
    if views.len() > 1 {
        page.ladder(report, &views);
    }
    for (at, view) in views.iter().enumerate() {
        page.step(report, view, at);
    }
    page.section("Environment");
    page.table(&environment(report));
    page.checks(report);
    page.ended(verdict)
}

impl Page {
    fn search(&mut self, report: &Report) {
        let search = tables::search(report);
        if !search.is_empty() {
            self.section("Search");
            for line in search {
                self.paragraph(&line);
            }
        }
    }

    fn ladder(&mut self, report: &Report, views: &[StepView<'_>]) {
        self.section("Steps");
        if let Some(common) = view::common_load(&report.steps) {
            self.paragraph(&format!("Each step: {common}."));
        }
        if let Some(table) = tables::steps(report) {
            self.table(&table);
        }
        self.out.extend(plots::ladder(views));
        let shown = plots::spread(views);
        let series: Vec<(String, &Histogram)> =
            shown.iter().map(|view| (view.step.name.clone(), view.total.latency())).collect();
        self.out.extend(plots::quantiles("steps-quantiles", &series));
    }

    fn step(&mut self, report: &Report, view: &StepView<'_>, at: usize) {
        self.section(&view.step.name);
        let latency = view.total.latency();
        let throughput = match view.step.runs.len() {
            0 | 1 => "throughput".to_owned(),
            runs => format!("throughput, geometric mean of {runs} runs"),
        };
        let failures = ("failures", tables::failures(view.failures(), view.tried()));
        let endpoints = tables::endpoints(view);
        // A quantile over different requests is that of none of them.
        match &endpoints {
            None => self.tiles(&[
                (&throughput, rate(view.rate_per_s())),
                ("median latency", quantile(latency, 0.5)),
                ("99th percentile", quantile(latency, 0.99)),
                failures,
            ]),
            Some(table) => {
                self.tiles(&[(&throughput, rate(view.rate_per_s())), failures]);
                self.heading("Endpoints");
                self.table(table);
            }
        }
        let mut summary = Table::new(["", ""]).words(1);
        summary.row(["target", view.step.settings.url.as_str()]);
        summary.row(["workload", view.step.settings.workload.as_str()]);
        for (name, text) in tables::summary(report, view) {
            summary.row([name, text.as_str()]);
        }
        self.table(&summary);
        self.heading(match endpoints {
            None => "Latency",
            Some(_) => "Latency of all endpoints together",
        });
        self.table(&tables::latency(&view.total));
        if view.total.response.is_some() {
            for (name, words) in tables::LATENCY_WORDS {
                self.paragraph(&format!("{name}: {words}."));
            }
        }
        self.step_plots(view, at);
        let more =
            [("Where the time goes", tables::phases(&view.total)), ("Runs", tables::repeats(view))];
        for (title, table) in more {
            if let Some(table) = table {
                self.heading(title);
                self.table(&table);
            }
        }
        self.answers(view);
    }

    fn step_plots(&mut self, view: &StepView<'_>, at: usize) {
        let total = &view.total;
        let endpoints = view.step.merged_endpoints();
        let mut series = Vec::new();
        if endpoints.len() > 1 {
            let each = endpoints.iter().take(COLOURS);
            series.extend(each.map(|endpoint| (endpoint.name.clone(), endpoint.latency())));
        } else if let (Some(lateness), Some(response)) = (&total.lateness, &total.response) {
            series.push(("service".to_owned(), &total.service));
            series.push(("response".to_owned(), response));
            series.push(("lateness".to_owned(), lateness));
        } else {
            series.push(("latency".to_owned(), total.latency()));
        }
        let runs = &view.step.runs;
        self.out.extend(plots::quantiles(&format!("q{at}"), &series));
        self.out.extend(plots::over_time(&format!("t{at}"), runs));
        let last = runs.last();
        self.out.extend(last.and_then(|run| plots::heat(&format!("h{at}"), run, runs.len() > 1)));
    }

    fn answers(&mut self, view: &StepView<'_>) {
        let mut statuses = Table::new(["status", "answers"]);
        for (status, text) in tables::statuses(&view.total) {
            statuses.row([status.to_string(), text]);
        }
        if !statuses.rows.is_empty() {
            self.heading("Answers by status");
            self.table(&statuses);
        }
        let mut errors = Table::new(["what", "times"]);
        for (n, text) in tables::errors(view) {
            errors.row([text, crate::numbers::count(n)]);
        }
        if !errors.rows.is_empty() {
            self.heading("What went wrong");
            self.table(&errors);
        }
    }

    fn checks(&mut self, report: &Report) {
        let said = view::findings(report, true);
        if said.is_empty() {
            return;
        }
        self.section("Checks");
        self.out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">check</th><th scope=\"col\">outcome</th><th scope=\"col\">finding</th></tr></thead>\n<tbody>\n");
        for finding in said {
            let class = match finding.outcome {
                Outcome::Passed => "passed",
                Outcome::NotChecked => "not-checked",
                Outcome::Note => "note",
                Outcome::Care => "care",
                Outcome::Stop => "stop",
            };
            let _ = writeln!(
                self.out,
                "<tr><th scope=\"row\">{}<small>{}</small></th><td class=\"{class}\">{}</td><td>{}{}</td></tr>",
                finding.check,
                escape(question(finding.check)),
                view::outcome(finding.outcome),
                escape(&finding.place()),
                escape(finding.sentence)
            );
        }
        self.out.push_str("</tbody></table></div>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, assert_golden};

    #[test]
    fn pages_of_open_and_ladder() {
        assert_golden(&[
            ("open.html", html(&sample::open())),
            ("ladder.html", html(&sample::ladder())),
        ]);
    }

    /// Every tag, in order, quoted attributes checked on the way.
    fn tags(page: &str) -> Vec<String> {
        let body = page.split_once("</style>").expect("a style").1;
        let mut tags = Vec::new();
        for part in body.split('<').skip(1) {
            let (tag, text) = part.split_once('>').expect("a closed tag");
            assert!(!text.contains('>') && tag.matches('"').count().is_multiple_of(2), "{part}");
            tags.push(tag.to_owned());
        }
        tags
    }

    #[test]
    fn pages_are_well_formed_and_fetch_nothing() {
        for report in
            [sample::hostile(), sample::failing(), sample::repeated(), sample::two_endpoints()]
        {
            let page = html(&report);
            let mut open = vec!["html".to_owned(), "head".to_owned()];
            for tag in tags(&page) {
                let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap().to_owned();
                if tag.starts_with('/') {
                    assert_eq!(open.pop().as_deref(), Some(name.as_str()));
                } else if !tag.ends_with('/') {
                    open.push(name);
                }
            }
            assert!(open.is_empty(), "{open:?}");
            for forbidden in ["<script", "<img", "href=", "src=x\"", "url(", "@import", "\x1b"] {
                assert!(!page.contains(forbidden), "{forbidden}");
            }
        }
    }

    #[test]
    fn endpoints_have_a_curve_each_and_no_pooled_quantile_stands_on_top() {
        let page = html(&sample::two_endpoints());
        let (above, below) = page.split_once("<h3>Endpoints</h3>").expect("a table of endpoints");
        assert!(!above.contains("99th percentile"), "{above}");
        assert!(below.contains("<h3>Latency of all endpoints together</h3>"));
        let by_quantile = below.split_once("Latency by quantile").unwrap().1;
        let figure = by_quantile.split_once("</figure>").unwrap().0;
        assert_eq!(figure.matches("<polyline").count(), 2, "{figure}");
    }

    #[test]
    fn thresholds_stand_before_what_they_judge() {
        let page = html(&sample::failing());
        let place = |title: &str| page.find(&format!("<h2>{title}</h2>")).expect(title);
        assert!(place("Thresholds") < place("Environment"));
        let first = page.find("<h2>").expect("a section");
        assert_eq!(place("Thresholds"), first);
    }

    #[test]
    fn each_run_has_its_colour_and_name() {
        let page = html(&sample::repeated());
        let over_time = page.split_once("Rate over time").unwrap().1;
        let figure = over_time.split_once("</figure>").unwrap().0;
        for part in ["class=\"l k0\"", "class=\"l k1\"", "run 1</li>", "run 2</li>"] {
            assert!(figure.contains(part), "{part}: {figure}");
        }
    }

    #[test]
    fn ids_are_unique_and_the_verdict_is_the_last_text() {
        let page = html(&sample::ladder());
        let mut ids: Vec<&str> =
            page.split(" id=\"").skip(1).map(|part| part.split('"').next().unwrap()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        let text = page.split("</main>").next().unwrap();
        assert!(text.trim_end().ends_with("USE WITH CARE: the rate fell during c=64 (C9)</p>"));
    }

    #[test]
    fn an_empty_report_is_a_page() {
        let page = html(&sample::report("nothing", Vec::new()));
        assert!(page.contains("<h1>nothing</h1>"));
    }
}
