//! The files of this room in the data folder, to be checked: the token secret and the marker.

use super::gate::Gate;
use super::{accounts_marker, token_secret};
use crate::kept_file::{FileCheck, KeptFile};
use std::path::Path;
use std::sync::Arc;

/// The files of a data folder.
pub(crate) fn kept_files(data: &Path, gate: &Arc<Gate>) -> Vec<KeptFile> {
    let file = |name, check: fn(&Path, &Gate) -> std::io::Result<FileCheck>| {
        let (data, gate) = (data.to_owned(), Arc::clone(gate));
        KeptFile::new(name, move |_| check(&data, &gate))
    };
    vec![
        file(token_secret::FILE, |data, gate| gate.tokens().keep(data)),
        file(accounts_marker::FILE, accounts_marker::keep),
    ]
}
