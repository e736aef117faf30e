//! Assigns keys to partitions as Kafka's own clients do, so that other producers with the same keys
//! use the same partitions.

/// The hash of Kafka's partitioner: MurmurHash2, 32 bits, with Kafka's seed
/// (`org.apache.kafka.common.utils.Utils.murmur2`).
#[must_use]
pub fn murmur2(key: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    // Kafka uses 32-bit arithmetic; keys of 4 GiB do not exist.
    let mut hash = SEED ^ key.len() as u32;
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    (hash ^ (hash >> 15)).cast_signed()
}

/// The partition of a key, given their number, as chosen by Kafka's default partitioner.
///
/// # Panics
/// If there are no partitions, which no topic allows.
#[must_use]
pub fn partition_of(key: &[u8], partitions: i32) -> i32 {
    assert!(partitions > 0, "a topic has partitions");
    (murmur2(key) & i32::MAX) % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of Kafka's `UtilsTest.testMurmur2`, and keys of every length modulo four, taken
    /// from its `Utils.murmur2`.
    #[test]
    fn hashes_are_those_of_kafka() {
        let known: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key), hash, "{:?}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn partitions_are_never_negative_and_all_are_used() {
        let mut used = [0_u32; 7];
        for n in 0..7_000 {
            let partition = partition_of(format!("key-{n}").as_bytes(), 7);
            used[usize::try_from(partition).expect("not negative")] += 1;
        }
        assert!(used.iter().all(|count| (700..1_300).contains(count)), "{used:?}");
    }
}
