//! PEM files: certificates and private keys, for the server and for the tools.
//!
//! What a key file holds is never in a message: about it there are only sentences written here.

use crate::provider::provider;
use rustls::RootCertStore;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Largest file that is read: the authorities of a whole operating system are a quarter of it.
const MAX_BYTES: u64 = 1 << 20;

/// Why a file is of no use for TLS.
#[derive(Debug)]
pub enum TlsFileError {
    /// It cannot be read.
    Unreadable(PathBuf, io::Error),
    /// It is larger than 1 MiB.
    TooLarge(PathBuf),
    /// It holds no certificate.
    NoCertificate(PathBuf),
    /// It holds damaged PEM.
    Damaged(PathBuf),
    /// It holds a certificate that can be no authority.
    NoAuthority(PathBuf, rustls::Error),
    /// The certificate cannot be used.
    Certificate(PathBuf, rustls::CertificateError),
    /// It is a private key that others can read; its mode.
    OpenToOthers(PathBuf, u32),
    /// It is a private key under a password.
    Encrypted(PathBuf),
    /// It holds no private key.
    NoKey(PathBuf),
    /// Its private key is of a kind that cannot be used.
    Key(PathBuf),
    /// Certificate and key do not belong together.
    Unlike {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

impl fmt::Display for TlsFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => {
                write!(f, "{} cannot be read: {error}", path.display())
            }
            Self::TooLarge(path) => {
                write!(f, "{} is larger than {MAX_BYTES} bytes", path.display())
            }
            Self::NoCertificate(path) => {
                write!(f, "{} holds no certificate in PEM", path.display())
            }
            Self::Damaged(path) => write!(f, "{} holds damaged PEM", path.display()),
            Self::NoAuthority(path, why) => {
                write!(f, "{} holds a certificate that can be no authority: {why}", path.display())
            }
            Self::Certificate(path, why) => {
                write!(f, "the certificate {} cannot be used: {why}", path.display())
            }
            Self::OpenToOthers(path, mode) => {
                let name = path.display();
                write!(
                    f,
                    "the private key {name} is open to others (mode {mode:04o}); make it its \
                     owner's alone: chmod 600 {name}"
                )
            }
            Self::Encrypted(path) => {
                let name = path.display();
                write!(
                    f,
                    "the private key {name} is encrypted; give it decrypted: openssl pkey -in {name}"
                )
            }
            Self::NoKey(path) => write!(
                f,
                "{} holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1)",
                path.display()
            ),
            Self::Key(path) => write!(
                f,
                "the private key {} cannot be used: it must be RSA (2048 to 8192 bits), ECDSA \
                 (P-256, P-384) or Ed25519",
                path.display()
            ),
            Self::Unlike { certificate, key } => write!(
                f,
                "the private key {} does not belong to the certificate {} (which must be the \
                 first in its file)",
                key.display(),
                certificate.display()
            ),
        }
    }
}

impl std::error::Error for TlsFileError {}

/// A certificate, the chain behind it, and its private key.
///
/// # Errors
/// [`TlsFileError`]
pub fn certified(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsFileError> {
    let (chain, secret) = (certificates(certificate)?, private_key(key)?);
    CertifiedKey::from_der(chain, secret, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsFileError::Unlike { certificate: certificate.into(), key: key.into() }
        }
        rustls::Error::InvalidCertificate(why) => {
            TlsFileError::Certificate(certificate.into(), why)
        }
        _ => TlsFileError::Key(key.into()),
    })
}

/// The authorities of a file.
///
/// # Errors
/// [`TlsFileError`]
pub fn roots(path: &Path) -> Result<RootCertStore, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| TlsFileError::NoAuthority(path.into(), why))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let (bytes, _) = read(path)?;
    let found: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsFileError::NoCertificate(path.into())),
        // Parser's errors quote lines, and this may be a key given by mistake.
        Err(_) => Err(TlsFileError::Damaged(path.into())),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let (bytes, metadata) = read(path)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(TlsFileError::OpenToOthers(path.into(), mode));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        let sealed = bytes.windows(9).any(|word| word == b"ENCRYPTED");
        let error = if sealed { TlsFileError::Encrypted } else { TlsFileError::NoKey };
        error(path.into())
    })
}

/// A whole file, and what the system says of the very file that was read.
fn read(path: &Path) -> Result<(Zeroizing<Vec<u8>>, Metadata), TlsFileError> {
    let failed = |error| TlsFileError::Unreadable(path.into(), error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.len() > MAX_BYTES {
        return Err(TlsFileError::TooLarge(path.into()));
    }
    // Room for all of it at once: no copy of a key is left behind by growing.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES.min(metadata.len() + 1) as usize));
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, metadata))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Authority, written};

    #[test]
    fn a_pair_is_taken_and_what_is_no_pair_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let (certificate, key) = authority.issue(dir.path(), "a", 2100);
        let (other, other_key) = authority.issue(dir.path(), "b", 2100);
        assert_eq!(certified(&certificate, &key).unwrap().cert.len(), 1);
        let refused =
            |certificate: &Path, key: &Path| certified(certificate, key).unwrap_err().to_string();
        let unlike = refused(&certificate, &other_key);
        assert!(unlike.contains("b.key does not belong to the certificate"), "{unlike}");
        assert!(refused(&other, &certificate).contains("open to others"));
        std::fs::set_permissions(&certificate, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(refused(&other, &certificate).contains("holds no private key"));
        assert!(refused(&key, &key).contains("holds no certificate"));
        assert!(refused(&dir.path().join("none"), &key).contains("none cannot be read"));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_and_nothing_of_a_key_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = Authority::new().issue(dir.path(), "a", 2100);
        let text = std::fs::read_to_string(&key).unwrap();
        for mode in [0o640, 0o604, 0o660] {
            let open = written(dir.path(), "open.key", &text, mode);
            let refusal = certified(&certificate, &open).unwrap_err().to_string();
            assert!(refusal.contains(&format!("mode {mode:04o}")), "{refusal}");
            assert!(refusal.contains("chmod 600"), "{refusal}");
        }
        let secret = text.lines().nth(1).unwrap();
        for (damaged, word) in [
            (text.replace("-----END", "-----KIND"), "no private key"),
            (text.replace(secret, &format!("{secret}!")), "no private key"),
            (text.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "openssl pkey"),
            (text.replace(&secret[10..40], &"A".repeat(30)), "cannot be used"),
        ] {
            let path = written(dir.path(), "damaged.key", &damaged, 0o600);
            let refusal = certified(&certificate, &path).unwrap_err().to_string();
            assert!(refusal.contains(word) && refusal.contains("damaged.key"), "{refusal}");
            assert!(!refusal.contains(&secret[..8]), "{refusal}");
        }
    }
}
