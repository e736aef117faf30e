//! Keeps the verification keys of tokens up to date while the server runs: the file of our own
//! secrets, and the keys of an external issuer.

use super::foreign::{ForeignIssuer, KeyReplacement};
use super::gate::Gate;
use super::jwks::KeySet;
use super::jwks_source::{self, KeysUrl, Source};
use super::rotation::Reread;
use super::token::Tokens;
use crate::hangup::Hangups;
use crate::setup::SetupError;
use crate::stamp::Stamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::Clock;

/// Time between two checks of a file.
const LOOK: Duration = Duration::from_secs(2);
/// Time between two fetches of keys.
const RENEW: Duration = Duration::from_secs(600);
/// Least time between two fetches, after a token named an unknown key or the last fetch failed.
const LEAST: Duration = Duration::from_secs(30);

/// Watches our own secrets and the issuer's keys. Checks at once on SIGHUP.
pub(crate) async fn keep(
    gate: Arc<Gate>,
    source: Option<Source>,
    data: PathBuf,
    clock: Arc<dyn Clock>,
) {
    let tokens = gate.tokens();
    let keys = async {
        match (tokens.foreign(), source) {
            (Some(foreign), Some(Source::File(path))) => keep_file(foreign, &path).await,
            (Some(foreign), Some(Source::Url(url))) => {
                keep_url(foreign, &url, &clock).await;
            }
            _ => {}
        }
    };
    tokio::join!(keep_secrets(tokens, &data), keys);
}

async fn keep_secrets(tokens: &Tokens, data: &Path) {
    let mut hangups = Hangups::watch();
    loop {
        hangups.within(LOOK).await;
        match tokens.reread(data) {
            Ok(Reread::Same) => {}
            Ok(Reread::Changed) => tracing::info!("reloaded the token secrets"),
            Err(error) => tracing::warn!("kept the token secrets in use: {error}"),
        }
    }
}

async fn keep_file(foreign: &ForeignIssuer, path: &Path) {
    let mut hangups = Hangups::watch();
    let mut seen = None;
    loop {
        let stamp = Stamp::of(path).ok();
        if seen != Some(stamp) {
            seen = Some(stamp);
            take(foreign, jwks_source::read(path));
        }
        hangups.within(LOOK).await;
    }
}

async fn keep_url(foreign: &ForeignIssuer, url: &KeysUrl, clock: &Arc<dyn Clock>) {
    let mut hangups = Hangups::watch();
    // The keys were fetched when the server started.
    let mut begun_us = clock.monotonic_us();
    let mut rest = if foreign.has_keys() { RENEW } else { LEAST };
    loop {
        let passed = Duration::from_micros(clock.monotonic_us().saturating_sub(begun_us));
        tokio::select! {
            () = tokio::time::sleep(rest.saturating_sub(passed)) => {}
            () = foreign.keys_wanted() => {
                // Any client can trigger a fetch, so they are rate limited.
                rest = rest.min(LEAST);
                continue;
            }
            () = hangups.next() => {}
        }
        begun_us = clock.monotonic_us();
        let (url, clock) = (url.clone(), Arc::clone(clock));
        let fetched = tokio::task::spawn_blocking(move || jwks_source::fetch(&url, &*clock)).await;
        rest = match fetched {
            Ok(fetched) => take(foreign, fetched),
            Err(error) => {
                tracing::error!(%error, "cannot fetch the token issuer's keys");
                LEAST
            }
        };
    }
}

/// Applies keys that were read; returns how long they are valid.
fn take(foreign: &ForeignIssuer, read: Result<KeySet, SetupError>) -> Duration {
    match read {
        Ok(keys) => {
            let (count, passed_over) = (keys.len(), keys.passed_over());
            if foreign.replace(keys) == KeyReplacement::Changed {
                jwks_source::tell(count, passed_over);
            }
            RENEW
        }
        Err(reason) => {
            tracing::warn!("{reason}; the previous keys stay in use");
            LEAST
        }
    }
}
