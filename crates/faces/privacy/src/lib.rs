//! Personal data: what is stored about a data subject, its erasure, and the keys that seal it.
//!
//! An erasure destroys the key of its subject, so what it seals is noise in every log, copy and
//! backup at once. Facts in the log `system` say what is to be erased and what was; the store of
//! keys does what they say, and a start goes on where a crash has stopped it.

#![forbid(unsafe_code)]

mod carry_out;
mod erasure;
mod erasures;
mod facts;
mod key_backup;
mod keys;
mod problems;
mod subject;

use carry_out::Eraser;
use erasures::{CONFIRM, ERASURE, GRACE_S, MAX_SUBJECTS};
use problems::{ERASURE_BEGUN, SUBJECT_UNKNOWN};
use std::sync::Arc;
use subject::SUBJECT_TAG;
use wellspring_host::declare::routes;
use wellspring_host::http::contract::Accept;
use wellspring_host::http::declared_problems::{APPENDING, READING};
use wellspring_host::http::face::{Face, ServedRoute};
use wellspring_host::http::{Host, JSON, OCTETS};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::settings::NoSettings;
use wellspring_host::setup::SetupError;
use wellspring_host::stats::family::Family;
use wellspring_host::wire::effects::Repeat;
use wellspring_host::wire::problem::{IO, KEY_UNAVAILABLE, Kind, NOT_FOUND, SUBJECT_ERASED};

/// Problems of requests about keys.
const KEYS: &[&Kind] = &[&KEY_UNAVAILABLE, &IO];

/// The face.
pub struct PrivacyFace {
    eraser: Arc<Eraser>,
}

impl Face for PrivacyFace {
    const NAME: &'static str = "privacy";
    const PROBLEMS: &'static [&'static Kind] = problems::ALL;
    type Settings = NoSettings;
    const LIMITS: &'static [(&'static str, usize)] = &[("max_erased_subjects", MAX_SUBJECTS)];
    const ROUTES: &'static [ServedRoute<PrivacyFace>] = routes! { |face| Arc::clone(&face.eraser);
        GET "/v1/subjects/{subject}" Node Admin subject::get:
            "What is stored about a data subject: the state of its key, and its events in each log."
            .at(&SUBJECT_TAG) .accept(Accept::Ignored) .fails[READING, KEYS] => [200 JSON "Subject"];
        DELETE "/v1/subjects/{subject}" Node Admin erasures::erase_one:
            "Erases a data subject: destroys its key."
            .at(&SUBJECT_TAG) .query[&CONFIRM, &GRACE_S] .accept(Accept::Ignored)
            .fails[APPENDING, READING, KEYS, &[&SUBJECT_UNKNOWN, &SUBJECT_ERASED]] => [202 JSON "Erasure"];
        GET "/v1/erasures" Node Admin erasures::list: "Erasures that wait or are under way."
            .accept(Accept::Ignored) .fails[READING] => [200 JSON "Erasures"];
        POST "/v1/erasures" Node Admin erasures::erase_many: "Erases many data subjects."
            .takes[(JSON, "ErasureRequest")] .accept(Accept::Ignored)
            .fails[APPENDING, READING, KEYS, &[&SUBJECT_UNKNOWN, &SUBJECT_ERASED]] => [202 JSON "Erasure"];
        GET "/v1/erasures/{erasure}" Node Admin erasures::get: "An erasure: its state, and the proof once it is complete."
            .at(&ERASURE) .accept(Accept::Ignored) .fails[READING, &[&NOT_FOUND]] => [200 JSON "Erasure"];
        POST "/v1/erasures/{erasure}/cancel" Node Admin erasures::cancel: "Cancels an erasure that still waits."
            .at(&ERASURE) .accept(Accept::Ignored) .repeat(Repeat::Safe)
            .fails[APPENDING, READING, &[&NOT_FOUND, &ERASURE_BEGUN]] => [200 JSON "Erasure"];
        GET "/v1/subject-keys" Node Operator keys::status: "The keys of data subjects: how many, under which roots."
            .accept(Accept::Ignored) .fails[KEYS] => [200 JSON "SubjectKeys"];
        GET "/v1/subject-keys/store" Node Admin keys::copy: "A copy of the store of keys, which is worth nothing without its root."
            .accept(Accept::Ignored) .fails[KEYS, &[&NOT_FOUND]] => [200 OCTETS ""];
        POST "/v1/subject-keys/rotate" Node Admin keys::rotate:
            "Wraps all keys under a new root and destroys the old one, and with it every earlier copy of the store."
            .accept(Accept::Ignored) .fails[KEYS] => [200 JSON "SubjectKeys"];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<PrivacyFace, SetupError> {
        let eraser = Eraser::open(host).map_err(|fault| SetupError::new(fault.to_string()))?;
        Ok(PrivacyFace { eraser: Arc::new(eraser) })
    }

    fn kept_events(_: &NoSettings) -> Option<&'static KeptEvents> {
        Some(&facts::KEPT)
    }

    fn figures(&self) -> Vec<Family> {
        let Ok(keys) = self.eraser.keys() else { return Vec::new() };
        vec![
            Family::counter(
                "wellspring_subject_parts_unavailable_total",
                "Sealed parts of events that could not be opened: their keys are missing.",
                keys.unavailable_parts(),
            ),
            Family::gauge(
                "wellspring_subject_key_backup_failed",
                "1 after a backup of the keys of data subjects has failed, until one succeeds.",
                u64::from(self.eraser.backup_failure().is_some()),
            ),
        ]
    }

    fn tick(self: &Arc<Self>, wall_us: u64) {
        self.eraser.tick(wall_us);
    }

    fn close(&self) {
        self.eraser.back_up_changed();
    }
}
