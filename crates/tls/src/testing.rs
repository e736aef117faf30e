//! Authorities and certificates for tests.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// An authority of the tests' own.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Default for Authority {
    fn default() -> Authority {
        Authority::new()
    }
}

impl Authority {
    /// One that nothing trusts yet.
    #[must_use]
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Writes its certificate, and gives the file.
    pub fn written(&self, dir: &Path) -> PathBuf {
        written(dir, "ca.pem", &self.pem, 0o644)
    }

    /// Writes a certificate for `localhost` until that year and its key as `name.pem` and
    /// `name.key`.
    pub fn issue(&self, dir: &Path, name: &str, year: i32) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        (
            written(dir, &format!("{name}.pem"), &pem, 0o644),
            written(dir, &format!("{name}.key"), &key.serialize_pem(), 0o600),
        )
    }
}

/// Writes a file with these permissions, and gives its path.
pub fn written(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}
