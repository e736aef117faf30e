//! Secrets by name: the files of one folder, which definitions name but never contain.

use crate::document::{FieldFault, fault};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use wellspring_connectors::{Fault, StopCode};
use zeroize::Zeroizing;

/// Longest secret, in bytes.
const MAX_SECRET_BYTES: u64 = 16 << 10;

/// Checks the name of a secret: a file name in the folder, without a way out of it.
pub(crate) fn check_name(field: &str, name: &str) -> Result<String, FieldFault> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let ok = (1..=64).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('.');
    if ok {
        return Ok(name.to_owned());
    }
    fault(
        field,
        "must be the name of a file in the folder of secrets (--secrets DIR): 1 to 64 of letters, digits, '.', \
         '_' and '-'",
    )
}

/// The folder of secrets.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretFolder {
    dir: Option<PathBuf>,
}

impl SecretFolder {
    /// The secrets of a folder; `None`: there are none.
    pub(crate) fn new(dir: Option<PathBuf>) -> SecretFolder {
        SecretFolder { dir }
    }

    /// Reads a secret, without the trailing line end. Read each time, so that a changed file is
    /// used at the next start of a connector.
    ///
    /// # Errors
    /// It does not exist, is readable by others, or is not text.
    pub(crate) fn read(&self, name: &str) -> Result<Zeroizing<String>, Fault> {
        let refused = |why: String| Fault::stop(StopCode::Unusable, why);
        let Some(dir) = &self.dir else {
            return Err(refused(format!(
                "the secret {name} is required, but the server has no folder of secrets \
                 (--secrets DIR)"
            )));
        };
        let path = dir.join(name);
        let shown = path.display();
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => refused(format!("the secret {shown} does not exist")),
            _ => refused(format!("cannot read the secret {shown}: {error}")),
        };
        let file = File::open(&path).map_err(failed)?;
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(refused(format!("other users can read the secret {shown}: chmod 600 it")));
        }
        let mut text = Zeroizing::new(String::with_capacity(MAX_SECRET_BYTES as usize));
        file.take(MAX_SECRET_BYTES).read_to_string(&mut text).map_err(failed)?;
        let end = text.trim_end_matches(['\r', '\n']).len();
        if end == 0 {
            return Err(refused(format!("the secret {shown} is empty")));
        }
        Ok(Zeroizing::new(text[..end].to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    fn write(dir: &std::path::Path, name: &str, text: &str, mode: u32) {
        std::fs::write(dir.join(name), text).unwrap();
        std::fs::set_permissions(dir.join(name), Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_secret_is_its_files_text_without_the_line_end() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "kafka", "pass word\r\n", 0o600);
        write(dir.path(), "open", "x", 0o644);
        write(dir.path(), "empty", "\n", 0o600);
        let folder = SecretFolder::new(Some(dir.path().to_owned()));
        assert_eq!(folder.read("kafka").unwrap().as_str(), "pass word");
        let refused = |name: &str| folder.read(name).unwrap_err().to_string();
        assert!(refused("open").contains("chmod 600"), "{}", refused("open"));
        assert!(refused("empty").contains("is empty"));
        assert!(refused("none").contains("does not exist"));
        let none = SecretFolder::default().read("kafka").unwrap_err().to_string();
        assert!(none.contains("--secrets"), "{none}");
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ä"] {
            assert!(check_name("secret", name).is_err(), "{name:?}");
        }
        assert!(check_name("secret", "kafka-password.1").is_ok());
    }
}
