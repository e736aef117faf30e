//! A comparison as one page: what `bench compare --html` writes.

use super::page::Page;
use super::svg::{Axis, Plot, Spread};
use crate::compare::render;
use crate::compare::{Comparison, MetricComparison, Scale, StepComparison, Verdict};
use crate::table::Table;

/// Height of a row of a plot of changes, in the plot's units.
const ROW: f64 = 26.0;
/// No change is drawn beyond this factor, nor beyond its inverse.
const FURTHEST: f64 = 20.0;

/// A comparison as a page of HTML. The last line of its text is the verdict.
#[must_use]
pub fn comparison_html(comparison: &Comparison) -> String {
    let title = format!("{} against {}", comparison.a, comparison.b);
    let mut page = Page::titled(&title, render::LEGEND, Some(&comparison.trust));
    let mut sides = Table::new(["", ""]).words(1);
    sides.row(["A", comparison.a.as_str()]);
    sides.row(["B", comparison.b.as_str()]);
    page.table(&sides);
    // One scale for all plots, so that lengths can be compared across them.
    let furthest = furthest(&comparison.steps);
    for (at, step) in comparison.steps.iter().enumerate() {
        page.comparison_step(step, at, furthest);
    }
    let differing = render::what_differs(comparison);
    if !differing.is_empty() {
        page.section("What differs");
        differing.iter().for_each(|line| page.paragraph(line));
    }
    let remarks = render::remarks(comparison);
    if !remarks.is_empty() {
        page.section("Remarks");
        remarks.iter().for_each(|line| page.paragraph(line));
    }
    page.ended(Some(&comparison.trust))
}

impl Page {
    fn comparison_step(&mut self, step: &StepComparison, at: usize, furthest: f64) {
        self.section(&step.step);
        self.paragraph(&render::design(step));
        for sentence in render::sentences(step) {
            self.paragraph(&sentence);
        }
        for (heading, rendered) in render::tables(step) {
            if let Some(heading) = heading {
                self.heading(heading);
            }
            self.table(&rendered);
        }
        let whole = changes(&format!("c{at}"), "Change from A to B", &step.metrics, furthest);
        self.out.extend(whole);
        for (number, each) in step.endpoints.iter().enumerate() {
            let title = format!("Change from A to B: {}", each.endpoint);
            self.out.extend(changes(&format!("c{at}-{number}"), &title, &each.metrics, furthest));
        }
    }
}

/// The ratios of a change that can be drawn: the ends of its interval and the estimate between.
fn ratios(metric: &MetricComparison) -> Option<[f64; 3]> {
    let effect = metric.effect.filter(|effect| effect.scale == Scale::LogRatio)?;
    let interval = effect.interval?;
    let ratio = |log: f64| log.exp().clamp(1.0 / FURTHEST, FURTHEST);
    Some([interval.low, effect.estimate, interval.high].map(ratio))
}

/// The factor up to which all changes lie, and a little more.
fn furthest(steps: &[StepComparison]) -> f64 {
    let pooled = steps.iter().flat_map(|step| &step.metrics);
    let endpoints = steps.iter().flat_map(|step| &step.endpoints).flat_map(|each| &each.metrics);
    let drawn = pooled.chain(endpoints).filter_map(ratios).flatten();
    drawn.map(|ratio| ratio.max(1.0 / ratio)).fold(1.02, f64::max) * 1.05
}

/// Each change with its interval, on an axis of ratios; `None` if there is none to draw.
fn changes(id: &str, title: &str, metrics: &[MetricComparison], furthest: f64) -> Option<String> {
    let drawn: Vec<(&MetricComparison, [f64; 3])> =
        metrics.iter().filter_map(|metric| Some((metric, ratios(metric)?))).collect();
    if drawn.is_empty() {
        return None;
    }
    let rows = drawn.len() as f64;
    let labels = drawn.iter().enumerate();
    let labels = labels.map(|(at, (metric, _))| (rows - at as f64, metric.metric.label().into()));
    let x = Axis::fixed(Spread::Log, 1.0 / furthest, furthest, "B ÷ A", ratio_ticks(furthest));
    let y = Axis::fixed(Spread::Linear, 0.5, rows + 0.5, "", labels.collect());
    let mut plot = Plot::new(x, y, rows * ROW + 56.0);
    plot.dashes(0, &[(1.0, 0.5), (1.0, rows + 0.5)]);
    for (at, (metric, [low, middle, high])) in drawn.iter().enumerate() {
        let y = rows - at as f64;
        let colour = match metric.verdict {
            Verdict::Faster | Verdict::FewerFailures => 2,
            Verdict::Slower | Verdict::MoreFailures => 1,
            Verdict::NoDifferenceSeen | Verdict::NotComparable => 0,
        };
        plot.line(colour, &[(*low, y), (*high, y)]);
        plot.dot(colour, (*middle, y), &metric.sentence);
    }
    plot.name(2, "B is better");
    plot.name(1, "B is worse");
    plot.name(0, "no difference detected");
    let what = "Estimate and 95% interval of each ratio; the dashed line is no change.";
    Some(plot.figure(id, title, what))
}

