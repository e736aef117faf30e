//! Orders and updates: `true` if done, `false` if impossible.

use crate::CatalogueFace;
use crate::execute::{Execution, execute};
use crate::refusal::of_refusal;
use crate::segments::{AMOUNT, ITEM, PRICE};
use crate::view::{CatalogueOutcome, CatalogueRefusal, Command, ItemChanges, ItemId};
use std::sync::Arc;
use wellspring_host::http::idempotency::{KeyUse, digest, idempotency_key};
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::wire::param::{Param, Text};
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::RequestKey;

/// Number of units to order.
pub(crate) static ORDERED: Param<Text> =
    Param::text("amount", "Number of units; 1 if it is missing or below 1.");

/// `POST /order/{item}`.
pub(crate) async fn order(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let item = request.segment(&ITEM)?;
    let amount = ordered(request.query(&ORDERED)?)?;
    let key = keyed(&request, &format!("order {item} {amount}"))?;
    done(&face, &request, Command::Order { item, amount }, key).await
}

/// The amount of an order in the bookstore's format.
fn ordered(amount: Option<&str>) -> Result<u32, Box<Problem>> {
    let Some(text) = amount.filter(|text| !text.is_empty()) else { return Ok(1) };
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let detail = format!("amount must be a whole number, not {text:?}");
        return Err(problem::INVALID.because(detail).field("amount"));
    }
    if digits.len() < text.len() {
        return Ok(1);
    }
    // An amount beyond the largest stock is not available either.
    Ok(text.parse().unwrap_or(u32::MAX).max(1))
}

/// `POST /update/{item}/stock/add/{amount}`.
pub(crate) async fn add_stock(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    stock(&face, &request, 1).await
}

/// `POST /update/{item}/stock/deduct/{amount}`.
pub(crate) async fn deduct_stock(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    stock(&face, &request, -1).await
}

async fn stock(face: &CatalogueFace, request: &Request, sign: i64) -> Answer {
    let item = request.segment(&ITEM)?;
    let by = sign * i64::from(request.segment(&AMOUNT)?);
    let key = keyed(request, &format!("stock {item} {by}"))?;
    done(face, request, Command::Stock { item, by }, key).await
}

/// The request's key, if any, combined with the operation.
fn keyed(request: &Request, asked: &str) -> Result<Option<RequestKey>, Box<Problem>> {
    let key = idempotency_key(request, KeyUse::Request)?;
    Ok(key.map(|key| RequestKey { key, digest: digest(asked.as_bytes()) }))
}

/// `POST /update/{item}/price/{price}`.
pub(crate) async fn price(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let item: ItemId = request.segment(&ITEM)?;
    let price = request.segment(&PRICE)?;
    let changes = ItemChanges { price: Some(price), ..ItemChanges::default() };
    let command = Command::Change { item, changes, unless_changed_since: None };
    done(&face, &request, command, None).await
}

async fn done(
    face: &CatalogueFace,
    request: &Request,
    command: Command,
    key: Option<RequestKey>,
) -> Answer {
    let Execution { live, outcome, .. } = execute(face, request, command, key).await?;
    let done: &[u8] = match outcome {
        Err(CatalogueRefusal::Price(fault)) => {
            let detail = format!("the price {fault}");
            return Err(problem::BAD_REQUEST.because(detail).field("price"));
        }
        Err(refusal @ CatalogueRefusal::Full) => return Err(of_refusal(&refusal)),
        Err(_) | Ok(CatalogueOutcome::SoldOut { .. }) => b"false",
        Ok(_) => b"true",
    };
    Ok(Response::json(200, done).at(live.position()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_the_bookstore_does() {
        for (text, amount) in
            [(None, 1), (Some(""), 1), (Some("0"), 1), (Some("-5"), 1), (Some("3"), 3)]
        {
            assert_eq!(ordered(text).unwrap(), amount, "{text:?}");
        }
        assert_eq!(ordered(Some("99999999999999999999")).unwrap(), u32::MAX);
        for bad in ["a", "1.5", "+1", "-", "1 ", "0x1"] {
            let problem = ordered(Some(bad)).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some("amount"), "{bad}");
        }
    }
}
