//! Folders that only their owner may look into.

use std::fs;
use std::path::Path;
use wellspring_log::storage::create_folder;

/// A folder that only its owner may look into, made durable if it is not there: whatever the mask
/// and the folder that it lies in. Others may have been let into one of an earlier version.
pub(crate) fn keep_private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    create_folder(dir)?;
    if dir.metadata()?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}