/// Round changes up to a factor: in per cent below two, as factors beyond.
fn ratio_ticks(furthest: f64) -> Vec<(f64, String)> {
    let steps: &[f64] = match furthest {
        furthest if furthest < 1.06 => &[1.01, 1.02, 1.03, 1.04, 1.05],
        furthest if furthest < 1.3 => &[1.05, 1.1, 1.15, 1.2, 1.25],
        furthest if furthest < 2.5 => &[1.2, 1.5, 2.0],
        _ => &[2.0, 5.0, 10.0, 20.0],
    };
    let within = steps.iter().copied().filter(|step| *step <= furthest);
    let mut ticks = vec![(1.0, "no change".to_owned())];
    for step in within {
        let (up, down) = if step < 2.0 {
            let percent = (step - 1.0) * 100.0;
            (format!("+{percent:.0}%"), format!("−{:.0}%", (1.0 - 1.0 / step) * 100.0))
        } else {
            (format!("{step:.0}×"), format!("1/{step:.0}×"))
        };
        ticks.extend([(step, up), (1.0 / step, down)]);
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Options, compare_reports};
    use crate::report::sample;

    /// Two endpoints measured five times in turns; in B the second takes 40% longer.
    fn compared() -> Comparison {
        let side = |first: u32, factor: u64| {
            let run = |turn: u32| {
                let noise = u64::from(turn * 7 % 5) * 1_000;
                let endpoints = vec![
                    sample::endpoint("<b>book</b>", 4_000, 100_000 + noise),
                    sample::endpoint("look", 4_000, (3_000_000 + 30 * noise) * factor / 10),
                ];
                sample::run(turn, endpoints)
            };
            let mut report = sample::hostile();
            report.steps =
                vec![sample::step("users=4", 4, (0..5).map(|at| run(first + 2 * at)).collect())];
            report.verdict = None;
            report
        };
        compare_reports(&side(1, 10), &side(2, 14), &Options::default())
    }

    #[test]
    fn the_page_has_tables_plots_and_the_verdict_and_fetches_nothing() {
        let comparison = compared();
        let page = comparison_html(&comparison);
        for part in [
            "look: B&#39;s p50 is 40% longer",
            "Change from A to B: look",
            "<th scope=\"col\">endpoint</th>",
            "&lt;b&gt;book&lt;/b&gt;",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert_eq!(page.matches("<svg").count(), 3, "all together, and each endpoint");
        for forbidden in ["<script", "<img", "href=", "url(", "@import", "<b>book"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        let text = page.split("</main>").next().unwrap().trim_end();
        let last = text.rsplit("<p class=\"verdict ").next().unwrap();
        assert!(last.contains("USE WITH CARE") || last.contains("TRUSTED"), "{last}");
        let ids: Vec<&str> = page.split(" id=\"").skip(1).collect();
        let mut names: Vec<&str> = ids.iter().map(|id| id.split('"').next().unwrap()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn all_plots_have_one_scale() {
        let page = comparison_html(&compared());
        let labels = |plot: &str| -> Vec<String> {
            let texts = plot.split("text-anchor=\"middle\">").skip(1);
            texts.map(|text| text.split('<').next().unwrap_or_default().to_owned()).collect()
        };
        let plots: Vec<_> = page.split("<svg").skip(1).map(labels).collect();
        assert!(plots.windows(2).all(|pair| pair[0] == pair[1]), "{plots:?}");
    }

    #[test]
    fn a_comparison_of_nothing_is_a_page() {
        let nothing = sample::report("nothing", Vec::new());
        let page = comparison_html(&compare_reports(&nothing, &nothing, &Options::default()));
        assert!(page.contains("<h1>nothing against nothing</h1>"), "{page}");
        assert!(page.contains("NOT MEASURABLE"), "{page}");
    }

    #[test]
    fn ticks_are_round_and_on_the_axis() {
        for furthest in [1.03, 1.1, 1.5, 3.0, 20.0] {
            let ticks = ratio_ticks(furthest);
            assert!(ticks.len() >= 3, "{ticks:?}");
            assert!(ticks.iter().all(|(at, _)| (1.0 / furthest..=furthest).contains(at)));
        }
        assert!(ratio_ticks(1.5).contains(&(1.0 / 1.5, "−33%".to_owned())));
    }
}
