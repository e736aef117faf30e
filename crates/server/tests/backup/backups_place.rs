//! The place of backups: a disk that is not mounted, several servers in one place, another process
//! that writes to it, and the data folder.

use crate::backups::{SMALL, append, done, figure, head, refused, shown};
use crate::server::Server;
use std::fs::{self, File};
use std::path::Path;

const FINISHED: &str = "wellspring_backups_total{outcome=\"finished\"}";
const FAILED: &str = "wellspring_backups_total{outcome=\"failed\"}";
const NEWEST: &str = "wellspring_backup_last_success_timestamp_seconds";

/// The names of the backups in a place.
fn names(place: &Path) -> Vec<String> {
    let list = done(&["backup", "list", "--from", shown(place)]);
    list.lines().skip(1).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn a_disk_that_is_not_mounted_is_no_place_for_backups() {
    let dir = crate::disk::on_disk();
    let [data, place, away] = ["data", "place", "away"].map(|name| dir.path().join(name));
    let flags = [SMALL, &["--backup-to", shown(&place)]].concat();
    let server = Server::start_in(&data, &flags);
    append(&mut server.client(), 1);
    figure(&mut server.client(), FINISHED, |count| count >= 1.0);
    drop(server);
    fs::rename(&place, &away).unwrap();
    // With the folder that the mount point is, and without it.
    for round in 0..2 {
        let server = Server::start_in(&data, &flags);
        let mut client = server.client();
        figure(&mut client, FAILED, |count| count >= 1.0);
        assert_eq!(figure(&mut client, NEWEST, |_| true), 0.0);
        let remedy = format!("`wellspring backup --to {}`", shown(&place));
        server.logged(&["a scheduled backup failed", "mounted there", &remedy, "retry_in_s"]);
        append(&mut client, 1);
        match round {
            0 => fs::create_dir(&place).unwrap(),
            _ => assert_eq!(fs::read_dir(&place).unwrap().count(), 0),
        }
    }
    // On purpose.
    let server = Server::start_in(&data, SMALL);
    done(&["backup", "--url", &server.url(), "--to", shown(&place)]);
    drop(server);
    let server = Server::start_in(&data, &flags);
    figure(&mut server.client(), NEWEST, |at| at > 1.6e9);
    assert_eq!(figure(&mut server.client(), FAILED, |_| true), 0.0);
}

#[test]
fn a_restore_never_guesses_whose_backups_are_wanted() {
    let dir = crate::disk::on_disk();
    let [place, to] = ["place", "to"].map(|name| dir.path().join(name));
    let (one, other) = (Server::start_with(SMALL), Server::start_with(SMALL));
    let backup = |server: &Server| done(&["backup", "--url", &server.url(), "--to", shown(&place)]);
    append(&mut one.client(), 1);
    backup(&one);
    append(&mut one.client(), 1);
    backup(&one);
    let restore = ["restore", "--from", shown(&place), "--data", shown(&to)];
    done(&restore);
    fs::remove_dir_all(&to).unwrap();
    backup(&other);
    let names = names(&place);
    let said = refused(64, &restore);
    for part in [
        "has backups of 2 servers",
        "--backup",
        &format!("{}, the newest of 2: main 4", names[1]),
        &format!("{}, the newest of 1: main 0", names[2]),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!to.exists(), "nothing is made");
    // The list tells them apart.
    let list = done(&["backup", "list", "--from", shown(&place)]);
    let history = |line: usize| list.lines().nth(line).unwrap().rsplit("  ").nth(1).unwrap();
    assert_eq!(history(1), history(2), "{list}");
    assert_ne!(history(1), history(3), "{list}");
    done(&[&restore[..], &["--backup", &names[1]]].concat());
    assert_eq!(head(&mut Server::start_in(&to, SMALL).client()), 4);
}

#[test]
fn a_place_that_another_process_writes_to_is_to_be_tried_again() {
    let dir = crate::disk::on_disk();
    let place = dir.path().join("place");
    let server = Server::start_with(SMALL);
    let to_place = ["backup", "--url", &server.url(), "--to", shown(&place)];
    done(&to_place);
    let lock = File::options().write(true).open(place.join("LOCK")).unwrap();
    lock.lock().unwrap();
    let name = names(&place).remove(0);
    for words in [&to_place[..], &["backup", "remove", "--from", shown(&place), &name]] {
        let said = refused(69, words);
        assert!(said.contains("wait for it"), "{said}");
    }
    drop(lock);
    done(&to_place);
}

#[test]
fn a_server_does_not_start_with_its_backups_among_its_data() {
    let dir = crate::disk::on_disk();
    let data = dir.path().join("data");
    for (place, fault) in [
        (data.clone(), "is the data folder"),
        (data.join("backups"), "is in the data folder"),
        (dir.path().to_owned(), "holds the data folder"),
    ] {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data", shown(&data)];
        let said = refused(1, &[&serve[..], &["--backup-to", shown(&place)]].concat());
        assert!(said.contains("backup_to ") && said.contains(fault), "{said}");
        assert!(!data.exists(), "nothing is made");
    }
}
