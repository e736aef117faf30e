//! Folders that only their owner may access.

use std::fs;
use std::path::Path;
use wellspring_log::storage::create_folder;

/// Creates a folder that only its owner may access, durably, whatever the umask and its parent. An
/// existing folder of an earlier version may be open to others.
pub(crate) fn keep_private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    create_folder(dir)?;
    if dir.metadata()?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}
