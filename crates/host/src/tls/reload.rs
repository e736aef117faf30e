//! New files while the server runs: they are looked at every few seconds and at SIGHUP.

use super::Tls;
use super::expiry::Outlook;
use crate::clock::push_rfc3339;
use crate::hangup::{Hangups, Woken};
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::Clock;

/// Time between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Time between two warnings of the same certificate, in s.
const REMIND_EVERY_S: u64 = 86_400;

/// Looks at the files of TLS every few seconds and at SIGHUP, and serves what they hold, for as
/// long as the server runs.
pub(crate) async fn keep_current(tls: Arc<Tls>, clock: Arc<dyn Clock>) {
    let mut hangups = Hangups::watch();
    let mut woken = Woken::Asked;
    loop {
        let (tls, now_s) = (Arc::clone(&tls), clock.wall_us() / 1_000_000);
        // A folder on a network may take its time; signals must not wait for it.
        let looked = tokio::task::spawn_blocking(move || tls.look(now_s, woken));
        if looked.await.is_err() {
            tracing::error!("looking at the files of TLS failed");
        }
        woken = hangups.within(LOOK_EVERY).await;
    }
}

impl Tls {
    /// Loads the files if they have changed, and logs that; else warns once a day of a certificate
    /// that is about to expire. After SIGHUP the log tells the certificate in use in any case.
    fn look(&self, now_s: u64, woken: Woken) {
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
                    tracing::info!(%certificate, "new files are used for new TLS connections");
                }
                Err(why) => {
                    tracing::warn!(
                        why,
                        "the new files cannot be used; TLS goes on with those before"
                    );
                }
            }
        }
        let outlook = seen.expires_s.map(|expires_s| Outlook::of(expires_s, now_s));
        let ends = matches!(outlook, Some(Outlook::Soon | Outlook::Past));
        let due = now_s >= seen.reminded_s.saturating_add(REMIND_EVERY_S);
        if !(changed || woken == Woken::Asked || due && ends) {
            return;
        }
        seen.reminded_s = now_s;
        let expires = seen.expires_s.map_or_else(|| "unknown".to_owned(), written);
        match outlook {
            Some(Outlook::Past) => {
                tracing::warn!(%certificate, expires, "the certificate has expired")
            }
            Some(Outlook::Soon) => {
                tracing::warn!(%certificate, expires, "the certificate expires soon")
            }
            Some(Outlook::Fine) | None => {
                tracing::info!(%certificate, expires, "the certificate of TLS")
            }
        }
    }
}

/// A moment in s since 1970 UTC, for people.
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
        tls.look(0, Woken::Asked);
        assert!(Arc::ptr_eq(&first, &tls.current()), "the same files are not read again");
        write(dir.path(), "a.pem", "broken", 0o644);
        tls.look(1, Woken::Due);
        assert!(Arc::ptr_eq(&first, &tls.current()));
        // The certificate of a new pair alone, and then its key.
        let (new, new_key) = authority.issue(dir.path(), "b", 2060);
        std::fs::rename(new, &certificate).unwrap();
        tls.look(2, Woken::Due);
        assert!(Arc::ptr_eq(&first, &tls.current()));
        std::fs::rename(new_key, &key).unwrap();
        tls.look(3, Woken::Due);
        assert!(!Arc::ptr_eq(&first, &tls.current()));
        assert_eq!(tls.expires_s(), Some(2_840_140_800));
        std::fs::remove_file(&key).unwrap();
        let second = tls.current();
        tls.look(4, Woken::Asked);
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
        tls.look(1, Woken::Due);
        assert_eq!(tls.expires_s(), Some(2_524_608_000), "open to others");
        mode(0o600);
        tls.look(2, Woken::Due);
        assert_eq!(tls.expires_s(), Some(2_840_140_800));
    }

    #[test]
    fn a_certificate_about_to_expire_is_warned_of_once_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = Authority::new().issue(dir.path(), "a", 2050);
        let tls = tls(&certificate, &key);
        let end_s = tls.expires_s().unwrap();
        let reminded_s = |now_s: u64| {
            tls.look(now_s, Woken::Due);
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
