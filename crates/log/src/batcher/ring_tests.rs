//! The ring alone; `tests/batcher_model.rs` tests the two threads.

use super::ring::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn push(writer: &mut Writer, frame: &[u8]) -> Result<u64, NoRoom> {
    let mut room = writer.reserve(frame.len())?;
    let (left, right) = frame.split_at(frame.len() / 2);
    room.put(left);
    room.put(right);
    Ok(room.publish())
}

proptest! {
    /// Compares the ring with a queue of bytes: frames come out whole, once and in order, and an
    /// empty ring refuses none.
    #[test]
    fn frames_come_out_whole_once_and_in_order(
        steps in prop::collection::vec((1usize..=32, any::<bool>(), 0usize..80), 1..400)
    ) {
        let (mut writer, mut reader) = ring(64);
        let mut held: VecDeque<Vec<u8>> = VecDeque::new();
        let mut next = 0u8;
        for (len, pushes, release) in steps {
            if pushes {
                next = next.wrapping_add(1);
                let frame = vec![next; len];
                if push(&mut writer, &frame).is_ok() {
                    held.push_back(frame);
                } else {
                    // The unused end of a lap can make the ring refuse a frame although enough
                    // bytes are free in total; an empty ring never refuses.
                    prop_assert!(!held.is_empty(), "{len} bytes are refused by an empty ring");
                }
                continue;
            }
            reader.observe();
            let parts = reader.parts();
            let all: Vec<u8> = held.iter().flatten().copied().collect();
            prop_assert_eq!(parts.concat(), all);
            // Whole frames, as a sink stores them.
            let mut len = 0;
            while held.front().is_some_and(|frame| len + frame.len() <= release) {
                len += held.pop_front().map_or(0, |frame| frame.len());
            }
            reader.release(len);
        }
    }
}

#[test]
fn the_longest_piece_always_finds_room_in_an_empty_ring() {
    for offset in 0..64 {
        let (mut writer, mut reader) = ring(64);
        for _ in 0..offset {
            push(&mut writer, b"x").unwrap();
            reader.observe();
            reader.release(1);
        }
        assert!(push(&mut writer, &[7; 32]).is_ok(), "at {offset}");
        assert_eq!(writer.longest(), 32);
    }
}

#[test]
fn a_reservation_that_is_given_up_leaves_no_trace() {
    let (mut writer, mut reader) = ring(16);
    for frame in [&b"abcdefgh"[..], b"ijkl"] {
        push(&mut writer, frame).unwrap();
    }
    reader.observe();
    reader.release(8);
    // Would start at the beginning again, but is abandoned; then the lap is filled to its last
    // byte.
    writer.reserve(6).unwrap().put(b"lost");
    push(&mut writer, b"mnop").unwrap();
    push(&mut writer, b"qr").unwrap();
    reader.observe();
    assert_eq!(reader.parts(), [&b"ijklmnop"[..], b"qr"]);
}
