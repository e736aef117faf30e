//! Evidence that the last segments of a log are gone: indexes that know of more.

use super::{Report, bases, existing, listed, open};
use crate::error::OpenError;
use crate::recover;
use crate::segments::{knows_of_more, lost_after, open_sealed};
use crate::storage::Storage;
use std::path::Path;
use wellspring_format::segment::{index_name, is_index_name, segment_name};
use wellspring_types::Position;

/// The indexes in `dir` that know of segments after the last one, from the last to the first.
///
/// # Errors
/// [`OpenError`]: a file cannot be read. A damaged file is no evidence.
pub fn evidence_of_lost_end(dir: &Path) -> Result<Vec<String>, OpenError> {
    let storage = existing(dir)?;
    let bases = bases(&storage)?;
    let mut names = listed(&storage)?;
    names.retain(|name| is_index_name(name));
    let first_of_lost = index_name(bases[bases.len() - 1]);
    let mut evidence: Vec<String> =
        names.into_iter().filter(|name| *name >= first_of_lost).collect();
    for (i, &base) in bases[..bases.len() - 1].iter().enumerate() {
        let name = segment_name(base);
        let header = match recover::read_header(&*open(&storage, &name)?, &name) {
            Err(OpenError::Corrupt(_)) => continue,
            header => header?,
        };
        if open_sealed(&storage, base, header.salt)?
            .is_some_and(|index| knows_of_more(&index, &bases[i..]))
        {
            evidence.push(index_name(base));
        }
    }
    evidence.sort_unstable_by(|one, other| other.cmp(one));
    Ok(evidence)
}

/// Checks that nothing was written after the last segment had been full.
pub(super) fn verify_end(
    storage: &dyn Storage,
    bases: &[Position],
    report: &mut Report,
) -> Result<(), OpenError> {
    let last = report.last_base;
    let first = index_name(last);
    let names = listed(storage)?;
    let later = names.iter().filter(|name| is_index_name(name) && **name >= first).min();
    note_lost_end(storage, bases, later, report)
}

/// Adds the evidence of this index that the segments after the last of these are gone. If that one
/// is damaged, the report has the damage already.
pub(super) fn note_lost_end(
    storage: &dyn Storage,
    bases: &[Position],
    index: Option<&String>,
    report: &mut Report,
) -> Result<(), OpenError> {
    let Some(index) = index else { return Ok(()) };
    if goes_on(storage, bases)? {
        return Ok(());
    }
    match lost_after(storage, bases[bases.len() - 1], index) {
        Err(OpenError::Corrupt(_)) => {}
        lost => report.lost_end = Some(lost?),
    }
    Ok(())
}

/// Whether there are segments now that were not when these were listed: a server is writing, and an
/// index that knows of more is no evidence that anything is lost.
fn goes_on(storage: &dyn Storage, listed: &[Position]) -> Result<bool, OpenError> {
    Ok(bases(storage)?.last() > listed.last())
}
