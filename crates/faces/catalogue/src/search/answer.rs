//! `GET /v1/catalogue/search`.

use super::highlight::{Extent, highlight};
use super::index::{Match, SearchHits};
use super::query::{Query, fault};
use super::room::{IndexState, ViewIndex};
use super::words::{analyzer, split};
use super::{AFTER, LIMIT, MOST_RESULTS, Q};
use crate::CatalogueFace;
use crate::fresh::{fresh, patience};
use crate::resources::{IN_TOPIC, push_item};
use crate::view::{Catalogue, TopicId};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use wellspring_host::http::work::Job;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::view::Live;
use wellspring_host::wire::json::{push_string, push_u64};
use wellspring_host::wire::problem::{self, Problem};

struct SearchRequest {
    query: Query,
    topic: Option<TopicId>,
    after: usize,
    /// End of the page.
    end: usize,
}

impl SearchRequest {
    fn of(request: &Request) -> Result<SearchRequest, Box<Problem>> {
        let typed = request.query(&Q)?.unwrap_or("");
        if let Some(fault) = fault(typed) {
            return Err(problem::INVALID.because(fault).field("q"));
        }
        let mut analyzer = analyzer();
        let query = Query::read(typed, |text| split(&mut analyzer, text));
        let topic = request.query(&IN_TOPIC)?.map(|topic| topic as TopicId);
        let (after, limit) = (request.query(&AFTER)?, request.query(&LIMIT)?);
        let end = (after + limit).min(MOST_RESULTS) as usize;
        Ok(SearchRequest { query, topic, after: after as usize, end })
    }
}

/// `GET /v1/catalogue/search`: see the module.
pub(crate) async fn search(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let wanted = SearchRequest::of(&request)?;
    let patience = patience(&request)?;
    let began = Instant::now();
    let mut job = Job::begin(&face.host, &request.payer)?;
    let live = fresh(&face, &request).await?;
    let indexed = of_view(&face, &live)?;
    if let Some(wait) = patience {
        until_indexed(&indexed, &live, wait, began + wait).await?;
        request.still_may()?;
    }
    // Before the search, which finds everything indexed by now.
    let position = indexed.up_to(live.position());
    let out = job.search(move || answer(&face, &live, &indexed, &wanted)).await??;
    Ok(Response::json(200, out).at(position))
}

/// The index of a view.
fn of_view(face: &CatalogueFace, live: &Arc<Live<Catalogue>>) -> Result<ViewIndex, Box<Problem>> {
    let why = match face.search.standing() {
        IndexState::Ready(indexed) if indexed.is_of(live) => return Ok(indexed),
        IndexState::Ready(_) | IndexState::NoView => {
            "the search index is about to be built".to_owned()
        }
        IndexState::Building { indexed, items } => {
            format!("the search index is being built: {indexed} of {items} items")
        }
        IndexState::Failed(why) => format!("the search index failed and is being rebuilt: {why}"),
    };
    Err(problem::VIEW_NOT_READY.because(why))
}

/// Waits until the index has caught up with the view.
async fn until_indexed(
    indexed: &ViewIndex,
    live: &Live<Catalogue>,
    wait: Duration,
    deadline: Instant,
) -> Result<(), Box<Problem>> {
    let wanted = live.position();
    if indexed.up_to(wanted) >= wanted {
        return Ok(());
    }
    let shown = indexed.position.past(wanted - 1);
    indexed.hurry();
    let left = deadline.saturating_duration_since(Instant::now());
    if let Ok(shown) = timeout(left, shown).await
        && shown? >= wanted
    {
        return Ok(());
    }
    Err(problem::NOT_YET.because(format!(
        "the search index did not reach position {wanted} within {} ms; it is at {}",
        wait.as_millis(),
        indexed.position.head()
    )))
}

/// The page, as JSON.
fn answer(
    face: &CatalogueFace,
    live: &Live<Catalogue>,
    indexed: &ViewIndex,
    wanted: &SearchRequest,
) -> Result<Vec<u8>, Box<Problem>> {
    let found =
        indexed.searcher.find(&wanted.query, wanted.topic, wanted.end).map_err(|error| {
            tracing::error!(%error, "a search failed");
            problem::INTERNAL.because("the search failed; see the server's log")
        })?;
    let folded = face.folded(live)?;
    let mut out = b"{\"items\":[".to_vec();
    let mut is_first = true;
    let mut analyzer = analyzer();
    for (id, score) in found.best.iter().skip(wanted.after) {
        // Separately for each: marking matches takes a while.
        let state = folded.read();
        let Some(item) = state.item(*id) else { continue };
        // It may have changed since it was indexed.
        let is_wanted = wanted.topic.is_none_or(|topic| topic == item.topic);
        if item.standing.withdrawn || !is_wanted {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        push_item(&mut out, &state, *id, item);
        let (name, description) = (item.name.clone(), item.description.clone());
        drop(state);
        // Replaces the item's last brace.
        out.pop();
        out.extend_from_slice(
            format!(",\"score\":{score:.3},\"highlights\":{{\"name\":").as_bytes(),
        );
        let mut mark =
            |text, extent| highlight(&mut analyzer, &wanted.query, found.matched, text, extent);
        push_string(&mut out, &mark(&name, Extent::Whole));
        out.extend_from_slice(b",\"description\":");
        push_string(&mut out, &mark(&description, Extent::Excerpt));
        out.extend_from_slice(b"}}");
    }
    push_rest(&mut out, &found, wanted);
    Ok(out)
}

fn push_rest(out: &mut Vec<u8>, found: &SearchHits, wanted: &SearchRequest) {
    let matched: &[u8] = match found.matched {
        Match::Exact => b"],\"match\":\"exact\",\"total\":",
        Match::Near => b"],\"match\":\"near\",\"total\":",
    };
    out.extend_from_slice(matched);
    push_u64(out, found.total as u64);
    out.extend_from_slice(b",\"next\":");
    let is_last = wanted.end >= found.total || wanted.end as u64 >= MOST_RESULTS;
    if is_last {
        out.extend_from_slice(b"null");
    } else {
        push_u64(out, wanted.end as u64);
    }
    out.push(b'}');
}
