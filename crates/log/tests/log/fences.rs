//! Appends that are fenced by a lease.

use crate::oracle::{append, append_if, open};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Append, AppendError, Fence, Options, RequestKey};
use wellspring_types::{AppendCondition, Event, Query};

#[test]
fn a_former_holder_is_told_of_its_lease_before_any_conflict() {
    let log = open(&SimulatedStorage::new(1), Options::default()).unwrap();
    let first = log.leases().acquire("mail", "one", 60_000_000).unwrap();
    let sent = [Event::json("MailSent", &["mail:1"], "1")];
    let unless_sent =
        || AppendCondition { fail_if_exists: Some(Query::all()), ..AppendCondition::default() };
    let fenced = |token, key: Option<&str>| Append {
        fence: Some(Fence { lease: "mail".into(), token }),
        key: key.map(|key| RequestKey { key: key.into(), digest: [7; 16] }),
        ..append_if(&sent, unless_sent())
    };
    let appended = log.append(fenced(first.token, Some("k"))).unwrap();
    let conflict = log.append(fenced(first.token, None));
    assert!(matches!(conflict, Err(AppendError::Conflict(_))), "{conflict:?}");
    log.leases().release("mail", "one", first.token).unwrap();
    let second = log.leases().acquire("mail", "two", 60_000_000).unwrap();
    // The successor has done the work: its predecessor must not take that for its own.
    assert_eq!(log.append(fenced(first.token, None)), Err(AppendError::LeaseLost));
    // A retry is still recognised, whoever holds the lease now.
    let again = log.append(fenced(first.token, Some("k"))).unwrap();
    assert_eq!(again.first, appended.first);
    let conflict = log.append(fenced(second.token, None));
    assert!(matches!(conflict, Err(AppendError::Conflict(_))), "{conflict:?}");
    log.append(append(&sent)).unwrap();
}
