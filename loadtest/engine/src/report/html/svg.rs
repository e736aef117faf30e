//! Axes, scales and lines as SVG text.

use super::page::escape;
use std::fmt::Write as _;

/// Width of every plot, in its own units.
pub(super) const WIDTH: f64 = 720.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 38.0;
/// How many series have a colour of their own.
pub(super) const COLOURS: usize = 6;

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Evenly, from zero.
    Linear,
    /// By their logarithm; values must be above zero.
    Log,
}

/// An axis: which values it covers, how they are spread and written.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    spread: Spread,
    low: f64,
    high: f64,
    label: String,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis over all of `values`, with round ticks written by `write`.
    pub(super) fn over(
        spread: Spread,
        values: impl Iterator<Item = f64>,
        label: &str,
        write: impl Fn(f64) -> String,
    ) -> Self {
        let values = values.filter(|v| v.is_finite() && (spread == Spread::Linear || *v > 0.0));
        let (low, high) =
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = match spread {
            Spread::Linear => (0.0, if high > 0.0 { high * 1.05 } else { 1.0 }),
            Spread::Log if low.is_finite() && high > 0.0 => (low / 1.15, high * 1.15),
            Spread::Log => (1.0, 10.0),
        };
        let ticks = match spread {
            Spread::Linear => linear_ticks(high),
            Spread::Log => log_ticks(low, high),
        };
        let ticks = ticks.into_iter().map(|tick| (tick, write(tick))).collect();
        Axis { spread, low, high, label: label.to_owned(), ticks }
    }

    /// An axis from `low` to `high` with ticks of the caller's choice.
    pub(super) fn fixed(
        spread: Spread,
        low: f64,
        high: f64,
        label: &str,
        ticks: Vec<(f64, String)>,
    ) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Axis { spread, low, high, label: label.to_owned(), ticks }
    }

    /// Its ticks, for another axis.
    pub(super) fn into_ticks(self) -> Vec<(f64, String)> {
        self.ticks
    }

    /// Where a value lies, 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let place = match self.spread {
            Spread::Linear => (value - self.low) / (self.high - self.low),
            Spread::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// From 0 to `high` in four to nine steps of 1, 2 or 5 times a power of ten.
fn linear_ticks(high: f64) -> Vec<f64> {
    let power = 10f64.powf((high / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| high / step <= 6.0)
        .unwrap_or(10.0 * power);
    (0..=6).map(|i| f64::from(i) * step).filter(|tick| *tick <= high).collect()
}

/// The round values from `low` to `high`: 1, 2 and 5 of each decade, fewer if there are many
/// decades.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let ticks = |factors: &[f64]| -> Vec<f64> {
        let all = decades.clone().flat_map(|power| {
            factors.iter().map(move |factor| factor * 10f64.powi(power)).collect::<Vec<_>>()
        });
        all.filter(|tick| (low..=high).contains(tick)).collect()
    };
    let fine = ticks(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]);
    let middle = ticks(&[1.0, 2.0, 5.0]);
    let coarse = ticks(&[1.0]);
    if middle.len() < 3 {
        fine
    } else if middle.len() <= 8 {
        middle
    } else {
        coarse
    }
}

/// A plot being drawn.
pub(super) struct Plot {
    x: Axis,
    y: Axis,
    height: f64,
    body: String,
    legend: Vec<(usize, String)>,
}

