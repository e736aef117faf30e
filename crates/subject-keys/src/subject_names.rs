//! What data subjects may be called.

use crate::fault::SealRefusal;
use crate::key::MAX_SUBJECT_BYTES;
use wellspring_types::limits;
use wellspring_types::valid::check_text;

/// What subjects may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectNames {
    /// Nothing that looks like an e-mail address or an international telephone number.
    Opaque,
    /// Any tag.
    Any,
}

/// Checks what a new subject is called.
pub(crate) fn check_subject(subject: &str, names: SubjectNames) -> Result<(), SealRefusal> {
    let most = MAX_SUBJECT_BYTES.min(limits::MAX_TAG_BYTES);
    let Some((key, value)) = subject.split_once(':') else { return Err(SealRefusal::NotASubject) };
    if key.is_empty() || value.is_empty() || check_text(subject, most).is_err() {
        return Err(SealRefusal::NotASubject);
    }
    if names == SubjectNames::Opaque && is_identifying(value) {
        return Err(SealRefusal::Identifying);
    }
    Ok(())
}

/// Whether a value looks like an e-mail address or an international telephone number.
fn is_identifying(value: &str) -> bool {
    let is_address = value.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && host.contains('.') && !host.starts_with('.') && !host.ends_with('.')
    });
    let is_separator = |c: char| matches!(c, ' ' | '-' | '.' | '(' | ')' | '/');
    // Not one that begins with 00: numbers that are filled with zeros are good ids, and look alike.
    let number = value.strip_prefix('+').unwrap_or_default();
    let digits = number.chars().filter(char::is_ascii_digit).count();
    let is_number = number.chars().all(|c| c.is_ascii_digit() || is_separator(c));
    is_address || (is_number && (7..=15).contains(&digits))
}
