//! C16: client and server on one machine share its processors, memory and kernel, and there is no
//! network between them. That is a note: the figures are right, but not those of use over a
//! network.

use super::figures::StepFinding;
use crate::result::Report;

pub(super) fn judge(report: &Report) -> StepFinding {
    match report.environment.target_is_local {
        Some(false) => StepFinding::passed("The server is on another machine than the client."),
        Some(true) => {
            let processors = match report.environment.cpus {
                Some(1) => "its one processor".to_owned(),
                Some(n) => format!("its {n} processors"),
                None => "its processors".to_owned(),
            };
            StepFinding::note(format!(
                "Client and server are on one machine and share {processors}; there is no network between them."
            ))
        }
        None => StepFinding::not_checked("Whether the server is on this machine is not known."),
    }
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    #[test]
    fn one_machine_is_a_note() {
        let mut report = build::closed(1).report();
        assert_eq!(judge(&report).outcome, Outcome::Passed);
        report.environment.target_is_local = Some(true);
        let finding = judge(&report);
        assert_eq!(finding.outcome, Outcome::Note);
        assert!(finding.sentence.contains("its 2 processors"), "{finding:?}");
        report.environment.target_is_local = None;
        assert_eq!(judge(&report).outcome, Outcome::NotChecked);
    }
}
