//! PEM files: certificates and private keys, for the server and for the tools.
//!
//! What a key file holds is never in a message: about it there are only sentences written here.

use crate::provider::provider;
use rustls::RootCertStore;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use zeroize::Zeroizing;

/// Largest file that is read: the authorities of a whole operating system are a quarter of it.
const MAX_BYTES: u64 = 1 << 20;

/// A certificate, the chain behind it, and its private key.
///
/// # Errors
/// A sentence that names the file at fault: it cannot be read, holds something else, the key is
/// open to others, or the two do not belong together.
pub fn certified(certificate: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let (chain, secret) = (certificates(certificate)?, private_key(key)?);
    let (certificate, key) = (certificate.display(), key.display());
    CertifiedKey::from_der(chain, secret, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => format!(
            "the private key {key} does not belong to the certificate {certificate} (which must be \
             the first in its file)"
        ),
        rustls::Error::InvalidCertificate(why) => {
            format!("the certificate {certificate} cannot be used: {why}")
        }
        _ => format!(
            "the private key {key} cannot be used: it must be RSA (2048 to 8192 bits), ECDSA \
             (P-256, P-384) or Ed25519"
        ),
    })
}

/// The authorities of a file.
///
/// # Errors
/// A sentence that names the file.
pub fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| {
            format!("{} holds a certificate that can be no authority: {why}", path.display())
        })?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let (bytes, _) = read(path)?;
    let found: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("{} holds no certificate in PEM", path.display())),
        // Parser's errors quote lines, and this may be a key given by mistake.
        Err(_) => Err(format!("{} holds damaged PEM", path.display())),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let (bytes, metadata) = read(path)?;
    let name = path.display();
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "the private key {name} is open to others (mode {mode:04o}); make it its owner's alone: \
             chmod 600 {name}"
        ));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        let sealed = bytes.windows(9).any(|word| word == b"ENCRYPTED");
        if sealed {
            format!(
                "the private key {name} is encrypted; give it decrypted: openssl pkey -in {name}"
            )
        } else {
            format!("{name} holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1)")
        }
    })
}

/// A whole file, and what the system says of the very file that was read.
fn read(path: &Path) -> Result<(Zeroizing<Vec<u8>>, Metadata), String> {
    let failed = |error| format!("{} cannot be read: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.len() > MAX_BYTES {
        return Err(format!("{} is larger than {MAX_BYTES} bytes", path.display()));
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
        let refused = |certificate: &Path, key: &Path| certified(certificate, key).unwrap_err();
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
            let refusal = certified(&certificate, &open).unwrap_err();
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
            let refusal = certified(&certificate, &path).unwrap_err();
            assert!(refusal.contains(word) && refusal.contains("damaged.key"), "{refusal}");
            assert!(!refusal.contains(&secret[..8]), "{refusal}");
        }
    }
}
