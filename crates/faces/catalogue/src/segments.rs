//! Variable segments of paths.

use crate::problems;
use crate::view::{ItemId, MAX_STOCK, OrderNumber, TopicId};
use wellspring_host::http::contract::Segment;
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{self, Problem};

/// A number in canonical form.
fn number(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_number)
}

const NUMBER: Values = Values::Matching("^[1-9][0-9]{0,9}$");

fn id(text: &str, field: &'static str) -> Result<u32, Box<Problem>> {
    number(text).ok_or_else(|| {
        let detail = format!("{field} must be a positive integer, not {text:?}");
        problem::BAD_REQUEST.because(detail).field(field)
    })
}

pub(crate) static ITEM: Segment<ItemId> = Segment {
    name: "item",
    what: "Number of the item.",
    values: NUMBER,
    read: |text| id(text, "item"),
};

pub(crate) static TOPIC: Segment<TopicId> = Segment {
    name: "topic",
    what: "Number of the topic.",
    values: NUMBER,
    read: |text| id(text, "topic"),
};

/// Number of units to put in stock or take out.
pub(crate) static AMOUNT: Segment<u32> = Segment {
    name: "amount",
    what: "Number of units, at least 1.",
    values: NUMBER,
    read: |text| {
        number(text).filter(|amount| *amount <= MAX_STOCK).ok_or_else(|| {
            let detail = format!("amount must be a number from 1 to {MAX_STOCK}, not {text:?}");
            problem::BAD_REQUEST.because(detail).field("amount")
        })
    },
};

/// A price in any currency.
pub(crate) static PRICE: Segment<String> = Segment {
    name: "price",
    what: "Price of one unit, a decimal in the item's currency.",
    values: Values::Matching(r"^[0-9]+(\.[0-9]+)?$"),
    read: |text| Ok(text.to_owned()),
};

/// A word to search for.
pub(crate) static WORD: Segment<String> = Segment {
    name: "word",
    what: "Text to find in the names of topics, ignoring case.",
    values: Values::Text(None),
    read: |text| {
        let fits = text.len() <= 300;
        fits.then(|| text.to_owned()).ok_or_else(|| {
            problem::BAD_REQUEST.because("the word is longer than 300 bytes").field("word")
        })
    },
};

pub(crate) static ORDER: Segment<(ItemId, OrderNumber)> = Segment {
    name: "order",
    what: "Id of the order: number of the item, a dash, number of the order.",
    values: Values::Matching("^[1-9][0-9]{0,9}-[1-9][0-9]{0,9}$"),
    read: |text| {
        let parts = text.split_once('-');
        parts.and_then(|(item, order)| Some((number(item)?, number(order)?))).ok_or_else(|| {
            problems::ORDER_NOT_FOUND
                .because(format!("{text:?} is not the id of an order"))
                .field("order")
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_numbers_as_they_are_written() {
        assert_eq!((ITEM.read)("17").unwrap(), 17);
        for bad in ["0", "01", "+1", "-1", "1.0", "a", "4294967296", "１"] {
            let problem = (ITEM.read)(bad).unwrap_err();
            assert_eq!(
                (problem.kind.status, problem.field.as_deref()),
                (400, Some("item")),
                "{bad}"
            );
        }
        assert_eq!((ORDER.read)("17-3").unwrap(), (17, 3));
        for bad in ["17", "17-", "-3", "17-3-1", "a-b", "17-0"] {
            assert_eq!((ORDER.read)(bad).unwrap_err().kind.status, 404, "{bad}");
        }
        assert!((AMOUNT.read)("1000000001").is_err());
    }
}
