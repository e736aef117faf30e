//! The memory for request bodies and unsent answers: charged as bytes arrive, not as announced.
//! Both connection loops share one account.

use crate::limits::{HeldMemory, Payer};
use crate::stats::{RefusalReason, Stats};
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use hyper::{HeaderMap, Uri, Version};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bodies and answers up to this size are free: every connection's read buffer is about as large.
pub(crate) const FREE_BYTES: usize = 16 << 10;
/// The same for an answer over HTTP/2, where a connection may have hundreds.
const FREE_OF_STREAM_BYTES: usize = 512;
/// Memory of a request beyond its body that is free.
const FREE_OF_WORK_BYTES: usize = 512;
/// Memory of a request over HTTP/2 beyond its head and body.
const STREAM_BYTES: usize = 4 << 10;
/// Overhead of a header field beyond its name and value (RFC 9113, section 6.5.2).
const FIELD_BYTES: usize = 32;

/// The memory that bodies and answers may take, shared by all threads.
#[derive(Clone)]
pub(crate) struct BodyMemory {
    stats: Arc<Stats>,
    limit: usize,
}

impl BodyMemory {
    /// At most `limit` bytes, counted in `stats.body_bytes`.
    pub(crate) fn new(stats: &Arc<Stats>, limit: usize) -> BodyMemory {
        BodyMemory { stats: Arc::clone(stats), limit }
    }
}

/// An account of charged memory.
struct MemoryAccount {
    memory: BodyMemory,
    bytes: usize,
    share: HeldMemory,
}

/// The charge of one body or answer, returned when dropped.
pub(crate) struct Charge {
    /// On the heap: small bodies and answers are never charged, and carry this along.
    charged: Option<Box<MemoryAccount>>,
    /// Sizes up to this are free.
    free: usize,
}

impl Default for Charge {
    fn default() -> Charge {
        Charge { charged: None, free: FREE_BYTES }
    }
}

impl Charge {
    /// For a body over a connection of this version.
    pub(crate) fn of_body(version: Version) -> Charge {
        if version == Version::HTTP_2 {
            Charge { charged: None, free: 0 }
        } else {
            Charge::default()
        }
    }

    /// For what a request is parsed into and works on.
    pub(crate) fn of_work() -> Charge {
        Charge { charged: None, free: FREE_OF_WORK_BYTES }
    }

