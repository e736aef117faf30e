//! Parsing the bodies of requests.

use crate::view::{
    Currency, ItemChanges, ItemId, MAX_STOCK, NewItem, TopicRef, description_fault, name_fault,
    parse_price, sku_fault,
};
use wellspring_host::wire::json::{Cursor, ReadResult, document, missing, once, rule, unknown};

/// Largest body about one object, in bytes: room for the longest description with every character
/// escaped.
pub(super) const MAX_BODY_BYTES: usize = 128 << 10;

/// An item to add, in this currency by default.
pub(super) fn read_item(body: &[u8], default: Currency) -> ReadResult<NewItem> {
    const KNOWN: &str = "sku, name, description, topic, price, currency, stock";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut sku, mut name, mut description) = (None, None, None);
        let (mut topic, mut price, mut currency, mut stock) = (None, None, None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "sku" | "description" | "currency" | "stock" if value.null()? => Ok(()),
                "sku" => once(&mut sku, at, text(value, sku_fault)?),
                "name" => once(&mut name, at, text(value, name_fault)?),
                "description" => once(&mut description, at, text(value, description_fault)?),
                "topic" => once(&mut topic, at, read_topic(value)?),
                "price" => once(&mut price, at, (at, read_price(value)?)),
                "currency" => once(&mut currency, at, read_currency(value)?),
                "stock" => once(&mut stock, at, amount(value, 0)?),
                _ => unknown(at, KNOWN),
            }
        })?;
        let Some(name) = name else { return missing("name", start) };
        let Some(topic) = topic else { return missing("topic", start) };
        let Some((at, price)) = price else { return missing("price", start) };
        let currency = currency.unwrap_or(default);
        let price_minor = parse_price(&price, currency)
            .or_else(|fault| rule(at, fault.to_string()).map_err(|fault| fault.within("price")))?;
        let (description, stock) = (description.unwrap_or_default(), stock.unwrap_or(0));
        Ok(NewItem { sku, name, description, topic, price_minor, currency, stock })
    })
}

/// Changes of an item.
pub(super) fn read_changes(body: &[u8]) -> ReadResult<ItemChanges> {
    const KNOWN: &str = "name, description, topic, price, withdrawn";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut name, mut description, mut topic) = (None, None, None);
        let (mut price, mut withdrawn) = (None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "name" => once(&mut name, at, text(value, name_fault)?),
                "description" => once(&mut description, at, text(value, description_fault)?),
                "topic" => once(&mut topic, at, read_topic(value)?),
                "price" => once(&mut price, at, read_price(value)?),
                "withdrawn" => once(&mut withdrawn, at, value.boolean()?),
                "stock" => rule(at, "cannot be set here; POST the difference to the item's /stock"),
                "sku" | "currency" => rule(at, "of an item cannot be changed"),
                _ => unknown(at, KNOWN),
            }
        })?;
        let changes = ItemChanges { name, description, topic, price, withdrawn };
        if changes == ItemChanges::default() {
            return rule(start, format!("names nothing to change; known fields: {KNOWN}"));
        }
        Ok(changes)
    })
}

/// The change of a stock.
pub(super) fn read_stock(body: &[u8]) -> ReadResult<i64> {
    document(body, |cursor| {
        let start = cursor.at();
        let mut by = None;
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "by" => once(&mut by, at, change(value)?),
                _ => unknown(at, "by"),
            }
        })?;
        by.map_or_else(|| missing("by", start), Ok)
    })
}

/// An item to order, and the amount.
pub(super) fn read_order(body: &[u8]) -> ReadResult<(ItemId, u32)> {
    document(body, |cursor| {
        let start = cursor.at();
        let (mut item, mut ordered) = (None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "item" => once(&mut item, at, id(value)?),
                "amount" => once(&mut ordered, at, amount(value, 1)?),
                _ => unknown(at, "item, amount"),
            }
        })?;
        let Some(item) = item else { return missing("item", start) };
        Ok((item, ordered.unwrap_or(1)))
    })
}

pub(super) fn read_topic_name(body: &[u8]) -> ReadResult<String> {
    document(body, |cursor| {
        let start = cursor.at();
        let mut name = None;
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "name" => once(&mut name, at, text(value, name_fault)?),
                _ => unknown(at, "name"),
            }
        })?;
        name.map_or_else(|| missing("name", start), Ok)
    })
}

fn text(value: &mut Cursor<'_>, fault: fn(&str) -> Option<String>) -> ReadResult<String> {
    let at = value.at();
    let text = value.string()?.into_owned();
    match fault(&text) {
        None => Ok(text),
        Some(fault) => rule(at, fault),
    }
}

fn id(value: &mut Cursor<'_>) -> ReadResult<u32> {
    let at = value.at();
    match u32::try_from(value.u64()?) {
        Ok(id) if id > 0 => Ok(id),
        _ => rule(at, format!("must be from 1 to {}", u32::MAX)),
    }
}

fn amount(value: &mut Cursor<'_>, least: u32) -> ReadResult<u32> {
    let at = value.at();
    match u32::try_from(value.u64()?) {
        Ok(amount) if (least..=MAX_STOCK).contains(&amount) => Ok(amount),
        _ => rule(at, format!("must be from {least} to {MAX_STOCK}")),
    }
}

