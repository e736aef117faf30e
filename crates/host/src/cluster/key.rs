//! The key that the nodes of a cluster share: 256 random bits in a file readable by the owner only.
//! Every secret that must be the same on all nodes is derived from it, each for one use, so that
//! none reveals another.
//!
//! ```text
//! 64 hexadecimal digits, a line
//! ```

use crate::random;
use crate::setup::SetupError;
use ring::{aead, hkdf, hmac};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use wellspring_types::hex;
use zeroize::Zeroizing;

/// Longest file accepted, in bytes.
const MAX_FILE_BYTES: u64 = 1_024;
/// Separates derivations here from those that others make of the same bits.
const SALT: &[u8] = b"wellspring cluster key 1";

/// The purpose of a derivation. Never changes: derived secrets are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    TokenSecret,
    Visitors,
    Nodes,
    SealedLog,
    Fingerprint,
}

impl Use {
    fn label(self) -> &'static [u8] {
        match self {
            Use::TokenSecret => b"token secret",
            Use::Visitors => b"visitors",
            Use::Nodes => b"nodes",
            Use::SealedLog => b"sealed log",
            Use::Fingerprint => b"fingerprint",
        }
    }
}

/// Tells whether two nodes have the same key. Not secret: its 32 bits do not reveal the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyFingerprint(pub [u8; 4]);

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// The key that the nodes of a cluster share.
pub struct ClusterKey {
    bits: Zeroizing<[u8; 32]>,
    /// Signs the requests that nodes send each other.
    nodes: hmac::Key,
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey")
    }
}

impl ClusterKey {
    /// Reads the key of a file.
    ///
    /// # Errors
    /// A sentence: the file does not exist, is readable by others, or has unknown content.
    pub fn read(path: &Path) -> Result<ClusterKey, SetupError> {
        let shown = path.display();
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!(
                "the cluster key {shown} does not exist; copy it from another node, or create \
                 the first with `wellspring cluster key {shown}`"
            ),
            io::ErrorKind::InvalidData => malformed(path),
            _ => format!("cannot read the cluster key {shown}: {error}"),
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(format!(
                "other users can read the cluster key {shown}: chmod 600 it, and give all \
                 nodes a new one if they may have read it"
            )
            .into());
        }
        let mut text = Zeroizing::new(String::with_capacity(MAX_FILE_BYTES as usize));
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        let digits = text.strip_suffix('\n').unwrap_or(&text);
        let mut key = Zeroizing::new([0; 32]);
        let read = hex::read_into(digits, &mut *key);
        read.map(|()| ClusterKey::of(key)).ok_or_else(|| malformed(path).into())
    }

    /// Generates a key into a new file, durably and readable by the owner only.
    ///
    /// # Errors
    /// A sentence: the file exists already and is left unchanged, or it cannot be written.
    pub fn draw_to(path: &Path) -> Result<ClusterKey, SetupError> {
        let shown = path.display();
        let failed = |error: io::Error| format!("cannot write the cluster key {shown}: {error}");
        let key = Zeroizing::new(random::bytes().map_err(failed)?);
        let mut text = Zeroizing::new(String::with_capacity(65));
        hex::push(&mut text, &*key);
        text.push('\n');
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("the file {shown} already exists; a cluster key never overwrites a file")
            }
            _ => failed(error),
        })?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| sync_folder_of(path)) {
            // Half a key, or one that a power loss removes, is worse than none.
            let _ = fs::remove_file(path);
            return Err(failed(error).into());
        }
        Ok(ClusterKey::of(key))
    }

    /// The secret that signs tokens of a generation.
    pub fn token_secret(&self, generation: u64) -> Zeroizing<[u8; 32]> {
        self.derive(Use::TokenSecret, &generation.to_be_bytes())
    }

    /// The secret that hashes visitors of a day (UTC, counted from 1970).
    pub fn visitors(&self, day: u64) -> Zeroizing<[u8; 32]> {
        self.derive(Use::Visitors, &day.to_be_bytes())
    }

    /// The key that signs requests between nodes.
    pub(super) fn nodes(&self) -> &hmac::Key {
        &self.nodes
    }

    /// The key that seals entries of a log.
    pub(super) fn sealing(&self, log: &str) -> aead::LessSafeKey {
        let derived = self.derive(Use::SealedLog, log.as_bytes());
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, &*derived);
        aead::LessSafeKey::new(key.expect("32 bytes"))
    }

    /// A public fingerprint that tells keys apart.
    pub fn fingerprint(&self) -> KeyFingerprint {
        let derived = self.derive(Use::Fingerprint, b"");
        KeyFingerprint(*derived.first_chunk().expect("32 bytes"))
    }

    fn derive(&self, to: Use, context: &[u8]) -> Zeroizing<[u8; 32]> {
        derive(&self.bits, to, context)
    }

    fn of(bits: Zeroizing<[u8; 32]>) -> ClusterKey {
        let nodes = hmac::Key::new(hmac::HMAC_SHA256, &*derive(&bits, Use::Nodes, b""));
        ClusterKey { bits, nodes }
    }

    /// A public key for tests and fuzzing.
    #[cfg(any(test, feature = "testing"))]
    pub fn known(byte: u8) -> ClusterKey {
        ClusterKey::of(Zeroizing::new([byte; 32]))
    }
}

