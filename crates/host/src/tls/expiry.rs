//! When a certificate expires, and when that is worth a warning.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// Time before a certificate's expiry from which the server warns.
const SOON_S: u64 = 14 * 86_400;

/// The expiry of a certificate (`notAfter`), in s since 1970 UTC. The verifier reports it: asked
/// about the end of all time it finds every certificate expired, and says since when.
pub(super) fn expires_s(certificate: &CertificateDer<'_>) -> Option<u64> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into_owned()).ok()?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), wellspring_tls::provider());
    let end = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let name = ServerName::try_from("localhost").ok()?;
    match verifier.build().ok()?.verify_server_cert(certificate, &[], &name, &[], end) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(not_after.as_secs())
        }
        _ => None,
    }
}

/// How close the expiry of a certificate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpiryState {
    /// More than fourteen days away.
    Fine,
    /// Within fourteen days.
    Soon,
    /// Passed.
    Past,
}

impl ExpiryState {
    /// For a certificate that expires at `expires_s`, seen at `now_s`; both in s since 1970 UTC.
    pub(super) fn of(expires_s: u64, now_s: u64) -> ExpiryState {
        match expires_s.checked_sub(now_s) {
            None | Some(0) => ExpiryState::Past,
            Some(left) if left <= SOON_S => ExpiryState::Soon,
            Some(_) => ExpiryState::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_tls::pem;
    use wellspring_tls::testing::Authority;

    #[test]
    fn the_end_of_a_certificate_is_read_whether_it_is_one_of_an_authority_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        // Years around 2050 have two encodings (RFC 5280 section 4.1.2.5).
        for (year, expected) in
            [(2020, 1_577_836_800), (2049, 2_493_072_000), (2100, 4_102_444_800)]
        {
            let (certificate, key) = authority.issue(dir.path(), "a", year);
            let found = pem::certified(&certificate, &key).unwrap();
            assert_eq!(expires_s(&found.cert[0]), Some(expected), "{year}");
        }
        let ca = authority.written(dir.path());
        let own = <CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_file(ca);
        assert_eq!(expires_s(&own.unwrap()), Some(67_090_118_400), "rcgen's year 4096");
        assert_eq!(expires_s(&CertificateDer::from(vec![0x30, 0])), None);
    }

    #[test]
    fn two_weeks_before_its_end_a_certificate_is_warned_of() {
        let day = 86_400;
        for (left, outlook) in [
            (15 * day, ExpiryState::Fine),
            (14 * day, ExpiryState::Soon),
            (1, ExpiryState::Soon),
            (0, ExpiryState::Past),
        ] {
            assert_eq!(ExpiryState::of(100 * day + left, 100 * day), outlook, "{left}");
        }
        assert_eq!(ExpiryState::of(1, 2), ExpiryState::Past);
    }
}
