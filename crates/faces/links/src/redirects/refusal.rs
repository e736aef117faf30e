//! The answers for codes without a target, in the format of link shorteners.

use crate::problems;
use crate::view::{Code, Lookup};
use wellspring_host::wire::json::push_string;
use wellspring_host::wire::problem::{self, Problem};

/// Adds the member `error` for the clients of link shorteners.
pub(crate) fn with_error(problem: Box<Problem>) -> Box<Problem> {
    let text = if problem.kind == &problems::URL_REQUIRED {
        "URL is a required field"
    } else if problem.kind == &problems::LINK_NOT_FOUND {
        "URL not found"
    } else {
        problem.detail.as_str()
    };
    let mut json = Vec::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    problem.with("error", String::from_utf8(json).unwrap_or_default())
}

/// The answer for an unknown code.
pub(crate) fn unknown(code: Code) -> Box<Problem> {
    problems::LINK_NOT_FOUND.because(format!("there is no link {code}"))
}

/// The answer to a visitor of an unknown code, who may have meant something else of this server.
pub(crate) fn unknown_to_visitors(code: Code) -> Box<Problem> {
    let detail = format!("there is no link {code}; GET /openapi.json lists what else is here");
    problems::LINK_NOT_FOUND.because(detail)
}

/// The answer for a deleted link.
pub(crate) fn deleted(code: Code) -> Box<Problem> {
    problems::LINK_DELETED.because(format!("the link {code} has been deleted"))
}

/// The target of a link, or the refusal.
pub(crate) fn of_lookup(code: Code, lookup: Lookup) -> Result<(), Box<Problem>> {
    let (kind, what) = match lookup {
        Lookup::Found => return Ok(()),
        Lookup::Unknown => return Err(unknown_to_visitors(code)),
        Lookup::Deleted => return Err(deleted(code)),
        Lookup::Disabled => (&problems::LINK_DISABLED, "is disabled for now"),
        Lookup::Expired => (&problems::LINK_EXPIRED, "has expired"),
        Lookup::Limited | Lookup::Sealed => {
            let detail = format!("the link {code} has just been changed; try again");
            return Err(problem::VIEW_NOT_READY.because(detail));
        }
        Lookup::Refused => (
            &problems::LINK_REFUSED,
            "leads where the settings of this server allow no link to lead",
        ),
    };
    Err(kind.because(format!("the link {code} {what}")))
}
