//! Form 2: a ladder by users; the same for several builds; the long comparison with the best of
//! each row.

use super::{FormError, names, origin, pace, rung};
use crate::numbers::{
    NOT_AVAILABLE, count, optional_duration, quantile_name, rate, share, significant,
};
use crate::page::Page;
use crate::report::tables::failures;
use crate::report::view::{self, StepView};
use crate::result::Report;
use crate::table::Table;

pub(super) fn write(page: &mut Page, reports: &[Report]) -> Result<(), FormError> {
    if !reports.iter().any(|report| report.steps.len() > 1) {
        let needs = "a ladder: a result file with two steps or more (wellspring bench ladder … --json FILE)";
        return Err(FormError::Lacks { form: 2, needs });
    }
    let builds: Vec<Build<'_>> = reports
        .iter()
        .zip(names(reports))
        .map(|(report, name)| Build { name, views: StepView::all(report) })
        .collect();
    page.list(reports.iter().map(origin));
    for (build, report) in builds.iter().zip(reports) {
        page.heading(&build.name);
        if let Some(common) = view::common_load(&report.steps) {
            page.text(format!("Each step: {common}."));
        }
        page.table(one(build));
    }
    if builds.len() > 1 {
        page.heading("Side by side");
        page.table(side_by_side(&builds));
        page.heading("Comparison");
        page.table(comparison(&builds));
        page.text("The best is named with its lead over the second best, from the raw values.");
    }
    Ok(())
}

/// One report and its steps.
struct Build<'a> {
    name: String,
    views: Vec<StepView<'a>>,
}

impl Build<'_> {
    fn at(&self, load: f64) -> Option<&StepView<'_>> {
        self.views.iter().find(|view| rung(view).total_cmp(&load).is_eq())
    }
}

/// The ladder's columns.
const COLUMNS: [&str; 5] = ["req/s", "median", "p95", "p99", "failures"];

/// The cells of [`COLUMNS`] for a step; empty where it was not measured.
fn cells(view: Option<&StepView<'_>>) -> [String; 5] {
    let Some(view) = view else { return Default::default() };
    let quantile = |q| optional_duration(view.total.latency().printable_quantile_ns(q));
    [
        significant(view.rate_per_s()),
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
        failures(view.failures(), view.tried()),
    ]
}

/// How the first column is called, and a step in it.
fn load_name(views: &[&StepView<'_>]) -> &'static str {
    if views.iter().all(|view| view.is_open()) { "offered" } else { "users" }
}

fn load_text(view: &StepView<'_>) -> String {
    if view.is_open() { rate(rung(view)) } else { count(view.in_flight()) }
}

fn one(build: &Build<'_>) -> Table {
    let views: Vec<&StepView<'_>> = build.views.iter().collect();
    let mut table = Table::new(std::iter::once(load_name(&views)).chain(COLUMNS));
    for view in &build.views {
        table.row(std::iter::once(load_text(view)).chain(cells(Some(view))));
    }
    table
}

/// The loads of all builds in rising order, each with a step that has it.
fn loads<'v, 'a>(builds: &'v [Build<'a>]) -> Vec<&'v StepView<'a>> {
    let mut all: Vec<&StepView<'_>> = builds.iter().flat_map(|build| &build.views).collect();
    all.sort_by(|a, b| rung(a).total_cmp(&rung(b)));
    all.dedup_by(|a, b| rung(a).total_cmp(&rung(b)).is_eq());
    all
}

fn side_by_side(builds: &[Build<'_>]) -> Table {
    let loads = loads(builds);
    let groups = builds
        .iter()
        .flat_map(|build| COLUMNS.iter().map(move |column| format!("{}: {column}", build.name)));
    let mut table = Table::new(std::iter::once(load_name(&loads).to_owned()).chain(groups));
    for load in &loads {
        let cells = builds.iter().flat_map(|build| cells(build.at(rung(load))));
        table.row(std::iter::once(load_text(load)).chain(cells));
    }
    table
}

/// A step's figure, raw; `None` where too little was measured.
type Raw = Box<dyn Fn(&StepView<'_>) -> Option<f64>>;

/// A figure of which the best is sought.
struct Metric {
    name: String,
    raw: Raw,
    text: fn(&StepView<'_>, f64) -> String,
    best: Best,
}

/// Which value is the best.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Best {
    /// The largest rate.
    HighestRate,
    /// The shortest duration.
    Shortest,
    /// The smallest share.
    Smallest,
}

fn metrics() -> Vec<Metric> {
    let mut metrics = vec![Metric {
        name: "req/s".to_owned(),
        raw: Box::new(|view| Some(view.rate_per_s())),
        text: |_, raw| significant(raw),
        best: Best::HighestRate,
    }];
    metrics.extend([0.5, 0.95, 0.99].map(|q| Metric {
        name: if q == 0.5 { "median".to_owned() } else { quantile_name(q) },
        raw: Box::new(move |view| {
            view.total.latency().printable_quantile_ns(q).map(|ns| ns as f64)
        }),
        text: |_, raw| crate::numbers::duration(raw),
        best: Best::Shortest,
    }));
    metrics.push(Metric {
        name: "failures".to_owned(),
        raw: Box::new(|view| {
            (view.tried() > 0).then(|| view.failures() as f64 / view.tried() as f64)
        }),
        text: |view, _| share(view.failures(), view.tried()),
        best: Best::Smallest,
    });
    metrics
}

fn comparison(builds: &[Build<'_>]) -> Table {
    let loads = loads(builds);
    let columns = [load_name(&loads), "metric"].map(str::to_owned).into_iter();
    let columns = columns.chain(builds.iter().map(|build| build.name.clone()));
    let mut table = Table::new(columns.chain(std::iter::once("best".to_owned()))).words(1);
    let last = table.columns.len() - 1;
    table = table.words(last);
    for load in &loads {
        for metric in metrics() {
            let steps: Vec<Option<&StepView<'_>>> =
                builds.iter().map(|build| build.at(rung(load))).collect();
            let raw: Vec<Option<f64>> =
                steps.iter().map(|step| step.and_then(|step| (metric.raw)(step))).collect();
            let mut row = vec![load_text(load), metric.name.clone()];
            row.extend(steps.iter().zip(&raw).map(|(step, raw)| match (step, raw) {
                (Some(step), Some(raw)) => (metric.text)(step, *raw),
                _ => NOT_AVAILABLE.to_owned(),
            }));
            row.push(best(builds, &raw, metric.best));
            table.row(row);
        }
    }
    table
}

/// The best build's name and its lead over the second best.
fn best(builds: &[Build<'_>], raw: &[Option<f64>], which: Best) -> String {
    let known = builds.iter().zip(raw).filter_map(|(build, raw)| Some((build, (*raw)?)));
    let mut known: Vec<(&Build<'_>, f64)> = known.collect();
    known.sort_by(|a, b| match which {
        Best::HighestRate => b.1.total_cmp(&a.1),
        Best::Shortest | Best::Smallest => a.1.total_cmp(&b.1),
    });
    let [(first, leading), (_, second), ..] = known.as_slice() else {
        return NOT_AVAILABLE.to_owned();
    };
    let lead = match which {
        Best::HighestRate => pace(*leading, *second),
        Best::Shortest => pace(*second, *leading),
        Best::Smallest if leading == second => "equal".to_owned(),
        Best::Smallest => return first.name.clone(),
    };
    if lead == "equal" { lead } else { format!("{}, {lead}", first.name) }
}
