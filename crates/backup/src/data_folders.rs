//! Data folders of servers, in which no backup may be written, also not through symlinks.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folder of a log or of a server's logs that contains `path`, symlinks resolved. A server
/// treats every folder beside its logs as a log, and deletes a log together with its folder.
pub(crate) fn folder_of_logs(path: &Path) -> Option<PathBuf> {
    let is_log = |dir: &Path| dir.join("epoch").exists();
    let holds_logs = |dir: &Path| ["main", "system"].iter().any(|log| is_log(&dir.join(log)));
    let real = real_path(path)?;
    real.ancestors().find(|dir| is_log(dir) || holds_logs(dir)).map(Path::to_owned)
}

/// Whether one folder contains another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nesting {
    /// Neither holds the other.
    Apart,
    /// They are the same folder.
    Same,
    /// The first is inside the second.
    Inside,
    /// The first contains the second.
    Contains,
}

impl Nesting {
    /// Whether `place` equals, contains or is inside `folder`, symlinks resolved. Neither needs to
    /// exist.
    #[must_use]
    pub fn of(place: &Path, folder: &Path) -> Nesting {
        let (Some(place), Some(folder)) = (real_path(place), real_path(folder)) else {
            return Nesting::Apart;
        };
        match (place.starts_with(&folder), folder.starts_with(&place)) {
            (true, true) => Nesting::Same,
            (true, false) => Nesting::Inside,
            (false, true) => Nesting::Contains,
            (false, false) => Nesting::Apart,
        }
    }
}

/// The absolute path with symlinks resolved in the part that exists.
fn real_path(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let resolved = |ancestor: &Path| Some((fs::canonicalize(ancestor).ok()?, ancestor.to_owned()));
    let (mut real, ancestor) = path.ancestors().find_map(resolved)?;
    for part in path.strip_prefix(ancestor).ok()?.components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
    }
    Some(real)
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
        for outside in ["", "data", "data/backups", "other", "data/none/../../other"] {
            assert_eq!(folder_of_logs(&dir.path().join(outside)), None, "{outside}");
        }
    }

    #[test]
    fn a_folder_is_inside_another_whatever_links_lead_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("real/data")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        symlink(at("real/data"), at("data")).unwrap();
        for (place, nesting) in [
            ("real/data", Nesting::Same),
            ("link/data/", Nesting::Same),
            ("data", Nesting::Same),
            ("link/data/none/at/all", Nesting::Inside),
            ("link/data/none/..", Nesting::Same),
            ("link", Nesting::Contains),
            ("", Nesting::Contains),
            ("real/data-backups", Nesting::Apart),
            ("link/none/../backups", Nesting::Apart),
            ("none", Nesting::Apart),
        ] {
            for folder in ["data", "real/data", "link/data"] {
                assert_eq!(Nesting::of(&at(place), &at(folder)), nesting, "{place} {folder}");
            }
        }
        assert_eq!(Nesting::of(&at("none/x"), &at("none")), Nesting::Inside);
        assert_eq!(Nesting::of(&at("none"), &at("none/x")), Nesting::Contains);
    }
}
