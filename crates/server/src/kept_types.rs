//! Types of events that the links of a log write themselves. Appended by a client they would make
//! links that passed no check, and clicks that never happened.

use crate::names::MAIN;
use crate::wire::problem::{self, Problem};
use wellspring_views::links::event::TYPES;

/// Types that clients may not append to a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum KeptTypes {
    /// None.
    #[default]
    Nothing,
    /// Those of links.
    Links,
}

impl KeptTypes {
    /// Those of the log of this name: links are folded from `main` alone. `accept_link_events`: clients
    /// may append what the links write.
    pub(crate) fn of(accept_link_events: bool, log: &str) -> KeptTypes {
        if log == MAIN && !accept_link_events { KeptTypes::Links } else { KeptTypes::Nothing }
    }

    /// What is wrong with an event of this type; nothing if clients may append it.
    pub(crate) fn fault(self, event_type: &str) -> Option<String> {
        let is_kept = self == KeptTypes::Links
            && event_type.starts_with("Link")
            && TYPES.contains(&event_type);
        is_kept.then(|| {
            format!(
                "is {event_type}, which the links of this log write themselves: make, change and \
                 delete links at /api/urls; to restore an export, start the server with \
                 --link-accept-events"
            )
        })
    }

    /// Refuses events of such a type.
    ///
    /// # Errors
    /// 422 `invalid`, naming the parameter `type`.
    pub(crate) fn check(self, event_type: &str) -> Result<(), Box<Problem>> {
        match self.fault(event_type) {
            None => Ok(()),
            Some(fault) => Err(problem::INVALID.because(format!("type {fault}")).field("type")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_links_are_kept_in_main_unless_a_setting_says_otherwise() {
        let kept = KeptTypes::of(false, MAIN);
        for event_type in TYPES {
            assert!(event_type.starts_with("Link"), "what is looked at first");
            let problem = kept.check(event_type).expect_err("refused");
            assert_eq!((problem.kind.status, problem.field.as_deref()), (422, Some("type")));
        }
        for other in ["Link", "LinkCreatedBy", "linkCreated", "Linked", "T"] {
            assert_eq!(kept.fault(other), None, "{other}");
        }
        assert_eq!(KeptTypes::of(false, "orders"), KeptTypes::Nothing);
        assert_eq!(KeptTypes::of(true, MAIN), KeptTypes::Nothing);
        assert_eq!(KeptTypes::Nothing.fault("LinkCreated"), None);
    }
}
