//! Orders: placing, reading, cancelling.

use super::body;
use super::json::push_order;
use crate::CatalogueFace;
use crate::execute::execute;
use crate::fresh::fresh;
use crate::refusal::{another_request, of_refusal, sold_out, unknown_item, unknown_order};
use crate::segments::ORDER;
use crate::view::{Catalogue, CatalogueOutcome, CatalogueRefusal, Command, ItemId, OrderNumber};
use std::sync::Arc;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::idempotency::{KeyUse, digest, idempotency_key};
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::view::Live;
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::param::{Integer, IntegerOr, Param};
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_log::RequestKey;

/// The item of the orders.
pub(crate) static ITEM: Param<Integer> =
    Param::integer("item", "Number of the item.", 1..=u32::MAX as u64);
/// End of a page.
pub(crate) static BEFORE: Param<Integer> = Param::integer(
    "before",
    "Only orders placed before this one: `next` of the previous page.",
    1..=u32::MAX as u64,
);
/// Number of orders on a page.
static LIMIT: &Param<IntegerOr> = &super::items::LIMIT;

/// `POST /v1/catalogue/orders`.
pub(crate) async fn place(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let key = idempotency_key(&request, KeyUse::Request)?;
    expect_json(&request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let (item, amount) = body::read_order(&body).map_err(|fault| of_fault(&fault, &body))?;
    let key = key.map(|key| RequestKey { key, digest: digest(&body) });
    let placed = execute(&face, &request, Command::Order { item, amount }, key).await?;
    match placed.outcome {
        Ok(CatalogueOutcome::Ordered { item, order }) => {
            let answer = told(&face, &placed.live, item, order)?;
            let location = format!("/v1/catalogue/orders/{item}-{order}");
            let status = if placed.is_replayed { 200 } else { 201 };
            Ok(answer.with_status(status).with("location", location))
        }
        Ok(CatalogueOutcome::SoldOut { item, amount, stock }) => Err(sold_out(item, amount, stock)),
        Ok(_) => Err(another_request()),
        Err(refusal) => Err(of_refusal(&refusal)),
    }
}

/// `GET /v1/catalogue/orders/{order}`.
pub(crate) async fn order(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let (item, order) = request.segment(&ORDER)?;
    let live = fresh(&face, &request).await?;
    told(&face, &live, item, order)
}

/// `DELETE /v1/catalogue/orders/{order}`: cancels it and returns its items to the stock.
pub(crate) async fn cancel(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let (item, order) = request.segment(&ORDER)?;
    let cancelled = execute(&face, &request, Command::Cancel { item, order }, None).await?;
    match cancelled.outcome {
        Ok(_) => told(&face, &cancelled.live, item, order),
        // The stock would exceed its maximum.
        Err(refusal @ CatalogueRefusal::TooMany { .. }) => Err(of_refusal(&refusal).field("order")),
        Err(refusal) => Err(of_refusal(&refusal)),
    }
}

fn told(face: &CatalogueFace, live: &Live<Catalogue>, id: ItemId, order: OrderNumber) -> Answer {
    let position = live.position();
    let folded = face.folded(live)?;
    let state = folded.read();
    let found = state.item(id).and_then(|item| Some((item, item.order(order)?)));
    let (item, placed) = found.ok_or_else(|| unknown_order(id, order))?;
    let mut out = Vec::with_capacity(160);
    push_order(&mut out, id, item, order, placed);
    Ok(Response::json(200, out).at(position))
}

/// `GET /v1/catalogue/orders`: those of an item, newest first.
pub(crate) async fn list(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let Some(id) = request.query(&ITEM)?.map(|item| item as ItemId) else {
        return Err(problem::INVALID
            .because("item is missing: name the item whose orders to list")
            .field("item"));
    };
    let before = request.query(&BEFORE)?.unwrap_or(u64::MAX);
    let limit = request.query(LIMIT)? as usize;
    let live = fresh(&face, &request).await?;
    let position = live.position();
    let folded = face.folded(&live)?;
    let state = folded.read();
    let item = state.item(id).ok_or_else(|| unknown_item(id))?;
    let end = item.orders.len().min(usize::try_from(before - 1).unwrap_or(usize::MAX));
    let begin = end.saturating_sub(limit);
    let mut out = Vec::with_capacity(64 + (end - begin) * 160);
    out.extend_from_slice(b"{\"orders\":[");
    for at in (begin..end).rev() {
        if at + 1 < end {
            out.push(b',');
        }
        push_order(&mut out, id, item, at as OrderNumber + 1, &item.orders[at]);
    }
    out.extend_from_slice(b"],\"next\":");
    match begin {
        0 => out.extend_from_slice(b"null"),
        _ => push_u64(&mut out, begin as u64 + 1),
    }
    out.push(b'}');
    Ok::<_, Box<Problem>>(Response::json(200, out).at(position))
}
