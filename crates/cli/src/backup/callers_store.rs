//! A store of backups that is read with the rights of the caller, while the work on a data folder
//! is done as the folder's owner: only root can read backups taken by root.

use super::place;
use crate::exit::Failure;
use crate::folder_owner::as_caller;
use std::io::Read;
use wellspring_backup::store::{PendingFile, SharedStore};
use wellspring_backup::{BackupError, Store};

/// Reads as the caller. What is open needs no rights any more. Writes have those of the folder's
/// owner.
struct CallersStore(Box<dyn Store>);

/// The store that a backup is read from.
pub(super) fn open_store(from: &str) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(CallersStore(as_caller(|| place::open_store(from))?)))
}

impl Store for CallersStore {
    fn place(&self) -> String {
        self.0.place()
    }

    fn list(&mut self, prefix: &str) -> Result<Vec<(String, u64)>, BackupError> {
        as_caller(|| self.0.list(prefix))
    }

    fn read(&mut self, name: &str) -> Result<Box<dyn Read + '_>, BackupError> {
        as_caller(|| self.0.read(name))
    }

    fn create(&mut self, name: &str, bytes: u64) -> Result<Box<dyn PendingFile + '_>, BackupError> {
        self.0.create(name, bytes)
    }

    fn remove(&mut self, name: &str) -> Result<(), BackupError> {
        self.0.remove(name)
    }

    fn shared(&mut self) -> Option<&mut dyn SharedStore> {
        self.0.shared()
    }

    fn close(&mut self) -> Result<(), BackupError> {
        self.0.close()
    }
}
