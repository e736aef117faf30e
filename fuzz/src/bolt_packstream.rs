//! Arbitrary bytes as PackStream: read or refused, never a panic; what is read and written again is
//! no longer than it was, and reads the same.
use wellspring_bolt::packstream::{Item, MAX_DEPTH, Reader, Writer};

/// The items of a value, whose floats are their bits.
fn items(bytes: &[u8]) -> Option<Vec<Item<'_>>> {
    let (mut reader, mut items, mut left) = (Reader::new(bytes), Vec::new(), 1_usize);
    while left > 0 {
        let item = reader.item().ok()?;
        left -= 1;
        left += match item {
            Item::List(items) => items,
            Item::Map(entries) => 2 * entries,
            Item::Struct { fields, .. } => fields,
            _ => 0,
        };
        items.push(item);
        assert!(left <= bytes.len() * MAX_DEPTH, "more is announced than there are bytes");
    }
    assert_eq!(Reader::new(bytes).value(), Ok(&bytes[..reader.at()]));
    Some(items)
}

pub fn run(bytes: &[u8]) {
    let Some(read) = items(bytes) else {
        assert!(Reader::new(bytes).value().is_err());
        return;
    };
    assert!(read.len() <= bytes.len());
    let mut written = Vec::new();
    let mut writer = Writer::new(&mut written);
    for item in &read {
        match *item {
            Item::Null => writer.null(),
            Item::Bool(value) => writer.bool(value),
            Item::Int(value) => writer.int(value),
            Item::Float(value) => writer.float(value),
            Item::Bytes(value) => writer.bytes(value),
            Item::Text(value) => writer.text(value),
            Item::List(items) => writer.list(items),
            Item::Map(entries) => writer.map(entries),
            Item::Struct { tag, fields } => writer.structure(tag, fields as u8),
        }
    }
    assert!(written.len() <= bytes.len());
    // By its form, as a NaN differs from itself.
    let again = items(&written).expect("what was written is read");
    assert_eq!(format!("{again:?}"), format!("{read:?}"));
}
