//! Arbitrary bytes as a record, also with the length that it has and with the flag of sealed parts:
//! parsed or refused, never a panic; what parses reads back, and its readers get no sealed part.
use wellspring_format::record::{FLAG_SEALED, HEADER_BYTES};
use wellspring_log::RecordView;

pub fn run(bytes: &[u8]) {
    let mut fitted = bytes.to_vec();
    if fitted.len() >= HEADER_BYTES {
        let len = (fitted.len() as u32).to_le_bytes();
        fitted[..4].copy_from_slice(&len);
    }
    let mut sealed = fitted.clone();
    sealed.get_mut(27).into_iter().for_each(|flags| *flags |= FLAG_SEALED);
    for candidate in [bytes, &fitted, &sealed] {
        if let Ok(view) = RecordView::parse(candidate) {
            assert_eq!(view.tags().count(), view.tag_count());
            let metadata: usize = view.metadata().map(|(k, v)| k.len() + v.len()).sum();
            let parts: usize = view.sealed_parts().map(|part| part.ciphertext.len()).sum();
            assert!(view.data().len() + metadata + parts <= candidate.len());
            assert!(view.sealed_parts().all(|part| usize::from(part.tag) < view.tag_count()));
            let _ = (view.event_type(), view.id(), view.request_key(), view.kind());
            let (mut out, data) = (Vec::new(), view.data().to_vec());
            view.push_for_readers(&mut out, view.kind(), &data);
            let given = RecordView::parse(&out).expect("readers can read it");
            assert!(given.sealed_parts().is_empty() && given.data() == view.data());
        }
    }
}
