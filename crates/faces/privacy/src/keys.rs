//! The keys of data subjects, for operators.

use crate::carry_out::Eraser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, OCTETS, Request, Response};
use wellspring_host::wire::problem::{self, Problem};
use wellspring_subject_keys::{KeysFault, KeysStatus, SubjectKeys};

/// The keys.
#[derive(Serialize)]
struct KeysDocument {
    live: u64,
    withdrawn: u64,
    erased: u64,
    /// Number of the last change of the store.
    change: u64,
    /// How often a sealed part could not be opened since the start, as its key is missing.
    unavailable_parts: u64,
    /// Why the last backup of the keys failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_failure: Option<String>,
    /// How many keys the root of each generation wraps.
    generations: BTreeMap<u16, u64>,
    /// Where the root is.
    root: String,
}

fn document(eraser: &Eraser, keys: &SubjectKeys, status: KeysStatus) -> Response {
    let KeysStatus { live, withdrawn, erased, change, unavailable_parts, generations } = status;
    let (root, backup_failure) = (keys.source().to_string(), eraser.backup_failure());
    let document = KeysDocument {
        live,
        withdrawn,
        erased,
        change,
        unavailable_parts,
        backup_failure,
        generations,
        root,
    };
    Response::of(200, &document)
}

fn failed(fault: &KeysFault) -> Box<Problem> {
    match fault {
        KeysFault::Io { .. } => problem::IO.because(fault.to_string()),
        KeysFault::NoNewerRoot { .. } => problem::INVALID.because(fault.to_string()),
        _ => problem::KEY_UNAVAILABLE.because(fault.to_string()),
    }
}

/// `GET /v1/subject-keys`.
pub(crate) async fn status(eraser: Arc<Eraser>, _request: Box<Request>) -> Answer {
    let keys = Arc::clone(eraser.keys()?);
    let looked = Arc::clone(&keys);
    let status = elsewhere(move || looked.status()).await?.map_err(|fault| failed(&fault))?;
    Ok(document(&eraser, &keys, status))
}

/// `POST /v1/subject-keys/rotate`.
pub(crate) async fn rotate(eraser: Arc<Eraser>, _request: Box<Request>) -> Answer {
    let keys = Arc::clone(eraser.keys()?);
    let rotated = Arc::clone(&keys);
    let status = elsewhere(move || rotated.rotate().and_then(|_| rotated.status())).await?;
    let status = status.map_err(|fault| failed(&fault))?;
    tracing::warn!("the keys of data subjects have a new root: keep a second copy of it");
    Ok(document(&eraser, &keys, status))
}

/// `GET /v1/subject-keys/store`.
pub(crate) async fn copy(eraser: Arc<Eraser>, _request: Box<Request>) -> Answer {
    let keys = Arc::clone(eraser.keys()?);
    let copied = elsewhere(move || keys.copy()).await?.map_err(|fault| failed(&fault))?;
    match copied {
        Some(copy) => Ok(Response::json(200, copy.bytes).of_type(OCTETS)),
        None => Err(problem::NOT_FOUND.because("there are no keys of data subjects yet")),
    }
}
