use super::*;
use proptest::prelude::*;

/// A value, to compare what was written with what is read.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
    Struct(u8, Vec<Value>),
}

fn write(value: &Value, writer: &mut Writer<'_>) {
    match value {
        Value::Null => writer.null(),
        Value::Bool(value) => writer.bool(*value),
        Value::Int(value) => writer.int(*value),
        Value::Float(value) => writer.float(*value),
        Value::Bytes(value) => writer.bytes(value),
        Value::Text(value) => writer.text(value),
        Value::List(items) => {
            writer.list(items.len());
            items.iter().for_each(|item| write(item, writer));
        }
        Value::Map(entries) => {
            writer.map(entries.len());
            for (key, value) in entries {
                writer.text(key);
                write(value, writer);
            }
        }
        Value::Struct(tag, fields) => {
            writer.structure(*tag, fields.len() as u8);
            fields.iter().for_each(|field| write(field, writer));
        }
    }
}

fn read(reader: &mut Reader<'_>) -> Value {
    let item = reader.item().expect("well formed");
    let mut values = |count: usize| (0..count).map(|_| read(reader)).collect::<Vec<_>>();
    match item {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Bool(value),
        Item::Int(value) => Value::Int(value),
        Item::Float(value) => Value::Float(value),
        Item::Bytes(value) => Value::Bytes(value.to_vec()),
        Item::Text(value) => Value::Text(value.to_owned()),
        Item::List(items) => Value::List(values(items)),
        Item::Struct { tag, fields } => Value::Struct(tag, values(fields)),
        Item::Map(entries) => {
            let entry = |_| match read(reader) {
                Value::Text(key) => (key, read(reader)),
                other => panic!("{other:?} is no key"),
            };
            Value::Map((0..entries).map(entry).collect())
        }
    }
}

fn written(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut Writer::new(&mut out));
    out
}

fn fault_of(bytes: &[u8]) -> PackFaultKind {
    Reader::new(bytes).value().expect_err("malformed").kind
}

#[test]
fn integers_take_the_fewest_bytes_and_keep_their_value() {
    let cases = [(-16, 1), (127, 1), (-17, 2), (-128, 2), (128, 3), (-129, 3), (32_767, 3)];
    let wide = [(32_768, 5), (i64::from(i32::MIN), 5), (i64::MIN, 9), (i64::MAX, 9)];
    for (int, bytes) in cases.into_iter().chain(wide) {
        let written = written(&Value::Int(int));
        assert_eq!((written.len(), read(&mut Reader::new(&written))), (bytes, Value::Int(int)));
    }
    // Wider than necessary is accepted.
    assert_eq!(Reader::new(&[0xC9, 0x00, 0x2A]).item(), Ok(Item::Int(42)));
}

#[test]
fn a_declared_length_beyond_the_bytes_is_refused() {
    for marker in [0xCE, 0xD2, 0xD6, 0xDA] {
        let bytes = [marker, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(fault_of(&bytes), PackFaultKind::Truncated, "{marker:#X}");
    }
    // A map needs two bytes for each entry.
    assert_eq!(fault_of(&[0xA2, 0x81, b'a', 0x01]), PackFaultKind::Truncated);
    assert_eq!(fault_of(&[]), PackFaultKind::Truncated);
}

#[test]
fn what_cannot_be_read_says_why_and_where() {
    assert_eq!(fault_of(&[0xC4]), PackFaultKind::Marker(0xC4));
    assert_eq!(fault_of(&[0x82, 0xC3, 0x28]), PackFaultKind::NotUtf8);
    assert_eq!(fault_of(&[0xA1, 0x01, 0x01]), PackFaultKind::KeyNotText);
    let fault = Reader::new(&[0x92, 0x01, 0xDF]).value().expect_err("malformed");
    assert_eq!(fault.to_string(), "the marker 0xDF is not assigned, at byte 2");
}

/// Lists that end with a list are as deep as lists that begin with one: a caller that recurses
/// relies on it.
#[test]
fn values_are_nested_at_most_127_deep() {
    let deep = |levels: usize| {
        let mut bytes = vec![0x91; levels];
        bytes.push(0xC0);
        bytes
    };
    assert_eq!(Reader::new(&deep(MAX_DEPTH)).skip(), Ok(()));
    assert_eq!(fault_of(&deep(MAX_DEPTH + 1)), PackFaultKind::TooDeep);
    let beside: Vec<u8> = [0xD4, 200].into_iter().chain([0x90; 200]).collect();
    assert_eq!(Reader::new(&beside).skip(), Ok(()));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<i16>().prop_map(|int| Value::Int(int.into())),
        (-1e300..1e300).prop_map(Value::Float),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
        any::<String>().prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 64, 20, |inner| {
        let pairs = prop::collection::vec((any::<String>(), inner.clone()), 0..20);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::List),
            pairs.prop_map(Value::Map),
            (any::<u8>(), prop::collection::vec(inner, 0..15))
                .prop_map(|(tag, fields)| Value::Struct(tag, fields)),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in any_value()) {
        let bytes = written(&value);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(read(&mut reader), value);
        prop_assert!(reader.is_at_end());
        prop_assert_eq!(Reader::new(&bytes).value(), Ok(&bytes[..]));
    }

    #[test]
    fn what_is_cut_anywhere_is_truncated(value in any_value(), at in any::<prop::sample::Index>()) {
        let bytes = written(&value);
        prop_assert_eq!(fault_of(&bytes[..at.index(bytes.len())]), PackFaultKind::Truncated);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new(&bytes);
        while !reader.is_at_end() && reader.skip().is_ok() {}
    }
}