impl Plot {
    /// An empty plot.
    pub(super) fn new(x: Axis, y: Axis, height: f64) -> Self {
        Plot { x, y, height, body: String::new(), legend: Vec::new() }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let across = LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT);
        let up = self.height - BOTTOM - self.y.place(y) * (self.height - TOP - BOTTOM);
        (across, up)
    }

    /// Names a colour below the plot.
    pub(super) fn name(&mut self, colour: usize, name: &str) {
        self.legend.push((colour % COLOURS, name.to_owned()));
    }

    /// A line through points in their order.
    pub(super) fn line(&mut self, colour: usize, points: &[(f64, f64)]) {
        self.draw_line(colour, points, "");
    }

    /// A dashed line, through which one below it can be seen.
    pub(super) fn dashes(&mut self, colour: usize, points: &[(f64, f64)]) {
        self.draw_line(colour, points, " dash");
    }

    fn draw_line(&mut self, colour: usize, points: &[(f64, f64)], class: &str) {
        if points.is_empty() {
            return;
        }
        let mut path = String::new();
        for (x, y) in points {
            let (x, y) = self.at(*x, *y);
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let colour = colour % COLOURS;
        let _ = writeln!(
            self.body,
            "<polyline class=\"l k{colour}{class}\" points=\"{}\"/>",
            path.trim_end()
        );
    }

    /// A dot with a text that shows when it is pointed at.
    pub(super) fn dot(&mut self, colour: usize, (x, y): (f64, f64), text: &str) {
        let (x, y) = self.at(x, y);
        let _ = writeln!(
            self.body,
            "<circle class=\"d f{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{}</title></circle>",
            colour % COLOURS,
            escape(text)
        );
    }

    /// A filled cell between two corners, the more opaque the larger `share` (0 to 1) is.
    pub(super) fn cell(&mut self, from: (f64, f64), to: (f64, f64), share: f64, text: &str) {
        let (left, bottom) = self.at(from.0, from.1);
        let (right, top) = self.at(to.0, to.1);
        let _ = writeln!(
            self.body,
            "<rect class=\"f0 cell\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill-opacity=\"{:.2}\"><title>{}</title></rect>",
            right - left,
            bottom - top,
            share.clamp(0.0, 1.0),
            escape(text)
        );
    }

    /// The figure: caption, plot and legend. `what` says in a sentence what is to be seen.
    pub(super) fn figure(self, id: &str, title: &str, what: &str) -> String {
        let mut out = String::new();
        let _ = write!(
            out,
            "<figure>\n<figcaption>{}<small>{}</small></figcaption>\n<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n<title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
            escape(title),
            escape(what),
            self.height,
            escape(title),
            escape(what)
        );
        self.draw_axes(&mut out);
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        if !self.legend.is_empty() {
            out.push_str("<ul class=\"legend\">");
            for (colour, name) in &self.legend {
                let _ = write!(out, "<li><i class=\"b{colour}\"></i>{}</li>", escape(name));
            }
            out.push_str("</ul>\n");
        }
        out.push_str("</figure>\n");
        out
    }

    fn draw_axes(&self, out: &mut String) {
        let floor = self.height - BOTTOM;
        for (value, text) in &self.y.ticks {
            let (_, y) = self.at(self.x.low, *value);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                escape(text)
            );
        }
        for (value, text) in &self.x.ticks {
            let (x, _) = self.at(*value, self.y.low);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{floor:.1}\" y2=\"{:.1}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                floor + 4.0,
                floor + 17.0,
                escape(text)
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            self.height - 5.0,
            escape(&self.x.label)
        );
        if !self.y.label.is_empty() {
            let middle = f64::midpoint(TOP, floor);
            let _ = writeln!(
                out,
                "<text x=\"11\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 11 {middle:.1})\">{}</text>",
                escape(&self.y.label)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ticks_lie_on_the_axis_and_are_neither_none_nor_many(
            values in prop::collection::vec(1e-3f64..1e12, 1..20)
        ) {
            for spread in [Spread::Linear, Spread::Log] {
                let axis = Axis::over(spread, values.iter().copied(), "", |v| v.to_string());
                let ticks: Vec<f64> = axis.ticks.iter().map(|(tick, _)| *tick).collect();
                prop_assert!(ticks.len() <= 17, "{ticks:?}");
                prop_assert!(spread == Spread::Log || ticks.len() >= 3, "{ticks:?}");
                prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
                for value in values.iter().chain(&ticks) {
                    prop_assert!((0.0..=1.0).contains(&axis.place(*value)));
                }
            }
        }
    }

    #[test]
    fn an_axis_without_values_still_is_one() {
        for spread in [Spread::Linear, Spread::Log] {
            let axis = Axis::over(spread, std::iter::empty(), "", |v| v.to_string());
            assert!(axis.place(0.0).is_finite() && axis.place(f64::NAN).is_finite());
            assert!(!axis.ticks.is_empty());
        }
    }
}
