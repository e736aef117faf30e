use super::*;
use proptest::prelude::*;

fn batch_of(body: &[u8]) -> BatchId {
    BatchId {
        epoch: 3,
        first: 17,
        count: 2,
        recorded_at_us: 1_700_000_000_000_000,
        begins_segment: true,
        body_bytes: body.len() as u32,
        body_crc: crc32c::crc32c(body),
        previous: 0xabcd_ef01,
    }
}

fn samples() -> Vec<Vec<u8>> {
    let body = b"two records, as far as an entry cares";
    let cluster = ClusterId(*b"0123456789abcdef");
    vec![
        Entry::Founded { cluster, log: "orders" }.encode(),
        Entry::Claim(Claim { epoch: 4, node: "a", start: 99, url: "http://a:1" }).encode(),
        Entry::Beat(Claim { epoch: 4, node: "a", start: 99, url: "" }).encode(),
        Entry::Probe { tag: u64::MAX }.encode(),
        batch_entries(&batch_of(body), body, 4096)[0].to_vec(),
        batch_entries(&batch_of(body), body, 80)[2].to_vec(),
    ]
}

#[test]
fn entries_read_back_and_have_one_form_only() {
    for bytes in samples() {
        let entry = Entry::decode(&bytes).unwrap();
        assert_eq!(entry.encode(), bytes, "{entry:?}");
    }
    let claim = Claim { epoch: 4, node: "Knoten-ä", start: 7, url: "" };
    assert_eq!(Entry::decode(&Entry::Claim(claim).encode()), Ok(Entry::Claim(claim)));
}

#[test]
fn every_flipped_bit_every_cut_and_every_byte_too_many_is_noticed() {
    for bytes in samples() {
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Entry::decode(&bad).is_err(), "bit {bit} of {bytes:x?}");
        }
        for cut in 0..bytes.len() {
            assert!(Entry::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(Entry::decode(&longer), Err(EntryFault::Damaged));
    }
}

#[test]
fn faults_are_told_apart() {
    assert_eq!(Entry::decode(b""), Err(EntryFault::NotAnEntry));
    assert_eq!(Entry::decode(&[b'x'; 100]), Err(EntryFault::NotAnEntry));
    let mut newer = Entry::Probe { tag: 1 }.encode();
    newer[8] = 2;
    let crc = crc32c::crc32c(&newer[8..64]);
    newer[4..8].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(Entry::decode(&newer), Err(EntryFault::Version(2)));
    assert!(EntryFault::Version(2).to_string().contains("newer program"));
}

#[test]
fn checksums_alone_do_not_make_an_entry() {
    let malformed = |change: &dyn Fn(&mut Vec<u8>)| {
        let body = b"two records";
        let mut bytes = batch_entries(&batch_of(body), body, 4096)[0].to_vec();
        change(&mut bytes);
        seal(&mut bytes);
        assert!(matches!(Entry::decode(&bytes), Err(EntryFault::Malformed(_))));
    };
    malformed(&|bytes| bytes[9] = 6);
    malformed(&|bytes| bytes[10] = 2);
    malformed(&|bytes| bytes[12] = 1);
    malformed(&|bytes| bytes[14] = 0);
    malformed(&|bytes| bytes[16] = 0);
    malformed(&|bytes| bytes[24] = 0);
    malformed(&|bytes| bytes[24..32].fill(0xff));
    malformed(&|bytes| bytes[40..44].fill(0));
    malformed(&|bytes| bytes[44] += 1);
    malformed(&|bytes| bytes[48] ^= 1);
    malformed(&|bytes| bytes.push(1));
    malformed(&|bytes| bytes.truncate(64));
    malformed(&|bytes| bytes[9] = KIND_PROBE);
    malformed(&|bytes| bytes[9] = KIND_FOUNDED);
}

#[test]
fn a_batch_is_cut_into_parts_that_fit() {
    let body: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
    let batch = batch_of(&body);
    assert_eq!(batch_entries(&batch, &body, 10_064).len(), 1);
    let entries = batch_entries(&batch, &body, 4096);
    assert_eq!(entries.len(), 3);
    let mut joined = Vec::new();
    for (i, bytes) in entries.iter().enumerate() {
        assert!(bytes.len() <= 4096);
        let Ok(Entry::Batch(part)) = Entry::decode(bytes) else { panic!("a part") };
        assert_eq!((part.batch, usize::from(part.part), part.parts), (batch, i, 3));
        joined.extend_from_slice(part.body);
    }
    assert_eq!(joined, body);
}

#[test]
fn a_chain_tells_every_field_and_every_past_apart() {
    let batch = batch_of(b"x");
    let others = [
        BatchId { epoch: 4, ..batch },
        BatchId { first: 18, ..batch },
        BatchId { count: 3, ..batch },
        BatchId { recorded_at_us: 1, ..batch },
        BatchId { begins_segment: false, ..batch },
        BatchId { body_bytes: 2, ..batch },
        BatchId { body_crc: 2, ..batch },
        BatchId { previous: 2, ..batch },
    ];
    others.iter().for_each(|other| assert_ne!(other.chain(), batch.chain(), "{other:?}"));
    assert_eq!(batch.last(), 18);
}

#[test]
fn a_cluster_id_is_written_and_read_as_hex() {
    let id = ClusterId([0, 1, 2, 0xff, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xa5]);
    assert_eq!(id.to_string(), "000102ff0405060708090a0b0c0d0ea5");
    assert_eq!(id.to_string().parse(), Ok(id));
    for bad in ["", "0", "+00102ff0405060708090a0b0c0d0ea5", "000102ff0405060708090a0b0c0d0ea55"] {
        assert_eq!(bad.parse::<ClusterId>(), Err(NotAClusterId), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..7) {
        let _ = Entry::decode(&bytes);
        if bytes.len() >= ENTRY_HEADER_BYTES {
            bytes[9] = kind;
            seal(&mut bytes);
            if let Ok(entry) = Entry::decode(&bytes) {
                prop_assert_eq!(entry.encode(), bytes);
            }
        }
    }
}
