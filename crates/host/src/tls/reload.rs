//! Reloading the files while the server runs: they are checked every few seconds and on SIGHUP.

use super::Tls;
use super::expiry::ExpiryState;
use crate::clock::push_rfc3339;
use crate::hangup::{Hangups, WakeReason};
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::Clock;

/// Time between two checks of the files.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Time between two warnings about the same certificate, in s.
const REMIND_EVERY_S: u64 = 86_400;

/// Checks the TLS files every few seconds and on SIGHUP, and applies their content, while the
/// server runs.
pub(crate) async fn keep_current(tls: Arc<Tls>, clock: Arc<dyn Clock>) {
    let mut hangups = Hangups::watch();
    let mut woken = WakeReason::Asked;
    loop {
        let (tls, now_s) = (Arc::clone(&tls), clock.wall_us() / 1_000_000);
        // A network folder may be slow; signals must not wait for it.
        let looked = tokio::task::spawn_blocking(move || tls.look(now_s, woken));
        if looked.await.is_err() {
            tracing::error!("cannot check the TLS files");
        }
        woken = hangups.within(LOOK_EVERY).await;
    }
}

impl Tls {
    /// Loads the files if they have changed, and logs that; otherwise warns once a day of a
    /// certificate that expires soon. After SIGHUP the log always names the certificate in use.
    fn look(&self, now_s: u64, woken: WakeReason) {
        let stamps = self.files.stamps();
        let mut seen = self.lock();
        let changed = seen.stamps != stamps;
        seen.stamps = stamps;
        let certificate = self.files.certificate.display();
        if changed {
            match self.files.load() {
                Ok(loaded) => {
                    self.serve(loaded.config);
                    seen.expires_s = loaded.expires_s;
                    tracing::info!(%certificate, "loaded new TLS files for new connections");
                }
                Err(why) => {
                    tracing::warn!(%why, "cannot use the new TLS files; keeping the previous ones");
                }
            }
        }
        let outlook = seen.expires_s.map(|expires_s| ExpiryState::of(expires_s, now_s));
        let ends = matches!(outlook, Some(ExpiryState::Soon | ExpiryState::Past));
        let due = now_s >= seen.reminded_s.saturating_add(REMIND_EVERY_S);
        if !(changed || woken == WakeReason::Asked || due && ends) {
            return;
        }
        seen.reminded_s = now_s;
        let expires = seen.expires_s.map_or_else(|| "unknown".to_owned(), written);
        match outlook {
            Some(ExpiryState::Past) => {
                tracing::warn!(%certificate, expires, "the TLS certificate has expired")
            }
            Some(ExpiryState::Soon) => {
                tracing::warn!(%certificate, expires, "the TLS certificate expires soon")
            }
            Some(ExpiryState::Fine) | None => {
                tracing::info!(%certificate, expires, "loaded the TLS certificate")
            }
        }
    }
}

/// A time in s since 1970 UTC, for people.
fn written(moment_s: u64) -> String {
    let mut text = Vec::new();
    push_rfc3339(&mut text, moment_s.saturating_mul(1_000_000));
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostConfig;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use wellspring_tls::testing::{Authority, written as write};

    fn tls(certificate: &Path, key: &Path) -> Arc<Tls> {
        let [certificate, key] = [certificate, key].map(|path| path.to_str().unwrap());
        let config = HostConfig::for_tests(&["--tls-cert", certificate, "--tls-key", key]);
        Tls::open(&config.tls).unwrap().unwrap()
    }

    #[test]
    fn a_new_pair_is_taken_and_a_broken_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let (certificate, key) = authority.issue(dir.path(), "a", 2050);
        let tls = tls(&certificate, &key);
        let first = tls.current();
        assert_eq!(tls.expires_s(), Some(2_524_608_000));
        tls.look(0, WakeReason::Asked);
        assert!(Arc::ptr_eq(&first, &tls.current()), "the same files are not read again");
        let _ = write(dir.path(), "a.pem", "broken", 0o644);
        tls.look(1, WakeReason::Due);
        assert!(Arc::ptr_eq(&first, &tls.current()));
        // The certificate of a new pair alone, and then its key.
        let (new, new_key) = authority.issue(dir.path(), "b", 2060);
        std::fs::rename(new, &certificate).unwrap();
        tls.look(2, WakeReason::Due);
        assert!(Arc::ptr_eq(&first, &tls.current()));
        std::fs::rename(new_key, &key).unwrap();
        tls.look(3, WakeReason::Due);
        assert!(!Arc::ptr_eq(&first, &tls.current()));
        assert_eq!(tls.expires_s(), Some(2_840_140_800));
        std::fs::remove_file(&key).unwrap();
        let second = tls.current();
        tls.look(4, WakeReason::Asked);
        assert!(Arc::ptr_eq(&second, &tls.current()));
    }

    #[test]
    fn a_key_that_was_open_to_others_is_taken_once_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let (certificate, key) = authority.issue(dir.path(), "a", 2050);
        let tls = tls(&certificate, &key);
        let (new, new_key) = authority.issue(dir.path(), "b", 2060);
        let mode = |mode| std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        std::fs::rename(new_key, &key).unwrap();
        mode(0o644);
        std::fs::rename(new, &certificate).unwrap();
        tls.look(1, WakeReason::Due);
        assert_eq!(tls.expires_s(), Some(2_524_608_000), "open to others");
        mode(0o600);
        tls.look(2, WakeReason::Due);
        assert_eq!(tls.expires_s(), Some(2_840_140_800));
    }

    #[test]
    fn a_certificate_about_to_expire_is_warned_of_once_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = Authority::new().issue(dir.path(), "a", 2050);
        let tls = tls(&certificate, &key);
        let end_s = tls.expires_s().unwrap();
        let reminded_s = |now_s: u64| {
            tls.look(now_s, WakeReason::Due);
            tls.lock().reminded_s
        };
        let day = REMIND_EVERY_S;
        assert_eq!(reminded_s(end_s - 20 * day), 0);
        assert_eq!(reminded_s(end_s - 14 * day), end_s - 14 * day);
        assert_eq!(reminded_s(end_s - 14 * day + 60), end_s - 14 * day);
        assert_eq!(reminded_s(end_s - 13 * day), end_s - 13 * day);
        assert_eq!(reminded_s(end_s + day), end_s + day);
        assert_eq!(written(end_s), "2050-01-01T00:00:00.000000Z");
    }
}
