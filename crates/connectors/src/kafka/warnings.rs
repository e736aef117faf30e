//! Warnings about a Kafka sink that works.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use wellspring_kafka::{Retention, TopicDescription};
use wellspring_types::Position;

/// Warnings about a Kafka sink that works. Written by its thread, read by any.
#[derive(Debug, Default)]
pub struct KafkaWarnings {
    /// The topic does not retain events recorded before this, µs since 1970 UTC.
    kept_from_us: AtomicU64,
    /// The last event delivered although the topic does not retain it; 0 for none.
    expired: AtomicU64,
    /// Set when the topic has gained partitions.
    grown: Mutex<Option<String>>,
}

impl KafkaWarnings {
    /// The warnings, each a sentence without its full stop. Empty if there are none.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let expired = self.expired.load(Relaxed);
        let expired = (expired > 0).then(|| {
            format!(
                "events up to position {expired} are older than the topic's retention.ms: as records carry the time \
                 at which events were recorded, Kafka deletes them soon after they are delivered, unless the topic \
                 has message.timestamp.type=LogAppendTime"
            )
        });
        let grown = self.grown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        expired.into_iter().chain(grown).collect()
    }

    /// Notes a description of the topic, of which the sink uses this many partitions.
    pub(super) fn described(&self, topic: &TopicDescription, partitions: i32, now_us: u64) {
        let kept_from_us = match topic.retention {
            Retention::Unlimited => 0,
            Retention::Limited(kept) => {
                now_us.saturating_sub(u64::try_from(kept.as_micros()).unwrap_or(u64::MAX))
            }
        };
        self.kept_from_us.store(kept_from_us, Relaxed);
        if kept_from_us == 0 {
            self.expired.store(0, Relaxed);
        }
        let grown = (topic.partitions != partitions).then(|| {
            format!(
                "the topic has {} partitions now; the sink delivers to {partitions} of them until it is restarted, so \
                 that events of one key stay in order",
                topic.partitions
            )
        });
        *self.grown.lock().unwrap_or_else(PoisonError::into_inner) = grown;
    }

    /// Notes an event about to be delivered.
    pub(super) fn pushed(&self, position: Position, recorded_at_us: u64) {
        if recorded_at_us < self.kept_from_us.load(Relaxed) {
            self.expired.store(position, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn topic(retention: Retention, partitions: i32) -> TopicDescription {
        TopicDescription {
            id: [1; 16],
            partitions,
            replicas: 1,
            max_message_bytes: 1_000,
            retention,
            is_compacted: false,
        }
    }

    #[test]
    fn events_older_than_retention_are_warned_of_until_everything_is_kept() {
        let warnings = KafkaWarnings::default();
        let limited = Retention::Limited(Duration::from_secs(10));
        warnings.described(&topic(limited, 1), 1, 100_000_000);
        warnings.pushed(7, 90_000_000);
        assert!(warnings.texts().is_empty());
        warnings.pushed(8, 89_999_999);
        let texts = warnings.texts();
        assert!(texts.len() == 1 && texts[0].contains("position 8"), "{texts:?}");
        warnings.described(&topic(Retention::Unlimited, 1), 1, 100_000_000);
        warnings.pushed(9, 0);
        assert!(warnings.texts().is_empty());
    }

    #[test]
    fn a_topic_with_more_partitions_is_warned_of() {
        let warnings = KafkaWarnings::default();
        warnings.described(&topic(Retention::Unlimited, 5), 3, 0);
        let texts = warnings.texts();
        assert!(texts.len() == 1 && texts[0].contains("5 partitions"), "{texts:?}");
        warnings.described(&topic(Retention::Unlimited, 5), 5, 0);
        assert!(warnings.texts().is_empty());
    }
}
