//! Refusals of links as answers.

use super::redirects::{deleted, unknown};
use super::target;
use crate::problems;
use crate::view::{Code, Details, LinkRefusal, Status};
use wellspring_host::wire::problem::{self, Problem};

/// Answers about a link that does not exist or is deleted; otherwise its details.
pub(super) fn shown(code: Code, details: Option<Details>) -> Result<Details, Box<Problem>> {
    match details {
        None => Err(unknown(code)),
        Some(Details { status: Status::Deleted, .. }) => Err(deleted(code)),
        Some(details) => Ok(details),
    }
}

/// The answer to a refused command.
pub(super) fn of_refusal(refusal: LinkRefusal) -> Box<Problem> {
    let detail = refusal.to_string();
    match refusal {
        LinkRefusal::AliasTaken(_) => problems::ALIAS_TAKEN.because(detail).field("alias"),
        LinkRefusal::Reserved(_) => problems::ALIAS_RESERVED.because(detail).field("alias"),
        LinkRefusal::Unknown(code) => unknown(code),
        LinkRefusal::Deleted(code) => deleted(code),
        LinkRefusal::UsedUp(_) => problems::LINK_EXPIRED.because(detail),
        LinkRefusal::Url(fault) => target::of_fault(fault),
        LinkRefusal::SealedTags(_) | LinkRefusal::Tags => {
            problem::INVALID.because(detail).field("tags")
        }
        LinkRefusal::TooLate => problem::INVALID.because(detail).field("expires_at"),
        LinkRefusal::Exhausted => problems::CODES_EXHAUSTED.because(detail),
        LinkRefusal::CandidatesTaken => {
            problems::CODES_TAKEN.because(detail).field("deterministic")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::redirects::with_error;
    use super::*;

    fn error_of(problem: Box<Problem>) -> (u64, String) {
        let json: serde_json::Value =
            serde_json::from_slice(&with_error(problem).to_json()).unwrap();
        (json["status"].as_u64().unwrap(), json["error"].as_str().unwrap().to_owned())
    }

    #[test]
    fn errors_are_worded_as_the_clients_of_shorteners_know_them() {
        let code = Code::parse(b"Yci").unwrap();
        let expected = (400, "URL is a required field".to_owned());
        assert_eq!(error_of(target::url_required()), expected);
        assert_eq!(error_of(unknown(code)), (404, "URL not found".to_owned()));
        assert_eq!(error_of(of_refusal(LinkRefusal::Unknown(code))).1, "URL not found");
        let taken = of_refusal(LinkRefusal::AliasTaken(code));
        assert_eq!(error_of(taken), (409, "the alias Yci is taken; choose another".to_owned()));
        assert_eq!(error_of(of_refusal(LinkRefusal::Deleted(code))).0, 410);
        assert_eq!(error_of(of_refusal(LinkRefusal::Reserved(code))).0, 422);
    }
}
