use super::*;
use crate::shared::entry::{Claim, batch_entries};

fn founded() -> Arc<[u8]> {
    Entry::Founded { cluster: ClusterId([7; 16]), log: "main" }.encode().into()
}

fn claim(epoch: u64) -> Arc<[u8]> {
    Entry::Claim(Claim { epoch, node: "a", start: epoch * 10, url: "http://a" }).encode().into()
}

fn beat(epoch: u64) -> Arc<[u8]> {
    Entry::Beat(Claim { epoch, node: "a", start: epoch * 10, url: "http://a" }).encode().into()
}

fn batch(epoch: u64, first: Position, previous: u32, body: &[u8]) -> BatchId {
    BatchId {
        epoch,
        first,
        count: 2,
        recorded_at_us: first * 1000,
        begins_segment: false,
        body_bytes: body.len() as u32,
        body_crc: crc32c::crc32c(body),
        previous,
    }
}

fn begun(epoch: u64) -> Rule {
    let mut rule = Rule::default();
    rule.judge(founded()).unwrap();
    assert!(matches!(rule.judge(claim(epoch)), Ok(EntryEffect::Led(_))));
    rule
}

fn one(rule: &mut Rule, batch: &BatchId, body: &[u8]) -> EntryEffect {
    let mut entries = batch_entries(batch, body, 4096);
    assert_eq!(entries.len(), 1);
    rule.judge(entries.remove(0)).unwrap()
}

#[test]
fn nothing_counts_before_the_founding_and_only_the_first_does() {
    let mut rule = Rule::default();
    assert_eq!(rule.judge(claim(1)), Ok(EntryEffect::Void(VoidReason::NotFounded)));
    let first = batch(1, 1, 0, b"x");
    assert_eq!(one(&mut rule, &first, b"x"), EntryEffect::Void(VoidReason::NotFounded));
    let cluster = ClusterId([7; 16]);
    assert_eq!(rule.judge(founded()), Ok(EntryEffect::Founded { cluster, log: "main".into() }));
    let other = Entry::Founded { cluster: ClusterId([8; 16]), log: "main" }.encode();
    assert_eq!(rule.judge(other.into()), Ok(EntryEffect::Void(VoidReason::SecondFounding)));
    assert_eq!(rule.cluster(), Some(cluster));
}

#[test]
fn a_claim_counts_iff_its_epoch_is_new() {
    let mut rule = begun(3);
    assert_eq!(rule.judge(claim(3)), Ok(EntryEffect::Void(VoidReason::ClaimTooLate)));
    assert_eq!(rule.judge(claim(2)), Ok(EntryEffect::Void(VoidReason::ClaimTooLate)));
    assert_eq!(rule.judge(claim(EPOCH_LIMIT)), Ok(EntryEffect::Void(VoidReason::EpochTooLarge)));
    assert_eq!((rule.epoch(), rule.leader().unwrap().start), (3, 30));
    assert!(matches!(rule.judge(claim(9)), Ok(EntryEffect::Led(claimant)) if claimant.epoch == 9));
    assert_eq!(rule.judge(beat(9)), Ok(EntryEffect::Alive));
    assert_eq!(rule.judge(beat(3)), Ok(EntryEffect::Void(VoidReason::OldEpoch)));
    assert_eq!(rule.judge(beat(10)), Ok(EntryEffect::Void(VoidReason::FutureEpoch)));
    assert_eq!(rule.judge(Entry::Probe { tag: 5 }.encode().into()), Ok(EntryEffect::Probe(5)));
}

#[test]
fn a_batch_counts_iff_it_is_of_the_epoch_next_and_of_this_past() {
    let mut rule = begun(2);
    let first = batch(2, 1, 0, b"ab");
    assert!(matches!(one(&mut rule, &first, b"ab"), EntryEffect::Accepted(_)));
    assert_eq!((rule.head(), rule.chain()), (2, first.chain()));
    assert_eq!(one(&mut rule, &first, b"ab"), EntryEffect::Void(VoidReason::NotNext));
    let gap = batch(2, 4, first.chain(), b"cd");
    assert_eq!(one(&mut rule, &gap, b"cd"), EntryEffect::Void(VoidReason::NotNext));
    let stranger = batch(2, 3, first.chain() ^ 1, b"cd");
    assert_eq!(one(&mut rule, &stranger, b"cd"), EntryEffect::Void(VoidReason::OtherPast));
    let second = batch(2, 3, first.chain(), b"cd");
    rule.judge(claim(5)).unwrap();
    assert_eq!(one(&mut rule, &second, b"cd"), EntryEffect::Void(VoidReason::OldEpoch));
    let future = batch(6, 3, first.chain(), b"cd");
    assert_eq!(one(&mut rule, &future, b"cd"), EntryEffect::Void(VoidReason::FutureEpoch));
    let third = batch(5, 3, first.chain(), b"cd");
    let mut resumed = Rule::at(2, 2, first.chain(), rule.cluster());
    assert_eq!(resumed.leader(), None);
    assert_eq!(resumed.judge(beat(2)), Ok(EntryEffect::Alive));
    assert_eq!(resumed.leader().map(|leader| leader.start), Some(20));
    resumed.judge(claim(5)).unwrap();
    assert!(matches!(one(&mut resumed, &third, b"cd"), EntryEffect::Accepted(_)));
    assert!(matches!(one(&mut rule, &third, b"cd"), EntryEffect::Accepted(_)));
    assert_eq!((rule.head(), rule.chain()), (resumed.head(), resumed.chain()));
}