/// HKDF-SHA-256 (RFC 5869).
fn derive(bits: &[u8; 32], to: Use, context: &[u8]) -> Zeroizing<[u8; 32]> {
    let info = [to.label(), b"\0", context];
    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(bits);
    let mut derived = Zeroizing::new([0; 32]);
    let filled = prk.expand(&info, hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut *derived));
    filled.expect("as many bytes as the hash gives");
    derived
}

fn malformed(path: &Path) -> String {
    format!(
        "the cluster key {} is not a line of 64 hexadecimal digits; copy it again from another \
         node",
        path.display()
    )
}

/// Makes the file's own entry survive a power loss.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_drawn_once_and_read_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cluster.key");
        let missing = ClusterKey::read(&path).unwrap_err();
        assert!(
            missing.to_string().contains(&format!("wellspring cluster key {}", path.display())),
            "{missing}"
        );
        let drawn = ClusterKey::draw_to(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() == 65 && text.ends_with('\n'));
        let read = ClusterKey::read(&path).unwrap();
        assert_eq!(*read.bits, *drawn.bits);
        let again = ClusterKey::draw_to(&path).unwrap_err();
        assert!(again.to_string().contains("already"), "{again}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is left as it was");
        let nowhere = ClusterKey::draw_to(&dir.path().join("none").join("key")).unwrap_err();
        assert!(nowhere.to_string().contains("none"), "{nowhere}");
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(ClusterKey::read(&path).unwrap_err().to_string().contains("chmod 600"));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        ClusterKey::draw_to(&path).unwrap();
        let good = "ab".repeat(32);
        let two = format!("{good}\n{good}\n");
        let sign = format!("+{}\n", &good[1..]);
        for text in ["", "\n", "abab\n", &two, &sign, &"ab".repeat(5_000), "abab\0\n"] {
            fs::write(&path, text).unwrap();
            let error = ClusterKey::read(&path).unwrap_err();
            assert!(
                error.to_string().contains("64 hexadecimal digits")
                    && !error.to_string().contains("abab"),
                "{error}"
            );
        }
        fs::write(&path, [0xff, b'\n']).unwrap();
        assert!(ClusterKey::read(&path).unwrap_err().to_string().contains("64 hexadecimal digits"));
        assert!(ClusterKey::read(dir.path()).is_err(), "a folder");
        // Written by hand, perhaps without the final line end.
        for text in [good.clone(), format!("{}\n", good.to_uppercase())] {
            fs::write(&path, text).unwrap();
            let key = ClusterKey::read(&path).unwrap();
            assert_eq!(*key.bits, [0xab; 32]);
            assert_eq!(format!("{key:?}"), "ClusterKey");
        }
    }

    #[test]
    fn every_use_has_a_secret_of_its_own_and_none_ever_changes() {
        let key = ClusterKey::known(7);
        let all = [
            *key.token_secret(0),
            *key.token_secret(1),
            *key.visitors(0),
            *key.visitors(1),
            *key.derive(Use::Nodes, b""),
            *key.derive(Use::SealedLog, b"system"),
            *key.derive(Use::SealedLog, b"system.2"),
            *key.derive(Use::Fingerprint, b""),
            *ClusterKey::known(8).token_secret(0),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other != one), "{at}");
        }
        // Computed by another implementation: Python's hmac, as in RFC 5869.
        assert_eq!(key.fingerprint().to_string(), "3f6a2851");
        let mut digits = String::new();
        hex::push(&mut digits, &key.token_secret(3)[..8]);
        assert_eq!(digits, "cc15145953fc28be");
        assert_ne!(ClusterKey::known(8).fingerprint(), key.fingerprint());
    }
}
