//! Reading links and their clicks: one link, a page of them, the statistics of one.

use super::LinkFace;
use super::json::{DetailsDocument, StatsDocument};
use super::sealed::{DisclosedLink, LinkOpener};
use super::{CODE, fresh, host_of, refusal};
use crate::view::{Bucket, ListOrder, ListRequest, Page, StatsRequest};
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::http::work::Job;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::wire::json::to_json;
use wellspring_host::wire::param::{Integer, IntegerOr, Moment, Param, Text, Words};
use wellspring_host::wire::params::Params;
use wellspring_host::wire::problem::Problem;

/// Number of links on a page.
pub(super) static LIMIT: Param<IntegerOr> =
    Param::integer("limit", "Maximum number of links on a page.", 1..=1000).or(100);
/// Start of a page.
pub(super) static AFTER: Param<Integer> =
    Param::integer("after", "Start of the page: `next` of the previous page.", 0..=u64::MAX);
/// Order of the list.
pub(super) static ORDER: Param<Words<ListOrder>> = Param::words(
    "order",
    "Order of creation: oldest first, or newest first.",
    &[("asc", ListOrder::Oldest), ("desc", ListOrder::Newest)],
    "desc",
);
/// Tag of the links.
pub(super) static TAG: Param<Text> = Param::text("tag", "A tag of the links.");
/// Text to search for in the links.
pub(super) static SEARCH: Param<Text> =
    Param::text("search", "Text to find in the code, the URL or a tag, ignoring case.");
/// Interval of a series.
pub(super) static BUCKET: Param<Words<Bucket>> = Param::words(
    "bucket",
    "Interval of the series of clicks.",
    &[("hour", Bucket::Hour), ("day", Bucket::Day)],
    "day",
);
/// Start of a series.
pub(super) static FROM: Param<Moment> =
    Param::moment("from", "Only buckets that begin at or after this time.");
/// End of a series.
pub(super) static TO: Param<Moment> =
    Param::moment("to", "Only buckets that begin before this time.");
/// Links examined for a page.
const MAX_SCANNED: usize = 20_000;
/// Links that a serving thread examines for a page, and puts on one.
const SHORT_SCAN: usize = 1000;
const SHORT_PAGE: usize = 100;
/// Clicks of a link whose statistics a serving thread writes: no list in them is longer.
const SHORT_CLICKS: u64 = 500;

/// `GET /api/urls/{code}`.
pub(crate) async fn details(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let code = request.segment(&CODE)?;
    let fresh = fresh(&links, &request).await?;
    let details = refusal::shown(code, fresh.folded()?.details(code))?;
    let details = LinkOpener::of(&links, &request)?.disclose(details)?;
    let base = links.settings.base(host_of(&request)?);
    Ok(Response::of(200, &DetailsDocument::of(&details, &base)).at(fresh.position))
}

/// `GET /api/urls`.
pub(crate) async fn list(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let wanted = wanted(&request.query)?;
    let mut job = Job::begin(&links.host, &request.payer)?;
    let fresh = fresh(&links, &request).await?;
    let base = links.settings.base(host_of(&request)?);
    let opener = LinkOpener::of(&links, &request)?;
    let position = fresh.position;
    if wanted.tag.is_none() && wanted.search.is_none() && wanted.limit <= SHORT_PAGE {
        let short = ListRequest { scan_limit: SHORT_SCAN, ..wanted.clone() };
        let page = job.timed(|| Ok::<_, Box<Problem>>(fresh.folded()?.list(&short)))?;
        // A page may be short where very many are deleted.
        let is_whole = page.links.len() == wanted.limit || page.next.is_none();
        if is_whole && !opener.reads_for(&page.links) {
            return Ok(Response::json(200, written(page, &base, &opener)?).at(position));
        }
    }
    let answer = move || {
        let page = fresh.folded()?.list(&wanted);
        written(page, &base, &opener)
    };
    Ok(Response::json(200, job.search(answer).await??).at(position))
}

/// Some links, and where the next page begins.
#[derive(Serialize)]
struct LinksPage<'a> {
    links: Vec<DetailsDocument<'a>>,
    next: Option<u64>,
}

fn written(page: Page, base: &str, opener: &LinkOpener) -> Result<Vec<u8>, Box<Problem>> {
    let links: Result<Vec<DisclosedLink>, _> =
        page.links.into_iter().map(|link| opener.disclose(link)).collect();
    let links = links?;
    let links = links.iter().map(|link| DetailsDocument::of(link, base)).collect();
    Ok(to_json(&LinksPage { links, next: page.next }))
}

fn wanted(params: &Params) -> Result<ListRequest, Box<Problem>> {
    let search = params.get(&SEARCH)?.filter(|text| !text.is_empty()).map(str::to_owned);
    let tag = params.get(&TAG)?.map(str::to_owned);
    let (after, order) = (params.get(&AFTER)?, params.get(&ORDER)?);
    let limit = params.get(&LIMIT)? as usize;
    Ok(ListRequest { after, order, limit, tag, search, scan_limit: MAX_SCANNED })
}

/// `GET /api/urls/{code}/stats`.
pub(crate) async fn stats(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let code = request.segment(&CODE)?;
    let query = &request.query;
    let bucket = query.get(&BUCKET)?;
    let wanted = StatsRequest { bucket, from_us: query.get(&FROM)?, to_us: query.get(&TO)? };
    let mut job = Job::begin(&links.host, &request.payer)?;
    let fresh = fresh(&links, &request).await?;
    let details = refusal::shown(code, fresh.folded()?.details(code))?;
    let (clicks, position) = (details.clicks, fresh.position);
    let answer = move || {
        let stats =
            fresh.folded()?.stats(code, &wanted).ok_or_else(|| super::redirects::unknown(code))?;
        Ok::<_, Box<Problem>>(to_json(&StatsDocument::of(code, bucket, &stats)))
    };
    let out =
        if clicks <= SHORT_CLICKS { job.timed(answer)? } else { job.search(answer).await?? };
    Ok(Response::json(200, out).at(position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::wire::param::AnyParam;
    use wellspring_host::wire::params::KnownParams;

    fn params(query: &str) -> Result<Params, Box<Problem>> {
        const OWN: &[&dyn AnyParam] = &[&LIMIT, &AFTER, &ORDER, &TAG, &SEARCH];
        Params::of(Some(query), KnownParams { own: OWN, shared: &[] })
    }

    #[test]
    fn a_page_is_asked_for() {
        let page = wanted(&params("limit=7&after=3&order=asc&tag=a+b&search=").unwrap()).unwrap();
        assert_eq!((page.limit, page.after, page.order), (7, Some(3), ListOrder::Oldest));
        assert_eq!((page.tag.as_deref(), page.search), (Some("a b"), None));
        let page = wanted(&params("").unwrap()).unwrap();
        assert_eq!((page.limit, page.after, page.order), (100, None, ListOrder::Newest));
        for bad in ["limit=0", "limit=1001", "limit=x", "after=-1", "order=up", "tag=a&tag=b"] {
            assert_eq!(params(bad).err().unwrap().kind.status, 422, "{bad}");
        }
    }
}
