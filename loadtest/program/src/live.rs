//! The live view: progress, rate, a heat strip of latencies over time, failures.
//!
//! It is drawn into a few lines below the prompt, on standard error, and taken
//! away before the report is written. The terminal is not put into raw mode, so
//! that Ctrl-C stays a signal.

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline, Widget};
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::io::{self, Stderr};
use wellspring_load::engine::Progress;
use wellspring_load::numbers;
use wellspring_load::result::Slice;

/// Lines taken up on the terminal.
const HEIGHT: u16 = 14;
/// Columns left of the plots, for their scale.
const SCALE: u16 = 12;

/// Columns of the progress bar.
const BAR: usize = 20;
/// Columns a second may take while there are few.
const WIDEST_SECOND: usize = 4;

/// A view being drawn.
pub(crate) struct Live {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    what: String,
}

impl Live {
    /// Takes some lines of the terminal; `None` if it cannot be drawn on.
    pub(crate) fn new() -> Option<Self> {
        let options = TerminalOptions { viewport: Viewport::Inline(HEIGHT) };
        let terminal = Terminal::with_options(CrosstermBackend::new(io::stderr()), options).ok()?;
        Some(Live { terminal, what: String::new() })
    }

    pub(crate) fn begin(&mut self, what: &str) {
        what.clone_into(&mut self.what);
        let idle = Progress {
            elapsed_ns: 0,
            warming_up: true,
            successes: 0,
            failures: 0,
            slices: &[],
            done_share: 0.0,
        };
        self.draw(&idle);
    }

    pub(crate) fn draw(&mut self, progress: &Progress<'_>) {
        let picture = Picture { what: &self.what, progress };
        // A frame that cannot be drawn is a frame less; the measuring goes on.
        let _ = self.terminal.draw(|frame| frame.render_widget(picture, frame.area()));
    }

    /// Takes the view away.
    pub(crate) fn close(&mut self) {
        let _ = self.terminal.clear();
        let _ = self.terminal.show_cursor();
    }
}

/// One frame.
struct Picture<'a> {
    what: &'a str,
    progress: &'a Progress<'a>,
}

impl Widget for Picture<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let rows = [
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(3),
            Constraint::Min(3),
            Constraint::Length(1),
        ];
        let [head, numbers, rate, heat, foot] = Layout::vertical(rows).areas(area);
        let elapsed = numbers::elapsed(self.progress.elapsed_ns);
        let stage = if self.progress.warming_up { "warming up".to_owned() } else { elapsed };
        let full = (self.progress.done_share * BAR as f64).round() as usize;
        let bar = format!("{}{}", "━".repeat(full.min(BAR)), "─".repeat(BAR - full.min(BAR)));
        let percent = format!("  {:.0}%  ", self.progress.done_share * 100.0);
        let line = vec![bar.cyan(), percent.into(), self.what.bold(), "  ".into(), stage.into()];
        Line::from(line).render(head, buffer);
        self.numbers().render(numbers, buffer);
        self.rate(rate, buffer);
        self.heat(heat, buffer);
        Paragraph::new("Ctrl-C ends the measurement and shows the report".dim())
            .render(foot, buffer);
    }
}

