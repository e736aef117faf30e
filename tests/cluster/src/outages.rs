//! How long writes were impossible after a fault.

use crate::faults::FaultRecord;
use crate::history::{Kind, Operation, Outcome};

/// The time from a fault to the end of the first successful append started after it, at a node
/// other than the affected one; excludes the time in which the machine stalled.
fn outage_ms(fault: &FaultRecord, operations: &[Operation], stalls: &[(u64, u64)]) -> Option<u64> {
    let writes = operations.iter().filter(|operation| {
        matches!(operation.kind, Kind::Append | Kind::Cas)
            && operation.outcome == Outcome::Done
            && (fault.log.is_empty() || operation.log == fault.log)
            && operation.start_ns >= fault.start_ns
            && operation.node != fault.node
    });
    let (start, end) = (fault.start_ns, writes.map(|write| write.end_ns).min()?);
    let stood = |(from, to): &(u64, u64)| (*to).min(end).saturating_sub((*from).max(start));
    let stood: u64 = stalls.iter().map(stood).sum();
    Some((end - start).saturating_sub(stood) / 1_000_000)
}

/// The outages after every fault of a name, shortest first.
pub(crate) fn outages_ms(
    name: &str,
    faults: &[FaultRecord],
    operations: &[Operation],
    stalls: &[(u64, u64)],
) -> Vec<u64> {
    let named = faults.iter().filter(|fault| fault.fault == name && !fault.node.is_empty());
    let mut found: Vec<_> =
        named.filter_map(|fault| outage_ms(fault, operations, stalls)).collect();
    found.sort_unstable();
    found
}

/// The distribution in words.
pub(crate) fn words(sorted_ms: &[u64]) -> String {
    let at = |part: f64| sorted_ms[((sorted_ms.len() - 1) as f64 * part).round() as usize];
    match sorted_ms {
        [] => "none".into(),
        _ => format!(
            "{} times: least {}, p50 {}, p90 {}, most {} ms",
            sorted_ms.len(),
            at(0.0),
            at(0.5),
            at(0.9),
            at(1.0)
        ),
    }
}
