//! `wellspring mend` where the folder and the backups do not simply fit: other courses of the same
//! log, other logs in one place, interrupted runs, damage that no backup can mend. What it puts
//! together is one course of events, and no history ever has two events at one position.

use crate::disk::copy_folder;
use crate::missing_end::{SMALL, append, base_of, files, head_of, history};
use crate::program::told;
use crate::server::Server;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A data folder and a place of backups.
struct Site {
    dir: TempDir,
    data: PathBuf,
    place: PathBuf,
}

impl Site {
    fn new() -> Site {
        let dir = tempfile::tempdir().unwrap();
        let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
        Site { dir, data, place }
    }

    /// Another data folder beside it, with the same place of backups.
    fn beside(&self, name: &str) -> (PathBuf, &Path) {
        (self.dir.path().join(name), &self.place)
    }

    /// Appends to the log, and takes a backup or not; returns head and history.
    fn grown(&self, events: u64, backup: bool) -> (u64, String) {
        grown(&self.data, events, backup.then_some(&*self.place))
    }

    fn mend(&self, more: &[&str]) -> (Option<i32>, String) {
        let words = ["mend", "--from", self.place.to_str().unwrap(), "--data"];
        told(&[&words[..], &[self.data.to_str().unwrap()], more].concat())
    }

