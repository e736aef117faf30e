//! The live view: the whole terminal, one thread that samples and one that draws.
//!
//! The terminal is restored however this ends: at `q`, by a failure, by a panic (the hook that
//! ratatui sets) and by a signal.

use super::poll::{self, Poll};
use super::rates::{self, Figures};
use super::sample::Sample;
use super::view::{self, Order};
use crate::exit::{Code, Failure};
use crate::interrupt::on_interrupt;
use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize as _;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget, Wrap};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum delay until a new sample is drawn, and maximum wait for a key.
const TICK: Duration = Duration::from_millis(100);

/// Draws until it is stopped.
///
/// # Errors
/// The terminal cannot be drawn on; 130 after Ctrl-C.
pub(super) fn run(poll: Poll, url: &str, interval: Duration) -> Result<(), Failure> {
    let (tell, told) = sync_channel(1);
    ask(poll, interval, tell)
        .map_err(|error| Failure::new(Code::Io, format!("starting a thread: {error}")))?;
    // Held while drawing. A signal takes it for good: nothing is drawn after the terminal is
    // restored.
    let screen = Arc::new(Mutex::new(()));
    let held = Arc::clone(&screen);
    // Before the terminal is taken, so that a signal always restores it.
    on_interrupt(move || {
        let guard = held.lock().unwrap_or_else(PoisonError::into_inner);
        ratatui::restore();
        std::mem::forget(guard);
    });
    let terminal = {
        let _held = screen.lock().unwrap_or_else(PoisonError::into_inner);
        ratatui::try_init().map_err(|error| lost(&error))?
    };
    let ended = show(terminal, &told, &screen, url);
    ratatui::restore();
    ended
}

/// Samples the server on a thread of its own: a server that does not answer must not make the
/// keys wait. The thread ends with the process.
#[allow(clippy::disallowed_methods)] // a thread of the shell: it asks and sleeps
fn ask(
    mut poll: Poll,
    interval: Duration,
    tell: SyncSender<Result<Sample, Failure>>,
) -> io::Result<()> {
    let again = move || {
        while tell.send(poll.sample()).is_ok() {
            std::thread::sleep(poll.pause(interval));
        }
    };
    std::thread::Builder::new().name("top".to_owned()).spawn(again).map(drop)
}

fn show(
    mut terminal: DefaultTerminal,
    told: &Receiver<Result<Sample, Failure>>,
    screen: &Mutex<()>,
    url: &str,
) -> Result<(), Failure> {
    let mut state = State::new(url);
    loop {
        match told.try_recv() {
            Ok(look) => state.take(look, poll::now_ns()),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                return Err(Failure::new(Code::Io, "the thread that polls the server has ended"));
            }
        }
        {
            let _held = screen.lock().unwrap_or_else(PoisonError::into_inner);
            let picture = Picture { state: &state, now_ns: poll::now_ns() };
            terminal
                .draw(|frame| frame.render_widget(picture, frame.area()))
                .map_err(|error| lost(&error))?;
        }
        if event::poll(TICK).map_err(|error| lost(&error))? {
            let Event::Key(key) = event::read().map_err(|error| lost(&error))? else { continue };
            match state.press(key) {
                KeyAction::Stay => {}
                KeyAction::Quit => return Ok(()),
                KeyAction::Interrupt => return Err(Failure::new(Code::Interrupted, "")),
            }
        }
    }
}

fn lost(error: &io::Error) -> Failure {
    Failure::output("the terminal", error)
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
enum KeyAction {
    Stay,
    Quit,
    Interrupt,
}

/// The state of the view.
struct State {
    url: String,
    last: Option<Sample>,
    shown: Option<Figures>,
    /// Why there is nothing newer, and since when.
    trouble: Option<(String, u64)>,
    order: Order,
    paused: bool,
}

impl State {
    fn new(url: &str) -> State {
        State {
            url: url.to_owned(),
            last: None,
            shown: None,
            trouble: None,
            order: Order::default(),
            paused: false,
        }
    }

    /// Takes the next sample.
    fn take(&mut self, look: Result<Sample, Failure>, now_ns: u64) {
        match look {
            Ok(sample) => {
                self.trouble = None;
                // After a gap, rates over it would hide what is going on now: start again.
                if let (Some(last), false) = (&self.last, self.paused) {
                    self.shown = Some(rates::between(last, &sample));
                }
                self.last = Some(sample);
            }
            Err(failure) => {
                self.last = None;
                let since_ns = self.trouble.take().map_or(now_ns, |(_, since_ns)| since_ns);
                self.trouble = Some((failure.message, since_ns));
            }
        }
    }

    fn press(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Stay;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return KeyAction::Interrupt;
            }
            KeyCode::Char('q') | KeyCode::Esc => return KeyAction::Quit,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('s') | KeyCode::Right => self.order = self.order.moved(1),
            KeyCode::Left => self.order = self.order.moved_back(),
            KeyCode::Char('r') => self.order.reversed = !self.order.reversed,
            _ => {}
        }
        KeyAction::Stay
    }
}

