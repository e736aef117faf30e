//! The location of backups: a folder, an archive, an object store.

use crate::exit::{Code, Failure, say};
use crate::numbers::{counted, megabytes};
use crate::progress::Progress;
use std::io;
use std::path::Path;
use wellspring_backup::catalog::{self, Catalog};
use wellspring_backup::store::{ArchiveReader, ArchiveWriter, FolderStore};
use wellspring_backup::verify::verify;
use wellspring_backup::{BackupError, KnownEnds, Manifest, Store};

/// A store to write to.
pub(super) type Writer = Box<dyn Store>;

/// The store that a backup is written to.
pub(super) fn create_store(to: &str) -> Result<Writer, Failure> {
    match to {
        "-" => Ok(Box::new(ArchiveWriter::new(io::stdout(), "standard output"))),
        url if url.starts_with("s3://") => object_store(url),
        url if url.contains("://") => Err(unknown("--to", url)),
        path => Ok(Box::new(FolderStore::create(Path::new(path))?)),
    }
}

/// The store that a backup is read from.
pub(crate) fn open_store(from: &str) -> Result<Box<dyn Store>, Failure> {
    match from {
        url if url.starts_with("s3://") => object_store(url),
        url if url.contains("://") => Err(unknown("--from", url)),
        path if Path::new(path).is_file() => Ok(Box::new(ArchiveReader::open(Path::new(path))?)),
        path => Ok(Box::new(FolderStore::open(Path::new(path))?)),
    }
}

/// The store that backups are removed from: one that exists, with its lock.
pub(super) fn reopen_store(from: &str) -> Result<Writer, Failure> {
    if from == "-" || Path::new(from).is_file() {
        return Err(Failure::usage(format!(
            "--from {from}: an archive is one backup; remove the file"
        )));
    }
    // Refuses a folder without backups, which `create_store` would make one for them.
    open_store(from)?;
    create_store(from)
}

fn unknown(flag: &str, url: &str) -> Failure {
    Failure::usage(format!("{flag} {url}: must be a folder, a .tar file or s3://BUCKET/PREFIX"))
}

#[cfg(feature = "s3")]
fn object_store(url: &str) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(wellspring_backup::store::S3Store::open(url)?))
}

#[cfg(not(feature = "s3"))]
fn object_store(url: &str) -> Result<Box<dyn Store>, Failure> {
    Err(Failure::usage(format!(
        "{url}: this program was built without support for object stores; build it with --features s3"
    )))
}

/// The manifest of a backup of this name, or of the newest if all there are of one server.
pub(super) fn chosen(store: &mut dyn Store, name: Option<&str>) -> Result<Manifest, Failure> {
    let Some(name) = name else {
        return catalog::newest(store).map_err(unreadable);
    };
    let place = store.place();
    let name = Catalog::of(store)?.choose(Some(name), &place)?;
    read_manifest(store, &name)
}

fn read_manifest(store: &mut dyn Store, name: &str) -> Result<Manifest, Failure> {
    catalog::manifest(store, name).map_err(unreadable)
}

fn unreadable(error: BackupError) -> Failure {
    match &error {
        BackupError::Damaged { .. } => {
            let another = "name another backup with --backup (`wellspring backup list`)";
            Failure::new(Code::Refused, format!("{error}; {another}"))
        }
        _ => error.into(),
    }
}

/// What to do about damaged files in a place of backups.
pub(super) fn shared_damage(place: &str) -> String {
    if Path::new(place).is_file() {
        return "take another backup".into();
    }
    format!(
        "while the server has its data, delete each file that is named in {place}, then take a \
         backup: it copies the file again. Older backups share the file; another place may have it \
         intact"
    )
}

/// The newest backup whose manifest can be read, if any can.
fn newest_readable(store: &mut dyn Store, known: &KnownEnds) -> Result<Manifest, Failure> {
    let place = store.place();
    let mut catalog = Catalog::of(store)?;
    let is_readable = |name: &String| known.unreadable().iter().all(|other| other.name != *name);
    if catalog.finished.iter().any(is_readable) {
        catalog.finished.retain(is_readable);
    }
    let name = catalog.choose(None, &place)?;
    read_manifest(store, &name)
}

/// `wellspring verify --from`: reads and checks a backup, the newest that can be read or that of
/// this name. Returns its manifest and the ends of logs that this backup has, if it is named, or
/// any in the place.
pub(crate) fn verify_backup(
    from: &str,
    name: Option<&str>,
) -> Result<(Manifest, KnownEnds), Failure> {
    let mut store = open_store(from)?;
    let (manifest, mut known) = match name {
        Some(_) => (chosen(&mut *store, name)?, KnownEnds::default()),
        None => {
            let known = KnownEnds::of(&mut *store)?;
            (newest_readable(&mut *store, &known)?, known)
        }
    };
    for damaged in known.unreadable() {
        say(&format!("DAMAGED: {}; {}", damaged.detail, damaged.remedy(from)))?;
    }
    let mut progress = Progress::start("verify", Some(manifest.bytes()));
    let report = verify(&mut *store, &manifest, &mut |done, all| progress.update_bytes(done, all));
    progress.end();
    let report = report?;
    say(&format!(
        "backup {}: {} in {}, {}",
        manifest.name,
        counted(report.events, "event", "events"),
        counted(report.segments, "segment", "segments"),
        megabytes(report.bytes)
    ))?;
    for damage in &report.damage {
        say(&format!("DAMAGED: {damage}"))?;
    }
    if report.damage.is_empty() {
        say("sound: every event is present and unchanged")?;
        known.note(&manifest);
        return Ok((manifest, known));
    }
    say("NOT SOUND")?;
    let message = format!(
        "the backup {} is damaged in {}, listed above; {}",
        manifest.name,
        counted(report.damage.len() as u64, "place", "places"),
        shared_damage(&store.place())
    );
    Err(Failure::new(Code::Refused, message))
}
