//! Event types that only a face may write, so clients must not append them: links made that way
//! would have bypassed all checks, and clicks would never have happened.

use crate::wire::problem::{self, Problem};

/// Events that only one face writes.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptEvents {
    /// The log to which they are written; none: any.
    pub log: Option<&'static str>,
    /// Their types.
    pub types: &'static [&'static str],
    /// The common prefix of all these types, which rules out most others at once.
    pub prefix: &'static str,
    /// The text for clients after "is LinkCreated, which".
    pub advice: &'static str,
}

/// The types of events that clients may not append, by log.
#[derive(Debug, Default)]
pub struct KeptTypes {
    /// Logs with types of their own, besides those of every log.
    logs: Vec<(&'static str, KeptInLog)>,
    every: KeptInLog,
}

impl KeptTypes {
    /// The types reserved by the faces of a server.
    pub fn new(kept: impl IntoIterator<Item = &'static KeptEvents>) -> KeptTypes {
        let kept: Vec<&'static KeptEvents> = kept.into_iter().collect();
        for events in &kept {
            assert!(events.types.iter().all(|t| t.starts_with(events.prefix)), "{events:?}");
        }
        // A few bytes per server, leaked: so each request copies only a reference.
        let keep = |log: Option<&str>| {
            let of_log = kept.iter().filter(|events| events.log.is_none() || events.log == log);
            KeptInLog(Vec::leak(of_log.copied().collect()))
        };
        let mut logs: Vec<_> = kept.iter().filter_map(|events| events.log).collect();
        logs.sort_unstable();
        logs.dedup();
        let logs = logs.into_iter().map(|log| (log, keep(Some(log)))).collect();
        KeptTypes { logs, every: keep(None) }
    }

    /// The types for the log of this name.
    pub fn in_log(&self, log: &str) -> KeptInLog {
        let found = self.logs.iter().find(|(name, _)| *name == log);
        found.map_or(self.every, |(_, kept)| *kept)
    }
}

/// Event types that clients may not append to one log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptInLog(&'static [&'static KeptEvents]);

impl KeptInLog {
    /// Why clients may not append an event of this type; `None` if they may.
    pub fn fault(self, event_type: &str) -> Option<String> {
        let is_kept = |events: &&&KeptEvents| {
            event_type.starts_with(events.prefix) && events.types.contains(&event_type)
        };
        let events = self.0.iter().find(is_kept)?;
        Some(format!("is {event_type}, which {}", events.advice))
    }

    /// Refuses events of such a type.
    ///
    /// # Errors
    /// 422 `invalid`, naming the parameter `type`.
    pub fn check(self, event_type: &str) -> Result<(), Box<Problem>> {
        match self.fault(event_type) {
            None => Ok(()),
            Some(fault) => Err(problem::INVALID.because(format!("type {fault}")).field("type")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::MAIN;

    static APPLES: KeptEvents = KeptEvents {
        log: Some(MAIN),
        types: &["ApplePicked", "AppleEaten"],
        prefix: "Apple",
        advice: "apples write themselves",
    };
    static PEARS: KeptEvents = KeptEvents {
        log: Some(MAIN),
        types: &["PearPicked"],
        prefix: "Pear",
        advice: "is for pears",
    };
    static WATER: KeptEvents =
        KeptEvents { log: None, types: &["WaterDrunk"], prefix: "Water", advice: "flows" };

    #[test]
    fn what_is_kept_in_every_log_is_refused_in_all() {
        let kept = KeptTypes::new([&APPLES, &WATER]);
        for log in [MAIN, "orders"] {
            assert!(kept.in_log(log).fault("WaterDrunk").is_some(), "{log}");
            assert_eq!(kept.in_log(log).fault("AppleEaten").is_some(), log == MAIN);
        }
    }

    #[test]
    fn what_faces_keep_is_refused_in_their_log_alone() {
        let kept = KeptTypes::new([&APPLES, &PEARS]);
        for event_type in APPLES.types.iter().chain(PEARS.types) {
            let problem = kept.in_log(MAIN).check(event_type).expect_err("refused");
            assert_eq!((problem.kind.status, problem.field.as_deref()), (422, Some("type")));
            assert_eq!(kept.in_log("orders").fault(event_type), None);
            assert_eq!(KeptTypes::new([]).in_log(MAIN).fault(event_type), None);
        }
        for other in ["Apple", "ApplePickedBy", "applePicked", "Pea", "T"] {
            assert_eq!(kept.in_log(MAIN).fault(other), None, "{other}");
        }
        let told = kept.in_log(MAIN).fault("AppleEaten");
        assert_eq!(told.as_deref(), Some("is AppleEaten, which apples write themselves"));
    }
}
