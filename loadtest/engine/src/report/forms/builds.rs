//! Form 2: ladders of one or several builds, each a report.

use super::super::measured::{Column, FAILURES, Measured, P50, P95, P99, RATE, table, words};
use super::super::view;
use super::metric::{CONTESTED, EQUAL, Kind};
use super::{Input, Part};
use crate::numbers::{NOT_AVAILABLE, count, rate};
use crate::table::Table;

/// What a step is in its ladder.
const LOAD: Column<Measured> = words("users", |row| match row.offered_per_s {
    Some(offered) => rate(offered),
    None => count(row.in_flight),
});

const LADDER: [Column<Measured>; 5] = [RATE, P50, P95, P99, FAILURES];

/// One report and its steps.
struct Build<'a> {
    name: &'a str,
    steps: Vec<Measured>,
}

impl Build<'_> {
    fn at(&self, rung: f64) -> Option<&Measured> {
        self.steps.iter().find(|step| step.rung().total_cmp(&rung).is_eq())
    }
}

fn builds<'a>(input: &'a Input<'_>) -> Vec<Build<'a>> {
    let build = |name: &'a String| Build {
        name,
        steps: input.measured().into_iter().filter(|step| step.report == *name).collect(),
    };
    input.names.iter().map(build).collect()
}

/// The first column, named by what the loads are.
fn load_column<'a>(mut steps: impl Iterator<Item = &'a Measured>) -> Column<Measured> {
    let open = steps.all(|step| step.offered_per_s.is_some());
    if open { LOAD.headed("offered") } else { LOAD }
}

pub(super) fn ladders(input: &Input<'_>) -> Vec<Part> {
    let parts = builds(input).into_iter().zip(input.reports).map(|(build, report)| {
        let common = view::common_load(&report.steps);
        let columns = [&[load_column(build.steps.iter())][..], &LADDER].concat();
        Part {
            before: common.map_or_else(String::new, |common| format!("Each step: {common}.")),
            ..Part::of(table(&columns, &build.steps)).headed(build.name)
        }
    });
    parts.collect()
}

/// The loads of all builds in rising order, each with a step that has it.
fn rungs<'v>(builds: &'v [Build<'_>]) -> Vec<&'v Measured> {
    let mut all: Vec<&Measured> = builds.iter().flat_map(|build| &build.steps).collect();
    all.sort_by(|a, b| a.rung().total_cmp(&b.rung()));
    all.dedup_by(|a, b| a.rung().total_cmp(&b.rung()).is_eq());
    all
}

pub(super) fn side_by_side(input: &Input<'_>) -> Vec<Part> {
    if !input.several() {
        return Vec::new();
    }
    let builds = builds(input);
    let rungs = rungs(&builds);
    let load = load_column(rungs.iter().copied());
    let groups =
        builds.iter().flat_map(|build| LADDER.iter().map(|column| column.heading_of(build.name)));
    let mut table = Table::new([load.heading().to_owned()].into_iter().chain(groups));
    for rung in &rungs {
        let of_build = |build: &Build<'_>| {
            let step = build.at(rung.rung());
            LADDER.map(|column| step.map_or_else(String::new, |step| column.cell(step)))
        };
        table.row([load.cell(rung)].into_iter().chain(builds.iter().flat_map(of_build)));
    }
    vec![Part::of(table)]
}

pub(super) fn best(input: &Input<'_>) -> Vec<Part> {
    if !input.several() {
        return Vec::new();
    }
    let builds = builds(input);
    let rungs = rungs(&builds);
    let load = load_column(rungs.iter().copied());
    let names = builds.iter().map(|build| build.name);
    let columns = [load.heading(), "metric"].into_iter().chain(names).chain(["best"]);
    let mut table = Table::new(columns).words(1).words(2 + builds.len());
    for rung in &rungs {
        for metric in CONTESTED {
            let value = |build: &Build<'_>| build.at(rung.rung()).and_then(metric.value);
            let raw: Vec<Option<f64>> = builds.iter().map(value).collect();
            let cells = raw.iter().map(|raw| metric.kind.write(*raw));
            table.row(
                [load.cell(rung), metric.name.to_owned()].into_iter().chain(cells).chain([leader(
                    &builds,
                    &raw,
                    metric.kind,
                )]),
            );
        }
    }
    vec![Part::of(table)]
}

/// The best build's name and its lead over the second best.
fn leader(builds: &[Build<'_>], raw: &[Option<f64>], kind: Kind) -> String {
    let known = builds.iter().zip(raw).filter_map(|(build, raw)| Some((build.name, (*raw)?)));
    let mut known: Vec<(&str, f64)> = known.collect();
    known.sort_by(|a, b| kind.order(a.1, b.1));
    let [(first, leading), (_, second), ..] = known.as_slice() else {
        return NOT_AVAILABLE.to_owned();
    };
    match kind.lead(*leading, *second) {
        None => (*first).to_owned(),
        Some(lead) if lead == EQUAL => lead,
        Some(lead) => format!("{first}, {lead}"),
    }
}