fn change(value: &mut Cursor<'_>) -> ReadResult<i64> {
    let at = value.at();
    if !value.next_is(b'-') && !(b'0'..=b'9').any(|digit| value.next_is(digit)) {
        return value.wrong("a number");
    }
    let raw = value.raw()?;
    let most = i64::from(MAX_STOCK);
    let by = std::str::from_utf8(raw).ok().and_then(|digits| digits.parse::<i64>().ok());
    match by.filter(|by| (-most..=most).contains(by) && *by != 0) {
        Some(by) => Ok(by),
        None => rule(at, format!("must be a whole number from -{most} to {most}, and not 0")),
    }
}

fn read_topic(value: &mut Cursor<'_>) -> ReadResult<TopicRef> {
    if value.next_is(b'"') {
        return text(value, name_fault).map(TopicRef::Name);
    }
    if (b'0'..=b'9').any(|digit| value.next_is(digit)) {
        return id(value).map(TopicRef::Id);
    }
    value.wrong("the number or the name of a topic")
}

/// A price is read exactly as written, as a number or a string: never as a binary fraction.
fn read_price(value: &mut Cursor<'_>) -> ReadResult<String> {
    if value.next_is(b'"') {
        return Ok(value.string()?.into_owned());
    }
    if value.next_is(b'-') || (b'0'..=b'9').any(|digit| value.next_is(digit)) {
        return Ok(String::from_utf8_lossy(value.raw()?).into_owned());
    }
    value.wrong("a decimal such as 19.90")
}

fn read_currency(value: &mut Cursor<'_>) -> ReadResult<Currency> {
    let at = value.at();
    let code = value.string()?;
    Currency::in_use(&code).map_or_else(
        || {
            rule(
                at,
                format!("must be a code of ISO 4217 that is in use, such as EUR, not {code:?}"),
            )
        },
        Ok,
    )
}

/// Parses a body as each of these; tells which succeed. For the fuzz targets.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn reads(body: &[u8]) -> [bool; 5] {
    [
        read_item(body, Currency::USD).is_ok(),
        read_changes(body).is_ok(),
        read_stock(body).is_ok(),
        read_order(body).is_ok(),
        read_topic_name(body).is_ok(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::wire::problem::of_fault;

    fn fault(body: &str) -> (String, String) {
        let fault = read_item(body.as_bytes(), Currency::USD).unwrap_err();
        let problem = of_fault(&fault, body.as_bytes());
        (problem.field.unwrap_or_default(), problem.detail)
    }

    #[test]
    fn an_item_is_read_without_a_binary_fraction() {
        for price in ["19.9", "\"19.90\"", "19.900"] {
            let body = format!(r#"{{"name":"a","topic":"t","price":{price},"stock":3}}"#);
            let item = read_item(body.as_bytes(), Currency::USD).unwrap();
            assert_eq!((item.price_minor, item.stock, item.sku), (1990, 3, None));
            assert_eq!(item.topic, TopicRef::Name("t".to_owned()));
        }
        let yen = br#"{"sku":"A","name":"a","topic":2,"price":500,"currency":"JPY"}"#;
        let item = read_item(yen, Currency::USD).unwrap();
        assert_eq!(
            (item.price_minor, item.currency.as_str(), item.topic),
            (500, "JPY", TopicRef::Id(2))
        );
    }

    #[test]
    fn a_bad_field_is_named() {
        let with = |field: &str, value: &str| {
            let mut fields = vec![("name", "\"a\""), ("topic", "1"), ("price", "1")];
            fields.retain(|(name, _)| *name != field);
            fields.push((field, value));
            let fields: Vec<_> = fields.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect();
            format!("{{{}}}", fields.join(","))
        };
        for (field, value, says) in [
            ("name", "\"\"", "must not be empty"),
            ("name", "7", "must be"),
            ("topic", "0", "from 1"),
            ("topic", "null", "number or the name"),
            ("price", "1.999", "2 decimals of USD"),
            ("price", "-1", "not be negative"),
            ("price", "1e3", "a decimal"),
            ("price", "true", "a decimal"),
            ("price", "99999999999999999999", "at most"),
            ("currency", "\"EURO\"", "ISO 4217"),
            ("stock", "-1", "must be"),
            ("stock", "4000000000", "from 0 to"),
            ("sku", "\"a b\"", "letters, digits"),
            ("colour", "1", "not a known field"),
        ] {
            let (at, detail) = fault(&with(field, value));
            assert_eq!(at, field, "{detail}");
            assert!(detail.contains(says), "{detail}");
        }
        assert_eq!(fault("{}").0, "name");
        assert!(read_stock(br#"{"by":0}"#).is_err());
        assert_eq!(read_stock(br#"{"by":-3}"#).unwrap(), -3);
        assert_eq!(read_order(br#"{"item":3}"#).unwrap(), (3, 1));
        assert!(read_order(br#"{"item":3,"amount":0}"#).is_err());
        assert!(read_changes(br"{}").is_err());
        assert!(read_changes(br#"{"stock":4}"#).is_err());
    }
}
