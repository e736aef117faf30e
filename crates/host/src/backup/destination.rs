//! Where scheduled backups go.

use std::path::PathBuf;
use wellspring_backup::store::FolderStore;
use wellspring_backup::{BackupError, BackupResult, Store};

/// Where backups go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    Folder(PathBuf),
    /// A URL.
    ObjectStore(String),
}

impl Destination {
    /// The store, to write to.
    ///
    /// # Errors
    /// It cannot be opened or created.
    pub(super) fn create(&self) -> BackupResult<Box<dyn Store>> {
        match self {
            Destination::Folder(dir) => Ok(Box::new(FolderStore::create(dir)?)),
            #[cfg(feature = "s3")]
            Destination::ObjectStore(url) => {
                Ok(Box::new(wellspring_backup::store::S3Store::open(url)?))
            }
            #[cfg(not(feature = "s3"))]
            Destination::ObjectStore(url) => {
                let what = format!("{url}: built without support for object stores");
                Err(BackupError::Unfit(what))
            }
        }
    }

    /// The store, to read from; none if there is no backup, finished or not. Another process may be
    /// writing to it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn existing(&self) -> BackupResult<Option<Box<dyn Store>>> {
        match self {
            Destination::Folder(dir) => match FolderStore::open(dir) {
                Ok(store) => Ok(Some(Box::new(store))),
                Err(BackupError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            },
            Destination::ObjectStore(_) => self.create().map(Some),
        }
    }
}
