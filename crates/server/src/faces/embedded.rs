//! Faces that an embedding program adds.

use std::sync::{Arc, OnceLock};
use wellspring_host::http::Host;
use wellspring_host::http::face::{BoundFace, Declaration, Face};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::settings::NoSettings;
use wellspring_host::setup::SetupError;

/// A face of an embedding program: it comes after the built-in ones. It has no section of settings;
/// if it needs any it reads them itself.
#[derive(Clone, Copy)]
pub struct EmbeddedFace {
    declare: fn() -> Declaration,
    kept_events: fn(&NoSettings) -> Option<&'static KeptEvents>,
    open: fn(&Arc<Host>) -> Result<BoundFace, SetupError>,
}

impl EmbeddedFace {
    /// That of a type.
    #[must_use]
    pub fn of<F: Face<Settings = NoSettings>>() -> EmbeddedFace {
        EmbeddedFace {
            declare: Declaration::of::<F>,
            kept_events: F::kept_events,
            open: |host| F::open(NoSettings {}, host).map(BoundFace::new),
        }
    }

    pub(super) fn declare(&self) -> Declaration {
        (self.declare)()
    }

    pub(super) fn kept_events(&self) -> Option<&'static KeptEvents> {
        (self.kept_events)(&NoSettings {})
    }

    pub(super) fn open(&self, host: &Arc<Host>) -> Result<BoundFace, SetupError> {
        (self.open)(host)
    }
}

static EMBEDDED: OnceLock<Vec<EmbeddedFace>> = OnceLock::new();

/// Adds faces to every server of this process. Only the first call counts, and only before the
/// routes are first used.
pub(crate) fn embed(faces: Vec<EmbeddedFace>) {
    let _ = EMBEDDED.set(faces);
}

/// The faces that were added.
pub(super) fn embedded() -> &'static [EmbeddedFace] {
    EMBEDDED.get().map_or(&[], Vec::as_slice)
}
