//! Arbitrary bytes as a record: parsed or refused, never a panic; what parses reads back.
use wellspring_log::RecordView;

pub fn run(bytes: &[u8]) {
    let mut fitted = bytes.to_vec();
    if fitted.len() >= 32 {
        let len = (fitted.len() as u32).to_le_bytes();
        fitted[..4].copy_from_slice(&len);
    }
    for candidate in [bytes, &fitted] {
        if let Ok(view) = RecordView::parse(candidate) {
            assert_eq!(view.tags().count(), view.tag_count());
            let metadata: usize = view.metadata().map(|(k, v)| k.len() + v.len()).sum();
            assert!(view.data().len() + metadata <= candidate.len());
            let _ = (view.event_type(), view.id(), view.request_key(), view.kind());
        }
    }
}