#[test]
fn parts_count_once_all_are_there_in_whatever_order() {
    let body: Vec<u8> = (0..100).collect();
    let first = batch(2, 1, 0, &body);
    let parts = batch_entries(&first, &body, 64 + 40);
    assert_eq!(parts.len(), 3);
    let mut rule = begun(2);
    let judge = |rule: &mut Rule, i: usize| rule.judge(Arc::clone(&parts[i])).unwrap();
    assert_eq!(judge(&mut rule, 2), EntryEffect::Part);
    assert_eq!(judge(&mut rule, 0), EntryEffect::Part);
    assert_eq!(judge(&mut rule, 2), EntryEffect::Void(VoidReason::Repeated));
    rule.judge(beat(2)).unwrap();
    assert_eq!(rule.head(), 0);
    let EntryEffect::Accepted(accepted) = judge(&mut rule, 1) else { panic!("the last part") };
    assert_eq!(accepted.body_slices().collect::<Vec<_>>().concat(), body);
    assert_eq!(judge(&mut rule, 1), EntryEffect::Void(VoidReason::NotNext));
    assert_eq!(rule.head(), 2);
}

#[test]
fn a_claim_voids_parts_that_wait_and_another_batch_replaces_them() {
    let body: Vec<u8> = (0..100).collect();
    let parts = batch_entries(&batch(2, 1, 0, &body), &body, 64 + 50);
    let mut rule = begun(2);
    assert_eq!(rule.judge(Arc::clone(&parts[0])), Ok(EntryEffect::Part));
    rule.judge(claim(3)).unwrap();
    assert_eq!(rule.judge(Arc::clone(&parts[1])), Ok(EntryEffect::Void(VoidReason::OldEpoch)));
    let of_three = batch_entries(&batch(3, 1, 0, &body), &body, 64 + 50);
    assert_eq!(rule.judge(Arc::clone(&of_three[1])), Ok(EntryEffect::Part));
    let lying = BatchId { body_crc: 1, ..batch(3, 1, 0, &body) };
    let lying = batch_entries(&lying, &body, 64 + 50);
    assert_eq!(rule.judge(Arc::clone(&lying[0])), Ok(EntryEffect::Part));
    assert_eq!(rule.judge(Arc::clone(&lying[1])), Ok(EntryEffect::Void(VoidReason::PartsDiffer)));
    assert_eq!(rule.judge(Arc::clone(&of_three[0])), Ok(EntryEffect::Part));
    assert!(matches!(rule.judge(Arc::clone(&of_three[1])), Ok(EntryEffect::Accepted(_))));
}

#[test]
fn what_cannot_be_read_changes_nothing() {
    let mut rule = begun(2);
    let mut bytes = batch_entries(&batch(2, 1, 0, b"ab"), b"ab", 4096)[0].to_vec();
    bytes[64] ^= 1;
    assert_eq!(rule.judge(bytes.into()), Err(EntryFault::Damaged));
    assert!(matches!(one(&mut rule, &batch(2, 1, 0, b"ab"), b"ab"), EntryEffect::Accepted(_)));
}

/// A measurement, not a test: `cargo test --release -p wellspring-log shared::rule -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a figure"]
#[allow(clippy::disallowed_methods)] // a benchmark looks at the clock
fn how_many_entries_a_second() {
    for body in [100usize, 300, 3000] {
        let body = vec![7u8; body];
        let mut entries = vec![founded(), claim(1)];
        let mut previous = 0;
        for first in 0..100_000u64 {
            let batch = batch(1, first * 2 + 1, previous, &body);
            previous = batch.chain();
            entries.extend(batch_entries(&batch, &body, 1 << 20));
        }
        let begin = std::time::Instant::now();
        for _ in 0..10 {
            let mut rule = Rule::default();
            for entry in &entries {
                std::hint::black_box(rule.judge(Arc::clone(entry)).unwrap());
            }
            assert_eq!(rule.head(), 200_000);
        }
        let rate = entries.len() as f64 * 10.0 / begin.elapsed().as_secs_f64() / 1e6;
        println!("bodies of {}: {rate:.1} M entries/s", body.len());
    }
}
