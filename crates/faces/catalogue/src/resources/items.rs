//! Items: adding, changing, reading, listing.

use super::body;
use super::bulk;
use super::json::{item_json, push_item, push_prices};
use crate::CatalogueFace;
use crate::etag::{etag, if_match};
use crate::execute::execute;
use crate::fresh::fresh;
use crate::refusal::{another_request, of_refusal, unknown_item};
use crate::segments;
use crate::view::{
    Catalogue, CatalogueOutcome, CatalogueRefusal, Command, Item, ItemId, State, TopicId,
};
use std::sync::Arc;
use wellspring_host::http::content::{content_type, expect_identity, expect_json};
use wellspring_host::http::idempotency::{KeyUse, digest, idempotency_key, refuse_key};
use wellspring_host::http::work::Job;
use wellspring_host::http::{Answer, NDJSON, Request, Response, fast};
use wellspring_host::view::Live;
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::param::{Integer, IntegerOr, Param, Text, Words};
use wellspring_host::wire::problem::{Problem, of_fault};
use wellspring_log::RequestKey;

/// Number of items on a page.
pub(crate) static LIMIT: Param<IntegerOr> =
    Param::integer("limit", "Maximum number of entries on a page.", 1..=1000).or(100);
/// Start of a page.
pub(crate) static AFTER: Param<Integer> =
    Param::integer("after", "Start of the page: `next` of the previous page.", 0..=u64::MAX);
/// The topic of the items.
pub(crate) static TOPIC: Param<Integer> =
    Param::integer("topic", "Number of the topic.", 1..=u32::MAX as u64);
/// The SKU of the item.
pub(crate) static SKU: Param<Text> = Param::text("sku", "SKU of the item.");
/// Whether to list only items in stock.
pub(crate) static IN_STOCK: Param<Words<bool>> = Param::words(
    "in_stock",
    "Whether to list only items in stock.",
    &[("true", true), ("false", false)],
    "false",
);
/// Whether to list withdrawn items.
pub(crate) static WITHDRAWN: Param<Words<bool>> = Param::words(
    "withdrawn",
    "Whether to include withdrawn items.",
    &[("true", true), ("false", false)],
    "false",
);
/// Items examined for a page.
const MAX_SCANNED: usize = 100_000;
/// Items examined under the lock, and by a serving thread for a page.
const SCANNED_AT_A_TIME: usize = 1_000;
/// Bytes after which writing stops under the lock, or on a serving thread.
const BYTES_AT_A_TIME: usize = 64 << 10;
/// Items that a serving thread puts on a page.
const SHORT_PAGE: usize = 100;

/// `GET /v1/catalogue/items/{item}`.
pub(crate) async fn item(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let item = request.segment(&segments::ITEM)?;
    fresh(&face, &request).await?;
    Ok(fast::serve(&face.host, &mut request, &format!("/v1/catalogue/items/{item}")).await)
}