impl Picture<'_> {
    fn numbers(&self) -> Line<'static> {
        let progress = self.progress;
        // Failures come first: on a narrow terminal the end of the line is cut off.
        let failed = format!("{} failed", numbers::count(progress.failures));
        let mut spans = vec![
            format!("{} answered, ", numbers::count(progress.successes)).into(),
            if progress.failures > 0 { failed.red() } else { failed.dim() },
        ];
        if let Some(last) = progress.slices.last() {
            let text = format!(
                "   now {}/s, p50 {}, p99 {}",
                numbers::count(last.successes),
                numbers::duration(last.p50_ns as f64),
                numbers::duration(last.p99_ns as f64)
            );
            spans.push(text.into());
        }
        Line::from(spans)
    }

    /// The seconds that fit, the newest at the right, and how many columns each takes.
    fn shown(&self, width: u16) -> (&[Slice], usize) {
        let (slices, width) = (self.progress.slices, usize::from(width));
        let columns = (width / slices.len().max(1)).clamp(1, WIDEST_SECOND);
        (&slices[slices.len().saturating_sub(width / columns)..], columns)
    }

    fn rate(&self, area: Rect, buffer: &mut Buffer) {
        let [scale, plot] =
            Layout::horizontal([Constraint::Length(SCALE), Constraint::Min(1)]).areas(area);
        let (shown, columns) = self.shown(plot.width);
        let highest = shown.iter().map(|slice| slice.successes).max().unwrap_or(0);
        let top = format!("{}/s", numbers::count(highest));
        Paragraph::new(top.dim()).render(scale, buffer);
        let data: Vec<u64> =
            shown.iter().flat_map(|slice| std::iter::repeat_n(slice.successes, columns)).collect();
        Sparkline::default().data(&data).max(highest.max(1)).cyan().render(plot, buffer);
    }

    fn heat(&self, area: Rect, buffer: &mut Buffer) {
        let (shown, columns) = self.shown(area.width.saturating_sub(SCALE));
        let Some((low, high)) = powers(shown) else { return };
        // A row for each power of two as long as they fit.
        let rows = usize::from(area.height).min(high + 1 - low);
        for row in 0..rows {
            // The slowest is at the top.
            let from = low + (high + 1 - low) * (rows - 1 - row) / rows;
            let to = low + (high + 1 - low) * (rows - row) / rows;
            let y = area.y + row as u16;
            let label = numbers::duration((1u64 << (from + 10).min(62)) as f64);
            buffer.set_string(area.x, y, label, Style::new().dim());
            for (place, slice) in shown.iter().enumerate() {
                let within = slice.heat.get(from..to.min(slice.heat.len())).unwrap_or_default();
                let count: u64 = within.iter().sum();
                let all: u64 = slice.heat.iter().sum();
                if count > 0 {
                    let share = count as f64 / all.max(1) as f64;
                    let x = area.x + SCALE + (place * columns) as u16;
                    buffer.set_string(x, y, "█".repeat(columns), Style::new().fg(warmth(share)));
                }
            }
        }
    }
}

/// The lowest and the highest power of two that occurs.
fn powers(slices: &[Slice]) -> Option<(usize, usize)> {
    let occurring = slices
        .iter()
        .flat_map(|slice| slice.heat.iter().enumerate())
        .filter(|(_, count)| **count > 0)
        .map(|(power, _)| power);
    Some((occurring.clone().min()?, occurring.max()?))
}

/// From dark for a few answers to bright for most: 256-colour codes.
fn warmth(share: f64) -> Color {
    const STEPS: [u8; 7] = [52, 88, 124, 160, 202, 214, 226];
    // One in a thousand is the first step, all of them the last.
    let place = ((share.max(0.001).log10() + 3.0) / 3.0 * 6.0).round() as usize;
    Color::Indexed(STEPS[place.min(6)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(progress: &Progress<'_>) -> String {
        let area = Rect::new(0, 0, 60, HEIGHT);
        let mut buffer = Buffer::empty(area);
        Picture { what: "c=4", progress }.render(area, &mut buffer);
        let row = |y| (0..60).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..HEIGHT).map(|y| row(y).trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_frame_shows_rate_latencies_and_failures() {
        let slice = Slice {
            successes: 1234,
            failures: 2,
            p50_ns: 100_000,
            p99_ns: 900_000,
            heat: vec![0, 0, 0, 0, 0, 0, 1000, 200, 30, 4],
            ..Slice::default()
        };
        let progress = Progress {
            elapsed_ns: 2_000_000_000,
            warming_up: false,
            successes: 2468,
            failures: 4,
            slices: &[slice.clone(), slice],
            done_share: 0.4,
        };
        let shown = text(&progress);
        for part in ["c=4", "40%", "1,234/s", "4 failed", "████████", "524 µs", "Ctrl-C"]
        {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        let empty = Progress { slices: &[], warming_up: true, ..progress };
        assert!(text(&empty).contains("warming up"));
    }
}
