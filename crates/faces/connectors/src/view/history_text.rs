//! The id of a history in JSON: as its text, because many readers of JSON round large numbers.

use serde::{Deserialize, Deserializer, Serializer, de};
use wellspring_types::HistoryId;

pub(super) fn serialize<S: Serializer>(id: &Option<HistoryId>, to: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => to.collect_str(id),
        None => to.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<HistoryId>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
}