/// `POST /v1/catalogue/items`: one item, or many with NDJSON.
pub(crate) async fn add(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    if content_type(&request) == NDJSON {
        expect_identity(&request)?;
        refuse_key(&request)?;
        return bulk::put(face, request).await;
    }
    let key = idempotency_key(&request, KeyUse::Request)?;
    expect_json(&request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let new = body::read_item(&body, face.currency).map_err(|fault| of_fault(&fault, &body))?;
    let key = key.map(|key| RequestKey { key, digest: digest(&body) });
    let added = execute(&face, &request, Command::Add(new), key).await?;
    let id = match added.outcome {
        Ok(CatalogueOutcome::Added(id)) => id,
        Ok(_) => return Err(another_request()),
        Err(refusal) => return Err(of_refusal(&refusal)),
    };
    let status = if added.is_replayed { 200 } else { 201 };
    let answer = told(&face, &added.live, id)?.with_status(status);
    Ok(answer.with("location", format!("/v1/catalogue/items/{id}")))
}

/// `PATCH /v1/catalogue/items/{item}`.
pub(crate) async fn change(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let item = request.segment(&segments::ITEM)?;
    let version = match request.headers.get("if-match") {
        // A value that is not text matches none of our entity tags.
        Some(value) => if_match(value.to_str().unwrap_or("?"))?,
        None => None,
    };
    expect_json(&request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let changes = body::read_changes(&body).map_err(|fault| of_fault(&fault, &body))?;
    let history = face.live()?.log().history();
    if version.is_some_and(|seen| seen.history != history) {
        return Err(of_refusal(&CatalogueRefusal::Changed(item)));
    }
    let unless_changed_since = version.map(|seen| seen.position);
    let command = Command::Change { item, changes, unless_changed_since };
    let changed = execute(&face, &request, command, None).await?;
    match changed.outcome {
        Ok(_) => told(&face, &changed.live, item),
        Err(refusal) => Err(of_refusal(&refusal)),
    }
}

/// `POST /v1/catalogue/items/{item}/stock`.
pub(crate) async fn change_stock(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let item = request.segment(&segments::ITEM)?;
    let key = idempotency_key(&request, KeyUse::Request)?;
    expect_json(&request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let by = body::read_stock(&body).map_err(|fault| of_fault(&fault, &body))?;
    let digested = [format!("stock {item} ").as_bytes(), &body].concat();
    let key = key.map(|key| RequestKey { key, digest: digest(&digested) });
    let changed = execute(&face, &request, Command::Stock { item, by }, key).await?;
    match changed.outcome {
        Ok(CatalogueOutcome::Item(_) | CatalogueOutcome::Unchanged(_)) => {
            told(&face, &changed.live, item)
        }
        Ok(_) => Err(another_request()),
        Err(refusal) => Err(of_refusal(&refusal)),
    }
}

/// The current item.
fn told(face: &CatalogueFace, live: &Live<Catalogue>, id: ItemId) -> Answer {
    let position = live.position();
    let folded = face.folded(live)?;
    let state = folded.read();
    let item = state.item(id).ok_or_else(|| unknown_item(id))?;
    let etag = etag(live.log(), state.item_changed_at(item));
    Ok(Response::json(200, item_json(&state, id, item)).with("etag", etag).at(position))
}

/// `GET /v1/catalogue/items/{item}/prices`.
pub(crate) async fn prices(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let id = request.segment(&segments::ITEM)?;
    let live = fresh(&face, &request).await?;
    let position = live.position();
    let folded = face.folded(&live)?;
    let state = folded.read();
    let item = state.item(id).ok_or_else(|| unknown_item(id))?;
    let mut out = Vec::with_capacity(64 + item.prices.len() * 64);
    push_prices(&mut out, id, item);
    Ok(Response::json(200, out).at(position))
}

/// A requested page.
#[derive(Debug, Clone)]
struct PageRequest {
    after: ItemId,
    limit: usize,
    topic: Option<TopicId>,
    sku: Option<String>,
    in_stock: bool,
    withdrawn: bool,
}

impl PageRequest {
    fn takes(&self, item: &Item) -> bool {
        let standing = &item.standing;
        let is_sold = !self.in_stock || (standing.stock > 0 && !standing.withdrawn);
        is_sold
            && (self.withdrawn || !standing.withdrawn)
            && self.topic.is_none_or(|topic| topic == item.topic)
            && self.sku.as_deref().is_none_or(|sku| item.sku.as_deref() == Some(sku))
    }
}

/// `GET /v1/catalogue/items`.
pub(crate) async fn list(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let wanted = PageRequest {
        after: ItemId::try_from(request.query(&AFTER)?.unwrap_or(0)).unwrap_or(ItemId::MAX),
        limit: request.query(&LIMIT)? as usize,
        topic: request.query(&TOPIC)?.map(|topic| topic as TopicId),
        sku: request.query(&SKU)?.map(str::to_owned),
        in_stock: request.query(&IN_STOCK)?,
        withdrawn: request.query(&WITHDRAWN)?,
    };
    let mut job = Job::begin(&face.host, &request.payer)?;
    let live = fresh(&face, &request).await?;
    let position = live.position();
    let is_short = wanted.limit <= SHORT_PAGE;
    let answer = move |most_scanned: usize| {
        let folded = face.folded(&live)?;
        let mut page = PageSoFar::of(&wanted);
        while page.end == PageEnd::Scanned && page.scanned < most_scanned {
            // The fold waits for readers, but only briefly.
            page.extend(&folded.read(), &wanted);
        }
        Ok::<_, Box<Problem>>(page)
    };
    if is_short {
        let page = job.timed(|| answer(SCANNED_AT_A_TIME))?;
        if page.end != PageEnd::Scanned {
            return Ok(Response::json(200, page.written()).at(position));
        }
    }
    let page = job.search(move || answer(MAX_SCANNED)).await??;
    Ok(Response::json(200, page.written()).at(position))
}

/// Why a page ends here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageEnd {
    Full,
    /// There are no more items.
    Last,
    /// The limit of examined items is reached, or more slices follow.
    Scanned,
}

/// A page in progress.
struct PageSoFar {
    out: Vec<u8>,
    listed: usize,
    /// Items examined.
    scanned: usize,
    /// The last item examined.
    after: ItemId,
    end: PageEnd,
}

impl PageSoFar {
    fn of(wanted: &PageRequest) -> PageSoFar {
        let out = b"{\"items\":[".to_vec();
        PageSoFar { out, listed: 0, scanned: 0, after: wanted.after, end: PageEnd::Scanned }
    }

    /// Examines some more items.
    fn extend(&mut self, state: &State, wanted: &PageRequest) {
        let mut items = candidates(state, wanted, self.after);
        let most_bytes = self.out.len() + BYTES_AT_A_TIME;
        for _ in 0..SCANNED_AT_A_TIME {
            if self.out.len() > most_bytes {
                return;
            }
            let Some((id, item)) = items.next() else {
                self.end = PageEnd::Last;
                return;
            };
            if self.listed == wanted.limit {
                self.end = PageEnd::Full;
                return;
            }
            self.after = id;
            self.scanned += 1;
            if wanted.takes(item) {
                if self.listed > 0 {
                    self.out.push(b',');
                }
                push_item(&mut self.out, state, id, item);
                self.listed += 1;
            }
        }
    }

    fn written(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"],\"next\":");
        match self.end {
            PageEnd::Last => self.out.extend_from_slice(b"null"),
            PageEnd::Full | PageEnd::Scanned => push_u64(&mut self.out, self.after.into()),
        }
        self.out.push(b'}');
        self.out
    }
}

/// The candidates for a page, after its start.
fn candidates<'a>(
    state: &'a State,
    wanted: &PageRequest,
    after: ItemId,
) -> Box<dyn Iterator<Item = (ItemId, &'a Item)> + 'a> {
    let known = move |id: ItemId| Some((id, state.item(id)?));
    match (&wanted.sku, wanted.topic) {
        (Some(sku), _) => {
            let item = state.item_of_sku(sku).filter(|id| *id > after);
            Box::new(item.and_then(known).into_iter())
        }
        (None, Some(topic)) => {
            let topic =
                state.topic(topic).map(|topic| topic.items.range(after.saturating_add(1)..));
            Box::new(topic.into_iter().flatten().copied().filter_map(known))
        }
        (None, None) => Box::new(state.items_from(after.saturating_add(1))),
    }
}