/// One frame.
struct Picture<'a> {
    state: &'a State,
    now_ns: u64,
}

impl Widget for Picture<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let state = self.state;
        let trouble = self.trouble();
        let told = u16::from(trouble.is_some()) * 2;
        let rows = [
            Constraint::Length(1),
            Constraint::Length(told),
            Constraint::Min(1),
            Constraint::Length(1),
        ];
        let [head, told, body, foot] = Layout::vertical(rows).areas(area);
        let mut title = match &state.shown {
            Some(figures) => view::title(&state.url, figures),
            None => Line::from(format!("wellspring top  {}", state.url).bold()),
        };
        if state.paused {
            title.push_span("  PAUSED".yellow().bold());
        }
        title.render(head, buffer);
        if let Some(trouble) = trouble {
            Paragraph::new(trouble.red()).wrap(Wrap { trim: true }).render(told, buffer);
        }
        match &state.shown {
            Some(figures) => {
                let lines = view::lines(figures, state.order, Some(usize::from(body.height)));
                let shown = Paragraph::new(lines);
                // The shown sample is outdated until a newer one arrives.
                if state.trouble.is_some() { shown.dim() } else { shown }.render(body, buffer);
            }
            None if state.trouble.is_none() => {
                Paragraph::new("waiting for two looks at the server …".dim()).render(body, buffer);
            }
            None => {}
        }
        Line::from("q quit   p pause   s ← → sort by   r reverse".dim()).render(foot, buffer);
    }
}

impl Picture<'_> {
    fn trouble(&self) -> Option<String> {
        let (what, since_ns) = self.state.trouble.as_ref()?;
        let seconds = self.now_ns.saturating_sub(*since_ns) / 1_000_000_000;
        let what = wellspring_readable::text::visible(what);
        Some(format!("no figures for {seconds} s, trying again: {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::rates_tests::sample;
    use crate::top::view::Column;

    const SECOND_NS: u64 = 1_000_000_000;

    fn text(state: &State, now_ns: u64) -> String {
        let area = Rect::new(0, 0, 100, 16);
        let mut buffer = Buffer::empty(area);
        Picture { state, now_ns }.render(area, &mut buffer);
        let row =
            |y| (0..area.width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..area.height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
    }

    fn press(state: &mut State, code: KeyCode) -> KeyAction {
        state.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn a_server_that_stops_is_reported_and_counts_from_zero_when_it_returns() {
        let mut state = State::new("http://h:1");
        assert!(text(&state, 0).contains("waiting for two looks"));
        state.take(Ok(sample(0, &[(200, 0)], &[])), 0);
        state.take(Ok(sample(1, &[(200, 77)], &[])), SECOND_NS);
        assert!(text(&state, SECOND_NS).contains("77.0 requests/s"), "{}", text(&state, 0));
        let gone = || Err(Failure::new(Code::Unavailable, "cannot reach h:1"));
        state.take(gone(), 2 * SECOND_NS);
        state.take(gone(), 3 * SECOND_NS);
        let shown = text(&state, 5 * SECOND_NS);
        for part in ["no figures for 3 s", "cannot reach h:1", "77.0 requests/s"] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        state.take(Ok(sample(60, &[(200, 7_000)], &[])), 60 * SECOND_NS);
        assert!(!text(&state, 60 * SECOND_NS).contains("no figures"));
        state.take(Ok(sample(61, &[(200, 7_033)], &[])), 61 * SECOND_NS);
        assert!(text(&state, 0).contains("33.0 requests/s"), "{}", text(&state, 0));
    }

    #[test]
    fn keys_pause_sort_and_quit() {
        let mut state = State::new("http://h:1");
        state.take(Ok(sample(0, &[(200, 0)], &[])), 0);
        assert_eq!(press(&mut state, KeyCode::Char('p')), KeyAction::Stay);
        state.take(Ok(sample(1, &[(200, 77)], &[])), 0);
        assert!(state.shown.is_none() && text(&state, 0).contains("PAUSED"));
        press(&mut state, KeyCode::Char('p'));
        state.take(Ok(sample(2, &[(200, 99)], &[])), 0);
        assert!(text(&state, 0).contains("22.0 requests/s"), "over the last interval alone");
        press(&mut state, KeyCode::Char('s'));
        assert_eq!(state.order.column, Column::ClientErrors);
        press(&mut state, KeyCode::Left);
        press(&mut state, KeyCode::Left);
        press(&mut state, KeyCode::Char('r'));
        assert_eq!(state.order, Order { column: Column::Route, reversed: true });
        assert_eq!(press(&mut state, KeyCode::Left), KeyAction::Stay);
        assert_eq!(state.order, Order { column: Column::P99, reversed: false });
        assert_eq!(press(&mut state, KeyCode::Char('q')), KeyAction::Quit);
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.press(ctrl_c), KeyAction::Interrupt);
    }
}
