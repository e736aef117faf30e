//! The body of an entry: nothing (a new orderer's first entry), a frame behind a 1, or behind a 2
//! the members:
//!
//! ```text
//! configurations u8 | for each: count u16, ids u64
//! | count u16 of all nodes, for each: id u64 | name: length u16, bytes | URL: length u16, bytes
//! ```

use super::{Frame, Types};
use crate::frame::take_bytes;
use crate::members::MemberAddress;
use bytes::{Buf as _, BufMut as _, Bytes};
use openraft::{EntryPayload, Membership};
use std::collections::{BTreeMap, BTreeSet};

const FRAME: u8 = 1;
const MEMBERS: u8 = 2;

pub(super) fn encode(payload: EntryPayload<Types>) -> Bytes {
    match payload {
        EntryPayload::Blank => Bytes::new(),
        EntryPayload::Normal(Frame(body)) => {
            assert_eq!(body.first(), Some(&FRAME), "a frame begins with its kind");
            body
        }
        EntryPayload::Membership(members) => {
            let mut out = vec![MEMBERS, members.get_joint_config().len() as u8];
            for config in members.get_joint_config() {
                put_length(config.len(), &mut out);
                config.iter().for_each(|id| out.put_u64_le(*id));
            }
            put_length(members.nodes().count(), &mut out);
            for (id, MemberAddress { name, url }) in members.nodes() {
                out.put_u64_le(*id);
                for text in [name, url] {
                    put_length(text.len(), &mut out);
                    out.put_slice(text.as_bytes());
                }
            }
            out.into()
        }
    }
}

fn put_length(length: usize, out: &mut Vec<u8>) {
    out.put_u16_le(u16::try_from(length).expect("groups are small, and names short"));
}

pub(super) fn decode(body: Bytes) -> Option<EntryPayload<Types>> {
    match body.first() {
        None => Some(EntryPayload::Blank),
        Some(&FRAME) => Some(EntryPayload::Normal(Frame(body))),
        Some(&MEMBERS) => decode_members(body.slice(1..)).map(EntryPayload::Membership),
        Some(_) => None,
    }
}

fn decode_members(mut body: Bytes) -> Option<Membership<u64, MemberAddress>> {
    let configs = body.try_get_u8().ok()?;
    let configs: Vec<BTreeSet<u64>> =
        (0..configs).map(|_| ids(&mut body)).collect::<Option<_>>()?;
    let count = body.try_get_u16_le().ok()?;
    let node = |_| {
        let id = body.try_get_u64_le().ok()?;
        Some((id, MemberAddress { name: text(&mut body)?, url: text(&mut body)? }))
    };
    let nodes: BTreeMap<u64, MemberAddress> = (0..count).map(node).collect::<Option<_>>()?;
    // The library would add missing nodes by itself.
    let is_sound = body.is_empty() && configs.iter().flatten().all(|id| nodes.contains_key(id));
    is_sound.then(|| Membership::new(configs, nodes))
}

fn ids(body: &mut Bytes) -> Option<BTreeSet<u64>> {
    let count = body.try_get_u16_le().ok()?;
    (0..count).map(|_| body.try_get_u64_le().ok()).collect()
}

fn text(body: &mut Bytes) -> Option<String> {
    let length = usize::from(body.try_get_u16_le().ok()?);
    String::from_utf8(take_bytes(body, length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_as_they_were_written() {
        let config = |ids: &[u64]| BTreeSet::from_iter(ids.iter().copied());
        let address = |id| MemberAddress { name: format!("n{id}"), url: "http://x:1".into() };
        let nodes: BTreeMap<u64, MemberAddress> = [1, 2, 3, 4].map(|id| (id, address(id))).into();
        let members = Membership::new(vec![config(&[1, 2, 3]), config(&[2, 3])], nodes);
        for payload in [
            EntryPayload::Blank,
            EntryPayload::Normal(Frame(Bytes::from_static(b"\x01frame"))),
            EntryPayload::Membership(members),
        ] {
            let body = encode(payload.clone());
            assert_eq!(decode(body.clone()), Some(payload));
            if body.first() == Some(&MEMBERS) {
                for end in 1..body.len() {
                    assert_eq!(decode(body.slice(..end)), None);
                }
            }
        }
        assert_eq!(decode(Bytes::from_static(b"\x03")), None);
    }
}