    /// For a request with this head. `None` over HTTP/1.1, where the head lies in the connection's
    /// only buffer.
    ///
    /// # Errors
    /// As [`raise`](Self::raise).
    pub(crate) fn of_head(
        memory: &BodyMemory,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<Charge>, Box<Problem>> {
        if version != Version::HTTP_2 {
            return Ok(None);
        }
        let mut charge = Charge::of_body(version);
        let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let fields: usize = fields.map(|bytes| bytes + FIELD_BYTES).sum();
        let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
        charge.raise(memory, STREAM_BYTES + path + fields)?;
        Ok(Some(charge))
    }

    /// Sets the charge to `bytes`, not counted for any payer.
    ///
    /// # Errors
    /// 503: the memory for all bodies and answers is exhausted. A retry helps.
    pub(crate) fn raise(&mut self, memory: &BodyMemory, bytes: usize) -> Result<(), Box<Problem>> {
        self.raise_for(&Payer::default(), memory, bytes)
    }

    /// Sets the charge to `bytes`, also counted for this payer.
    ///
    /// # Errors
    /// As [`raise`](Self::raise); 429: this payer's share is exhausted. A retry helps.
    pub(crate) fn raise_for(
        &mut self,
        payer: &Payer,
        memory: &BodyMemory,
        bytes: usize,
    ) -> Result<(), Box<Problem>> {
        let charged = self.charged.as_ref().map_or(0, |charged| charged.bytes);
        if bytes <= self.free.max(charged) {
            return Ok(());
        }
        let more = (bytes - charged) as i64;
        let of_payer =
            || Box::new(MemoryAccount { memory: memory.clone(), bytes: 0, share: payer.memory() });
        let now = self.charged.get_or_insert_with(of_payer);
        now.share.set(bytes)?;
        let counter = &memory.stats.body_bytes;
        if counter.fetch_add(more, Relaxed) + more > memory.limit as i64 {
            counter.fetch_sub(more, Relaxed);
            // A smaller charge always fits.
            let _ = now.share.set(charged);
            memory.stats.refusals.count(RefusalReason::BodyMemory);
            return Err(problem::OVERLOADED
                .because("request bodies and unsent responses use all the memory reserved for them")
                .limit(memory.limit as u64));
        }
        now.bytes = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(MemoryAccount { memory, bytes, .. }) = self.charged.as_deref() {
            memory.stats.body_bytes.fetch_sub(*bytes as i64, Relaxed);
        }
    }
}

/// The bytes of an answer, charged until they are sent; otherwise slow readers could exhaust memory
/// with small requests.
///
/// # Errors
/// As [`Charge::raise_for`].
pub(crate) fn charged(
    memory: &BodyMemory,
    payer: &Payer,
    version: Version,
    bytes: Bytes,
) -> Result<Bytes, Box<Problem>> {
    /// Bytes that return their charge when the last of them is dropped.
    struct ConcurrentShare(Bytes, #[allow(dead_code)] Charge);

    impl AsRef<[u8]> for ConcurrentShare {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    let free = if version == Version::HTTP_2 { FREE_OF_STREAM_BYTES } else { FREE_BYTES };
    if bytes.len() <= free {
        return Ok(bytes);
    }
    let mut charge = Charge { charged: None, free };
    charge.raise_for(payer, memory, bytes.len())?;
    Ok(Bytes::from_owner(ConcurrentShare(bytes, charge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(limit: usize) -> (BodyMemory, Arc<Stats>) {
        let stats = Arc::new(Stats::new(1, Vec::new(), 0));
        (BodyMemory::new(&stats, limit), stats)
    }

    fn held(stats: &Stats) -> i64 {
        stats.body_bytes.load(Relaxed)
    }

    #[test]
    fn an_answer_is_charged_until_its_last_byte_is_gone() {
        let (memory, stats) = memory(50_000);
        let answer = |bytes: usize| {
            charged(&memory, &Payer::default(), Version::HTTP_11, vec![7; bytes].into())
        };
        let mut large = answer(40_000).unwrap();
        assert_eq!(held(&stats), 40_000);
        let first = large.split_to(10);
        assert!(answer(20_000).is_err());
        assert_eq!(stats.refusals.of(RefusalReason::BodyMemory), 1);
        drop(large);
        assert_eq!(held(&stats), 40_000, "some of it is still on its way");
        drop(first);
        assert_eq!(held(&stats), 0);
        let small: Vec<Bytes> = (0..10).map(|_| answer(FREE_BYTES).unwrap()).collect();
        assert_eq!(held(&stats), 0, "small ones are free: {}", small.len());
    }

    #[test]
    fn every_stream_of_a_connection_of_many_is_charged() {
        let (memory, stats) = memory(10_000);
        let uri = Uri::from_static("/v1/head");
        let mut headers = HeaderMap::new();
        headers.insert("x-long", "y".repeat(1_000).parse().unwrap());
        let head = |version| Charge::of_head(&memory, version, &uri, &headers);
        let one = head(Version::HTTP_11).unwrap();
        assert_eq!(held(&stats), 0);
        let two = head(Version::HTTP_2).unwrap();
        let expected = STREAM_BYTES + "/v1/head".len() + "x-long".len() + 1_000 + FIELD_BYTES;
        assert_eq!(held(&stats), expected as i64);
        assert!(head(Version::HTTP_2).is_err());
        let mut body = Charge::of_body(Version::HTTP_2);
        body.raise(&memory, 100).unwrap();
        let answer =
            charged(&memory, &Payer::default(), Version::HTTP_2, vec![7; 600].into()).unwrap();
        assert_eq!(held(&stats), expected as i64 + 700);
        drop((one, two, body, answer));
        assert_eq!(held(&stats), 0);
    }
}
