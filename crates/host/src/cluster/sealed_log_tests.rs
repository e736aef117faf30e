use super::*;
use std::task::Waker;
use wellspring_log::shared::simulated::{SimulatedLog, SimulatedNode};

const ENTRY: &[u8] = b"an account was added";

fn over(log: &SimulatedLog, key: u8, name: &str) -> SealedLog<SimulatedNode> {
    let mut sealed = SealedLog::new(Box::new(log.connect(1)), &ClusterKey::known(key), name);
    sealed.follow(Place(0));
    sealed
}

fn offered(log: &SimulatedLog, entry: &[u8]) -> Vec<u8> {
    over(log, 7, "system").offer(OfferId(1), Place(0), entry.into());
    let (_, kept) = log.entries().pop().unwrap();
    kept.to_vec()
}

fn arriving(sealed: &mut SealedLog<SimulatedNode>) -> Result<Arc<[u8]>, SharedLogError> {
    loop {
        match sealed.next(Waker::noop())? {
            Arrival::Entry { entry, .. } => return Ok(entry),
            Arrival::Nothing => panic!("nothing has arrived"),
            Arrival::Offer { .. } | Arrival::End { .. } | Arrival::Gap(_) => {}
        }
    }
}

fn reason<T: fmt::Debug>(refused: Result<T, SharedLogError>) -> String {
    match refused.unwrap_err() {
        SharedLogError::Unusable { reason } => reason,
        error @ SharedLogError::Unavailable { .. } => panic!("{error}"),
    }
}

#[test]
fn the_engine_keeps_nothing_that_can_be_read_and_every_node_reads_it() {
    let log = SimulatedLog::immediate();
    let kept = offered(&log, ENTRY);
    assert_eq!(kept.len(), ENTRY.len() + OVERHEAD_BYTES);
    assert!(!kept.windows(4).any(|bytes| ENTRY.windows(4).any(|of_entry| bytes == of_entry)));
    let other_node = &mut over(&log, 7, "system");
    assert_eq!(&*arriving(other_node).unwrap(), ENTRY);
    let fetched = other_node.fetch(Place(0), 1 << 20).unwrap();
    let Fetched::Entries(fetched) = fetched else { panic!("{fetched:?}") };
    assert_eq!(fetched.iter().map(|(_, entry)| &**entry).collect::<Vec<_>>(), [ENTRY]);
    assert_ne!(offered(&log, ENTRY), kept, "a nonce of its own");
    assert_eq!(offered(&log, b"").len(), OVERHEAD_BYTES);
}

#[test]
fn entries_are_smaller_by_what_sealing_adds() {
    let log = SimulatedLog::immediate();
    let (bare, sealed) = (log.connect(1).limits(), over(&log, 7, "system").limits());
    assert_eq!(sealed.entry_bytes + OVERHEAD_BYTES, bare.entry_bytes);
    assert_eq!((sealed.window, sealed.lead_timeout_min), (bare.window, bare.lead_timeout_min));
    let kept = offered(&log, &vec![7; sealed.entry_bytes]);
    assert_eq!(kept.len(), bare.entry_bytes);
}

#[test]
fn another_key_is_told_by_its_fingerprint_and_nothing_is_passed_over() {
    let log = SimulatedLog::immediate();
    offered(&log, ENTRY);
    let other = &mut over(&log, 8, "system");
    let told = reason(arriving(other));
    let fingerprints = [7, 8].map(|byte| ClusterKey::known(byte).fingerprint().to_string());
    assert!(fingerprints.iter().all(|fingerprint| told.contains(fingerprint)), "{told}");
    assert!(told.contains("cluster key") && told.contains("log system"), "{told}");
    assert_eq!(reason(other.fetch(Place(0), 1 << 20)), told);
    // What comes after it is not taken for the next entry.
    log.append(b"rubbish");
    assert_eq!(reason(arriving(other)), told);
}

#[test]
fn what_was_changed_or_is_of_another_log_is_refused() {
    let whole = offered(&SimulatedLog::immediate(), ENTRY);
    let refused = |bytes: &[u8], name: &str| {
        let log = SimulatedLog::immediate();
        log.append(bytes);
        reason(arriving(&mut over(&log, 7, name)))
    };
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        refused(&changed, "system");
        assert!(!refused(&whole[..at], "system").is_empty(), "{at}");
    }
    assert!(refused(&whole, "system.2").contains("another log"));
    assert!(refused(&[&whole[..], b"x"].concat(), "system").contains("changed"));
    assert!(refused(ENTRY, "system").contains("not sealed"));
}
