//! Arbitrary bytes as a request for projections, folded over a few events.
use wellspring_face_events::view::{FoldEvent, Projections};

pub fn run(input: (Vec<u8>, Vec<u8>)) {
    let (body, data) = input;
    let Ok(mut projections) = Projections::parse(&body) else { return };
    let _ = (projections.union_query(), projections.after());
    let is_json = serde_json::from_slice::<serde_json::Value>(&data).is_ok();
    for position in 1..4 {
        projections.fold(&FoldEvent {
            position,
            event_type: "A",
            tags: &["a:1", "b"],
            data: &data,
            is_json,
            recorded_at_us: position,
        });
    }
    if let Ok(answer) = projections.finish(3) {
        assert!(serde_json::from_slice::<serde_json::Value>(&answer).is_ok(), "{answer:?}");
    }
}
