//! What tokens are verified with is looked after for as long as the server runs: the file of our
//! own secrets, and the keys of another issuer.

use super::foreign::{Foreign, Replaced};
use super::gate::Gate;
use super::jwks::KeySet;
use super::jwks_source::{self, KeysUrl, Source};
use super::rotation::Reread;
use super::token::Tokens;
use crate::hangup::Hangups;
use crate::stamp::Stamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::Clock;

/// Time between two looks at a file.
const LOOK: Duration = Duration::from_secs(2);
/// Time between two fetches of keys.
const RENEW: Duration = Duration::from_secs(600);
/// Least time between two fetches, when a token names a key that is not there or the last one
/// failed.
const LEAST: Duration = Duration::from_secs(30);

/// Looks after our own secrets and the issuer's keys. At SIGHUP at once.
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
            Ok(Reread::Changed) => tracing::info!("the secrets of tokens have been read anew"),
            Err(error) => tracing::warn!("the secrets of tokens stay as they were: {error}"),
        }
    }
}

async fn keep_file(foreign: &Foreign, path: &Path) {
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

async fn keep_url(foreign: &Foreign, url: &KeysUrl, clock: &Arc<dyn Clock>) {
    let mut hangups = Hangups::watch();
    // The keys were fetched when the server started.
    let mut begun_us = clock.monotonic_us();
    let mut rest = if foreign.has_keys() { RENEW } else { LEAST };
    loop {
        let passed = Duration::from_micros(clock.monotonic_us().saturating_sub(begun_us));
        tokio::select! {
            () = tokio::time::sleep(rest.saturating_sub(passed)) => {}
            () = foreign.keys_wanted() => {
                // By whoever likes, so not more often than this.
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
                tracing::error!(%error, "the keys of the tokens' issuer were not fetched");
                LEAST
            }
        };
    }
}

/// Takes keys that were read; gives how long they are good for.
fn take(foreign: &Foreign, read: Result<KeySet, String>) -> Duration {
    match read {
        Ok(keys) => {
            let (count, passed_over) = (keys.len(), keys.passed_over());
            if foreign.replace(keys) == Replaced::Changed {
                jwks_source::tell(count, passed_over);
            }
            RENEW
        }
        Err(reason) => {
            tracing::warn!("{reason}; the keys there were stay in use");
            LEAST
        }
    }
}