    fn mended(&self, more: &[&str]) -> String {
        let (code, said) = self.mend(more);
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// Mending is refused with these words, and no file changes.
    fn refused(&self, more: &[&str], words: &str) {
        let before = contents(&self.data);
        let (code, said) = self.mend(more);
        assert!(code != Some(0) && said.contains(words), "{words}: {code:?} {said}");
        assert_eq!(contents(&self.data), before, "{said}");
    }

    /// Opens the log, which has to be sound; returns head and history.
    fn opened(&self) -> (u64, String) {
        let (code, said) = told(&["verify", "--data", self.data.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{said}");
        self.grown(0, false)
    }

    fn remove(&self, suffix: &str) {
        files(&self.data, suffix).iter().for_each(|path| fs::remove_file(path).unwrap());
    }

    /// The newest backup.
    fn newest(&self) -> String {
        let (code, said) = told(&["backup", "list", "--from", self.place.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{said}");
        said.lines().last().unwrap().split(' ').next().unwrap().to_owned()
    }
}

fn grown(data: &Path, events: u64, place: Option<&Path>) -> (u64, String) {
    grown_with(SMALL, data, events, place)
}

fn grown_with(flags: &[&str], data: &Path, events: u64, place: Option<&Path>) -> (u64, String) {
    let mut server = Server::start_alone(None, &[], data, flags);
    append(&server, events);
    if let Some(place) = place {
        let to = place.to_str().unwrap();
        let (code, said) = told(&["backup", "--url", &server.url(), "--to", to]);
        assert_eq!(code, Some(0), "{said}");
    }
    let history = history(&server).as_str().unwrap().to_owned();
    let found = (head_of(&server), history);
    assert!(server.terminate().success());
    found
}

/// The files of the log main with their contents.
fn contents(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(data.join("logs/main")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut found: Vec<_> = paths.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
    found.sort();
    found
}

fn flip(path: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// Offset and length of the last batch of the log.
fn last_batch(data: &Path) -> (u64, u64) {
    let (code, said) = told(&["inspect", "--batches", "--data", data.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    let line = said.lines().rfind(|line| line.contains(".seg\t")).unwrap();
    let numbers: Vec<u64> = line.split('\t').skip(1).map(|n| n.parse().unwrap()).collect();
    (numbers[0], numbers[1])
}

#[test]
fn a_folder_that_was_put_back_is_mended_to_the_end_of_the_backup() {
    for (flags, in_the_middle) in [(SMALL, false), (SMALL, true), (&[][..], false), (&[], true)] {
        let site = Site::new();
        grown_with(flags, &site.data, 1_000, None);
        let (snapshot, place) = site.beside("snapshot");
        copy_folder(&site.data, &snapshot);
        let (head, before) = grown_with(flags, &site.data, 3_000, Some(place));
        fs::remove_dir_all(&site.data).unwrap();
        copy_folder(&snapshot, &site.data);
        if in_the_middle {
            let (offset, bytes) = last_batch(&site.data);
            let last = files(&site.data, "seg").pop().unwrap();
            File::options().write(true).open(last).unwrap().set_len(offset + bytes / 2).unwrap();
        }
        let said = site.mended(&[]);
        assert!(said.contains("what was recorded after the backup"), "{said}");
        let (mended_head, mended) = site.opened();
        assert!(mended_head == head && mended != before, "{mended_head} {said}");
    }
}

#[test]
fn a_first_segment_is_put_back_under_a_history_that_nothing_had() {
    let site = Site::new();
    let (_, first) = site.grown(1_500, true);
    fs::remove_dir_all(&site.data).unwrap();
    let [place, data] = [&site.place, &site.data].map(|path| path.to_str().unwrap());
    let (code, said) = told(&["restore", "--from", place, "--data", data]);
    assert_eq!(code, Some(0), "{said}");
    let (head, second) = site.grown(1_500, false);
    fs::remove_file(&files(&site.data, "seg")[0]).unwrap();
    // Its index tells the history, which no backup has.
    site.refused(&[], &format!("has the history {second}"));
    site.remove("idx");
    let said = site.mended(&[]);
    assert!(said.contains("nothing told its history"), "{said}");
    let (mended_head, mended) = site.opened();
    assert_eq!(mended_head, head);
    assert!(mended != first && mended != second, "{mended}");
}

#[test]
fn a_damaged_header_of_the_first_segment_is_mended() {
    let site = Site::new();
    let before = site.grown(2_000, true);
    flip(&files(&site.data, "seg")[0], 9);
    site.mended(&[]);
    assert_eq!(site.opened(), before, "its index tells the history");
}

#[test]
fn a_backup_of_another_course_mends_nothing_and_one_of_the_same_is_found() {
    let site = Site::new();
    site.grown(1_000, false);
    let (snapshot, _) = site.beside("snapshot");
    copy_folder(&site.data, &snapshot);
    site.grown(3_000, true);
    fs::remove_dir_all(&site.data).unwrap();
    copy_folder(&snapshot, &site.data);
    // Unnoticed, with events of the same size.
    let before = site.grown(3_500, false);
    let segments = files(&site.data, "seg");
    let fork = segments.iter().rposition(|path| base_of(path) <= 2_500).unwrap();
    flip(&segments[fork], 5_000);
    site.refused(&[], "different events at position");
    fs::remove_file(&segments[fork]).unwrap();
    site.refused(&[], "different events at position");
    // A backup of the course that it took.
    let (copy, place) = site.beside("copy");
    fs::remove_dir_all(&site.data).unwrap();
    copy_folder(&snapshot, &site.data);
    grown(&site.data, 2_000, Some(place));
    site.grown(3_500, false);
    copy_folder(&site.data, &copy);
    let segments = files(&site.data, "seg");
    let fork = segments.iter().rposition(|path| base_of(path) <= 2_500).unwrap();
    flip(&segments[fork], 5_000);
    let newest = site.newest();
    assert!(site.mended(&[]).contains(&newest), "the other backup reaches further");
    assert_eq!(site.opened().1, before.1);
    let kept = |name: &Path| !name.to_str().unwrap().contains(".damaged");
    let segments_of = |data: &Path| {
        let all = contents(data).into_iter().filter(|(path, _)| kept(path));
        let all = all.filter(|(path, _)| path.extension().is_some_and(|end| end == "seg"));
        all.map(|(path, bytes)| (base_of(&path), bytes)).collect::<Vec<_>>()
    };
    let (mended, whole) = (segments_of(&site.data), segments_of(&copy));
    // The last segment was opened once more.
    assert!(mended[..mended.len() - 1] == whole[..whole.len() - 1], "byte for byte");
}

#[test]
fn a_place_with_backups_of_two_servers_mends_each_log_with_its_own() {
    let site = Site::new();
    let before = site.grown(2_000, true);
    let own = site.newest();
    let (other, place) = site.beside("other");
    grown(&other, 3_000, Some(place));
    let others = site.newest();
    assert_ne!(own, others);
    let (sound, _) = site.beside("sound");
    copy_folder(&site.data, &sound);
    let again = || {
        fs::remove_dir_all(&site.data).unwrap();
        copy_folder(&sound, &site.data);
    };
    // The first one is missing: with its index, and without.
    fs::remove_file(&files(&site.data, "seg")[0]).unwrap();
    site.mended(&[]);
    assert_eq!(site.opened(), before);
    again();
    fs::remove_file(&files(&site.data, "seg")[0]).unwrap();
    site.remove("idx");
    site.refused(&[], "name a backup with --backup");
    site.refused(&["--backup", &others], "different events");
    site.mended(&["--backup", &own]);
    assert_eq!(site.opened().0, before.0);
    // All are missing.
    again();
    site.remove("seg");
    site.mended(&[]);
    let (head, history) = site.opened();
    assert!(head == before.0 && history != before.1, "its indexes told which log it was");
    again();
    site.remove("seg");
    site.remove("idx");
    site.refused(&[], "name a backup with --backup");
    site.mended(&["--backup", &own]);
    assert_eq!(site.opened().0, before.0);
}

#[test]
fn a_mark_that_an_interrupted_run_has_left_leads_to_another_history() {
    let site = Site::new();
    let (head, before) = site.grown(2_000, true);
    // Everything was put back; the run was killed before the log got its history.
    File::create(site.data.join(format!("logs/main/{:020}.idx", head + 1))).unwrap();
    let data = site.data.to_str().unwrap();
    let (code, said) = told(&["serve", "--listen", "127.0.0.1:0", "--data", data]);
    assert_eq!(code, Some(1), "{said}");
    site.mended(&[]);
    let (mended_head, mended) = site.opened();
    assert!(mended_head == head && mended != before);
    // Or before the mark was removed: no backup has that history, and none is needed.
    File::create(site.data.join(format!("logs/main/{:020}.idx", head + 1))).unwrap();
    site.mended(&[]);
    assert_eq!(site.opened().0, head);
}

#[test]
fn a_damaged_log_gets_no_other_history_under_which_nothing_could_mend_it() {
    let site = Site::new();
    let before = site.grown(3_000, true);
    let segments = files(&site.data, "seg");
    flip(&segments[2], 5_000);
    let data = site.data.to_str().unwrap();
    let (code, said) = told(&["restore", "--rolled-back", "--data", data, "--log", "main"]);
    assert_eq!(code, Some(1), "{said}");
    site.mended(&[]);
    assert_eq!(site.opened(), before);
    let (code, said) = told(&["restore", "--rolled-back", "--data", data, "--log", "main"]);
    assert_eq!(code, Some(0), "{said}");
    assert_ne!(site.opened().1, before.1);
}

/// The last write before a crash was never acknowledged; it keeps no backup from mending what comes
/// before it.
#[test]
fn rot_before_a_torn_write_is_mended() {
    let site = Site::new();
    let (head, before) = site.grown(500, true);
    site.grown(500, false);
    let (offset, bytes) = last_batch(&site.data);
    let last = files(&site.data, "seg").pop().unwrap();
    File::options().write(true).open(&last).unwrap().set_len(offset + bytes / 2).unwrap();
    flip(&files(&site.data, "seg")[0], 5_000);
    site.mended(&[]);
    assert_eq!(site.opened(), (head, before));
}

#[test]
fn a_log_whose_damage_no_backup_can_mend_ends_before_it_if_told_to() {
    let site = Site::new();
    let (backed_up, before) = site.grown(1_000, true);
    let (head, _) = site.grown(3_000, false);
    let segments = files(&site.data, "seg");
    let damaged = &segments[segments.len() - 3];
    flip(damaged, 5_000);
    site.refused(&[], "--cut");
    let data = site.data.to_str().unwrap();
    let (code, said) = told(&["mend", "--cut", "--data", data]);
    assert_eq!(code, Some(0), "{said}");
    let (cut_at, history) = site.opened();
    let base = base_of(damaged);
    assert!((base - 1..head).contains(&cut_at) && cut_at > backed_up, "{cut_at}: {said}");
    assert_ne!(history, before);
    for path in &segments[segments.len() - 3..] {
        assert!(path.with_extension("seg.damaged").exists(), "{}: {said}", path.display());
    }
    assert!(said.contains(".seg.damaged") && said.contains("another-history"), "{said}");
    let again = site.grown(500, false);
    assert_eq!(again, (cut_at + 500, history));
    // One flipped bit after the last batch cannot be told from rot.
    let (offset, bytes) = last_batch(&site.data);
    flip(&files(&site.data, "seg").pop().unwrap(), offset + bytes);
    let (code, said) = told(&["mend", "--cut", "--data", data]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(site.opened().0, again.0);
    let (code, said) = told(&["mend", "--cut", "--data", data]);
    assert!(code == Some(0) && said.contains("nothing to mend"), "{said}");
    // Nothing comes before the damage.
    flip(&files(&site.data, "seg")[0], 3);
    let (code, said) = told(&["mend", "--cut", "--data", data]);
    assert!(code == Some(64) && said.contains("restore a backup"), "{said}");
    let (code, said) = told(&["mend", "--data", data]);
    assert!(code == Some(64) && said.contains("--from"), "{said}");
}

/// A place that is shared tells of the end of a log, whichever backup is its newest.
#[test]
fn the_ends_of_logs_are_compared_with_all_backups() {
    let site = Site::new();
    site.grown(1_000, false);
    let (snapshot, _) = site.beside("snapshot");
    copy_folder(&site.data, &snapshot);
    site.grown(1_000, true);
    let (other, place) = site.beside("other");
    grown(&other, 500, Some(place));
    fs::remove_dir_all(&site.data).unwrap();
    copy_folder(&snapshot, &site.data);
    let [place, data] = [&site.place, &site.data].map(|path| path.to_str().unwrap());
    let (code, said) = told(&["verify", "--from", place, "--data", data]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ends at position 1000") && said.contains("up to 2000"), "{said}");
}

/// Lost blocks read as zeros. What the file held after the backup is unknown.
#[test]
fn a_last_segment_that_reads_as_zeros_is_mended_under_another_history() {
    let site = Site::new();
    let (head, before) = grown_with(&[], &site.data, 1_000, Some(&site.place));
    let (later, _) = grown_with(&[], &site.data, 500, None);
    let last = files(&site.data, "seg").pop().unwrap();
    let bytes = fs::metadata(&last).unwrap().len();
    fs::write(&last, vec![0; bytes as usize]).unwrap();
    let said = site.mended(&[]);
    assert!(said.contains("what was recorded after the backup"), "{said}");
    let (mended_head, mended) = site.opened();
    assert!((head..later).contains(&mended_head) && mended != before, "{mended_head} {said}");
    // An intact end after the damage tells that nothing is lost.
    let (head, before) = grown_with(&[], &site.data, 500, Some(&site.place));
    flip(&files(&site.data, "seg").pop().unwrap(), 2_000);
    site.mended(&[]);
    assert_eq!(site.opened(), (head, before));
}

/// It was misplaced, by a tool or by the file system: all its checksums are right.
#[test]
fn a_file_that_holds_another_segment_is_damage_that_a_backup_mends() {
    for end in [false, true] {
        let site = Site::new();
        let (head, before) = site.grown(3_000, true);
        let segments = files(&site.data, "seg");
        let to = if end { segments.len() - 1 } else { 2 };
        fs::copy(&segments[1], &segments[to]).unwrap();
        let data = site.data.to_str().unwrap();
        let (code, said) = told(&["verify", "--data", data]);
        assert!(code == Some(1) && said.contains("disagree"), "{said}");
        site.mended(&[]);
        let (mended_head, mended) = site.opened();
        assert_eq!((mended_head, mended != before), (head, end));
    }
}

fn cut(site: &Site) -> (Option<i32>, String) {
    told(&["mend", "--cut", "--data", site.data.to_str().unwrap()])
}

#[test]
fn a_log_is_cut_before_a_file_that_is_no_segment_or_another_one() {
    for fault in ["empty", "short", "misplaced", "overlapping"] {
        let site = Site::new();
        site.grown(3_000, false);
        let segments = files(&site.data, "seg");
        let length = |bytes| {
            File::options().write(true).open(&segments[2]).unwrap().set_len(bytes).unwrap();
        };
        match fault {
            "empty" => length(0),
            "short" => length(40),
            "misplaced" => drop(fs::copy(&segments[1], &segments[2]).unwrap()),
            _ => {
                let in_between = format!("{:020}.seg", base_of(&segments[2]) - 1);
                fs::copy(&segments[1], segments[1].with_file_name(in_between)).unwrap();
            }
        }
        let (code, said) = cut(&site);
        assert_eq!(code, Some(0), "{fault}: {said}");
        assert_eq!(site.opened().0, base_of(&segments[2]) - 1, "{fault}: {said}");
    }
}

#[test]
fn a_log_that_has_lost_its_end_is_not_called_whole_by_a_cut() {
    let site = Site::new();
    site.grown(3_000, false);
    fs::remove_file(files(&site.data, "seg").pop().unwrap()).unwrap();
    let before = contents(&site.data);
    let (code, said) = cut(&site);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("missing") && said.contains("restore --rolled-back"), "{said}");
    assert_eq!(contents(&site.data), before);
}
