//! Data subjects: the settings of their keys, and how requests name them. Keys are those of
//! `wellspring_subject_keys`, the sealer of a request is in `http`, erasures are a face's.

mod config;

pub use config::SubjectConfig;

use crate::wire::json::{Rfc3339, to_json};
use crate::wire::problem::{self, Problem};
use wellspring_subject_keys::SealRefusal;

/// The name of the header that names a data subject.
pub const SUBJECT_NAME: &str = "Wellspring-Subject";
/// The same in lower case.
pub const SUBJECT_HEADER: &str = "wellspring-subject";
/// The type of the event that tells a log that a data subject of it was erased.
pub const SUBJECT_ERASED: &str = "SubjectErased";

/// The subject that a header names.
///
/// # Errors
/// 422 `invalid`: it is no UTF-8.
pub fn subject_of_header(value: Option<&[u8]>) -> Result<Option<&str>, Box<Problem>> {
    let not_a_tag =
        |_| problem::INVALID.because("Wellspring-Subject must be UTF-8").field(SUBJECT_NAME);
    value.map(|value| std::str::from_utf8(value).map_err(not_a_tag)).transpose()
}

/// The problem of something that cannot be sealed for a subject, which this field names; an import
/// names it once for many.
pub fn refusal(refusal: &SealRefusal, field: &str, subject: &str) -> Box<Problem> {
    let detail = match refusal {
        SealRefusal::Erased { .. } | SealRefusal::Unavailable(_) if !field.ends_with(subject) => {
            format!("{field} {subject} {refusal}")
        }
        _ => format!("{field} {refusal}"),
    };
    match refusal {
        SealRefusal::NotASubject | SealRefusal::Identifying => {
            problem::INVALID.because(detail).field(field)
        }
        SealRefusal::Erased { until_us } => {
            let problem = problem::SUBJECT_ERASED.because(detail).field(field);
            match until_us {
                Some(until_us) => {
                    let until = to_json(&Rfc3339(*until_us));
                    problem.with("until", String::from_utf8_lossy(&until).into_owned())
                }
                None => problem,
            }
        }
        SealRefusal::Unavailable(_) => problem::KEY_UNAVAILABLE.because(detail).field(field),
    }
}
