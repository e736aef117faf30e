//! Groups in an order that the client chose: the largest first, the first ten.

use super::bounds::Overrun;
use super::reducer::{Reducer, State};
use super::sort_key::{NoKey, sort_key};
use std::collections::BTreeMap;
use wellspring_json::push_string;

/// What groups are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupOrder {
    Key,
    /// Their states, as `distinct` sorts values; equal ones by key. Groups without a value come
    /// last.
    Value,
}

impl GroupOrder {
    /// Their names in a request.
    pub(super) const NAMED: [(&str, GroupOrder); 2] =
        [("key", GroupOrder::Key), ("value", GroupOrder::Value)];
}

/// Groups as a list, `[{"group":"maths","state":12},…]`, and not as an object by key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GroupListing {
    pub(super) order: GroupOrder,
    pub(super) is_descending: bool,
    /// Most groups that are listed.
    pub(super) limit: usize,
}

impl GroupListing {
    /// Appends the groups.
    pub(super) fn write(
        &self,
        inner: &Reducer,
        groups: &BTreeMap<Box<str>, State>,
        out: &mut Vec<u8>,
    ) -> Result<(), Overrun> {
        let mut listed: Vec<(&str, &State)> =
            groups.iter().map(|(key, state)| (&**key, state)).collect();
        match self.order {
            GroupOrder::Key if self.is_descending => listed.reverse(),
            GroupOrder::Key => {}
            GroupOrder::Value => self.sort_by_value(inner, &mut listed)?,
        }
        out.push(b'[');
        for (i, (key, state)) in listed.into_iter().take(self.limit).enumerate() {
            out.extend_from_slice(if i == 0 { b"{\"group\":" } else { b",{\"group\":" });
            push_string(out, key);
            out.extend_from_slice(b",\"state\":");
            inner.write(state, None, out)?;
            out.push(b'}');
        }
        out.push(b']');
        Ok(())
    }

    fn sort_by_value(
        &self,
        inner: &Reducer,
        listed: &mut Vec<(&str, &State)>,
    ) -> Result<(), Overrun> {
        let mut sortable = Vec::with_capacity(listed.len());
        for (key, state) in listed.drain(..) {
            let mut text = Vec::new();
            inner.write(state, None, &mut text)?;
            let text = String::from_utf8(text).unwrap_or_default();
            let place = match sort_key(&text) {
                _ if text == "null" => None,
                Ok(place) => Some(place),
                Err(NoKey::NotText) => None,
                Err(NoKey::TooDeep) => return Err(Overrun::Depth),
            };
            sortable.push((place, key, state));
        }
        sortable.sort_by(|(a, ..), (b, ..)| match (a, b) {
            (Some(a), Some(b)) if self.is_descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        listed.extend(sortable.into_iter().map(|(_, key, state)| (key, state)));
        Ok(())
    }
}
