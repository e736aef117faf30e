//! Folders that a server keeps its logs in, which nothing else may be written to.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a log, or of a server's logs, that a path leads into, through links or not. A
/// server takes every folder beside its logs for a log, and deletes what is in the folder of one
/// with it.
pub(crate) fn folder_of_logs(path: &Path) -> Option<PathBuf> {
    let is_log = |dir: &Path| dir.join("epoch").exists();
    let holds_logs = |dir: &Path| ["main", "system"].iter().any(|log| is_log(&dir.join(log)));
    let path = std::path::absolute(path).ok()?;
    // What does not exist yet leads nowhere else.
    let real = path.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok())?;
    real.ancestors().find(|dir| is_log(dir) || holds_logs(dir)).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_folders_that_do_not_exist_yet_do_not_hide_where_a_path_leads() {
        let dir = tempfile::tempdir().unwrap();
        let logs = fs::canonicalize(dir.path()).unwrap().join("data/logs");
        fs::create_dir_all(logs.join("main")).unwrap();
        fs::write(logs.join("main/epoch"), b"").unwrap();
        fs::create_dir(logs.join("new")).unwrap();
        symlink(logs.join("new"), dir.path().join("link")).unwrap();
        for inside in ["data/logs", "data/logs/new", "data/logs/none/at/all", "link", "link/x"] {
            assert_eq!(folder_of_logs(&dir.path().join(inside)).as_ref(), Some(&logs), "{inside}");
        }
        let log = logs.join("main");
        assert_eq!(folder_of_logs(&log.join("sub")), Some(log));
        for outside in ["", "data", "data/backups", "other"] {
            assert_eq!(folder_of_logs(&dir.path().join(outside)), None, "{outside}");
        }
    }
}
