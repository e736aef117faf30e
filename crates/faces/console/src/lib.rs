//! The console: pages for a browser, embedded in the program. They use the public API only; what
//! they need beyond it, the figures since the start, is a route of its own here.
//!
//! ```text
//! GET /  ── Accept: text/html ──► index.html ──► /console/{file}: modules, style, icon
//!        └─ else ──► the discovery document: where the faces' clients begin
//! tick ──► samples of the figures ──► GET /v1/figures
//! ```

#![forbid(unsafe_code)]

mod assets;
mod figures;
mod home;
mod samples;

use assets::FILE;
pub use samples::sampled_routes;
use samples::{Sample, Samples, sample};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_host::declare::routes;
use wellspring_host::http::contract::{Accept, Query};
use wellspring_host::http::face::{Face, ServedRoute};
use wellspring_host::http::{HTML, Host, JSON, SVG, TEXT};
use wellspring_host::settings::section;
use wellspring_host::setup::SetupError;
use wellspring_host::wire::problem::NOT_FOUND;

/// Modules.
const JAVASCRIPT: &str = "text/javascript";
/// Style sheets.
const CSS: &str = "text/css";

section! {
    /// Settings of the console.
    ConsoleConfig from ConsoleConfigArgs under "Console":
    /// Serve the console to browsers that ask for /.
    [num_args = 0..=1, default_missing_value = "true"]
    console: bool = "WELLSPRING_CONSOLE", true;
}

/// The face.
pub struct ConsoleFace {
    host: Arc<Host>,
    /// Whether browsers get the console.
    is_on: bool,
    samples: Mutex<Samples>,
    /// The figures as they were last gathered.
    newest: Mutex<Option<Sample>>,
}

/// How old gathered figures may be when they are used again, in µs.
const NEWEST_US: u64 = 1_000_000;

impl ConsoleFace {
    /// The figures of now, or of a moment ago. Reads files.
    fn newest(&self) -> Sample {
        let now_us = self.host.wall_us();
        let mut newest = lock(&self.newest);
        match &*newest {
            Some(known) if now_us.abs_diff(known.at_us) < NEWEST_US => known.clone(),
            _ => newest.insert(sample(now_us, &self.host.figures())).clone(),
        }
    }
}

impl Face for ConsoleFace {
    const NAME: &'static str = "console";
    type Settings = ConsoleConfig;
    const RESERVED: &'static [&'static str] = &["favicon", "robots"];
    const ROUTES: &'static [ServedRoute<ConsoleFace>] = routes! { |face| face;
        GET "/" Node Public home::home: "For a browser the console; for a program where the clients of each API begin."
            => [200 JSON "Discovery" HTML "", 304];
        GET "/console/{file}" Node Public assets::file: "A part of the console."
            .at(&FILE) .query_is(Query::Ignored) .accept(Accept::Ignored) .fails[&[&NOT_FOUND]]
            => [200 JAVASCRIPT "" CSS "" SVG "", 304];
        GET "/favicon.ico" Node Public assets::icon: "The icon of the console."
            .query_is(Query::Ignored) .accept(Accept::Ignored) => [200 SVG "", 304];
        GET "/robots.txt" Node Public home::robots: "What crawlers may follow: short links only."
            .query_is(Query::Ignored) .accept(Accept::Ignored) => [200 TEXT ""];
        GET "/v1/figures" Node Operator figures::figures: "The main figures since the server started, as series."
            .query[&figures::AFTER] .accept(Accept::Ignored) => [200 JSON "Figures"];
    };

    fn open(settings: ConsoleConfig, host: &Arc<Host>) -> Result<ConsoleFace, SetupError> {
        Ok(ConsoleFace {
            host: Arc::clone(host),
            is_on: settings.console,
            samples: Mutex::new(Samples::new()),
            newest: Mutex::new(None),
        })
    }

    fn tick(self: &Arc<Self>, wall_us: u64) {
        // Nobody waits for the samples while the figures are gathered.
        let is_due = lock(&self.samples).is_due(wall_us);
        if is_due {
            let newest = self.newest();
            lock(&self.samples).push(newest);
        }
    }
}

/// What a thread that panicked holds is whole: it is replaced at once, never changed in place.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
