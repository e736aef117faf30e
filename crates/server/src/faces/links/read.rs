//! Links and their clicks as they are: one, a page of them, and the figures of one.

use super::LinkFace;
use super::{code_of, fresh, host_of, json, refusal};
use crate::clock::MOMENT_RULE;
use crate::clock::parse_rfc3339;
use crate::http::content::negotiate;
use crate::http::work::Job;
use crate::http::{Answer, JSON, Request, Response};
use crate::wire::json::push_u64;
use crate::wire::params::{Params, page_limit};
use crate::wire::problem::{self, Problem};
use std::sync::Arc;
use wellspring_views::links::{Bucket, ListOrder, ListRequest, Page, StatsRequest};

/// Links on a page if the client does not say, and at most.
const DEFAULT_LINKS: u64 = 100;
const MAX_LINKS: u64 = 1000;
/// Links that are looked at for a page.
const MAX_SCANNED: usize = 20_000;
/// Links that a serving thread looks at for a page, and puts on one.
const SHORT_SCAN: usize = 1000;
const SHORT_PAGE: usize = 100;
/// Clicks of a link whose figures a serving thread writes: no list in them is longer.
const SHORT_CLICKS: u64 = 500;

/// `GET /api/urls/{code}`.
pub(crate) async fn details(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let code = code_of(&request)?;
    let params = request.params(&[])?;
    negotiate(&request, &[JSON])?;
    let fresh = fresh(&links, &request, &params).await?;
    let details = refusal::shown(code, fresh.folded()?.details(code))?;
    let mut out = Vec::with_capacity(320);
    json::push_details(&mut out, &details, &links.settings.base(host_of(&request)?));
    Ok(Response::json(200, out).at(fresh.position))
}

/// `GET /api/urls`.
pub(crate) async fn list(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let params = request.params(&["limit", "after", "order", "tag", "search"])?;
    negotiate(&request, &[JSON])?;
    let wanted = wanted(&params)?;
    let mut job = Job::begin(&links.host, &request.payer)?;
    let fresh = fresh(&links, &request, &params).await?;
    let base = links.settings.base(host_of(&request)?);
    let position = fresh.position;
    if wanted.tag.is_none() && wanted.search.is_none() && wanted.limit <= SHORT_PAGE {
        let short = ListRequest { scan_limit: SHORT_SCAN, ..wanted.clone() };
        let page = job.timed(|| Ok::<_, Box<Problem>>(fresh.folded()?.list(&short)))?;
        // Where very many are deleted it comes up short.
        if page.links.len() == wanted.limit || page.next.is_none() {
            return Ok(Response::json(200, written(&page, &base)).at(position));
        }
    }
    let answer = move || {
        let page = fresh.folded()?.list(&wanted);
        Ok::<_, Box<Problem>>(written(&page, &base))
    };
    Ok(Response::json(200, job.search(answer).await??).at(position))
}

fn written(page: &Page, base: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + page.links.len() * 320);
    out.extend_from_slice(b"{\"links\":[");
    for (i, link) in page.links.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        json::push_details(&mut out, link, base);
    }
    out.extend_from_slice(b"],\"next\":");
    match page.next {
        Some(next) => push_u64(&mut out, next),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
    out
}

fn wanted(params: &Params) -> Result<ListRequest, Box<Problem>> {
    let limit = page_limit(params.number("limit")?, DEFAULT_LINKS, MAX_LINKS)?;
    let orders = [("asc", ListOrder::Oldest), ("desc", ListOrder::Newest)];
    let order = params.choice("order", &orders)?.unwrap_or(ListOrder::Newest);
    let text = |name| Ok::<_, Box<Problem>>(params.one(name)?.map(str::to_owned));
    let search = text("search")?.filter(|text| !text.is_empty());
    let (after, tag) = (params.number("after")?, text("tag")?);
    let limit = limit as usize;
    Ok(ListRequest { after, order, limit, tag, search, scan_limit: MAX_SCANNED })
}

/// `GET /api/urls/{code}/stats`.
pub(crate) async fn stats(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let code = code_of(&request)?;
    let params = request.params(&["bucket", "from", "to"])?;
    negotiate(&request, &[JSON])?;
    let buckets = [("hour", Bucket::Hour), ("day", Bucket::Day)];
    let bucket = params.choice("bucket", &buckets)?.unwrap_or(Bucket::Day);
    let wanted =
        StatsRequest { bucket, from_us: moment(&params, "from")?, to_us: moment(&params, "to")? };
    let mut job = Job::begin(&links.host, &request.payer)?;
    let fresh = fresh(&links, &request, &params).await?;
    let details = refusal::shown(code, fresh.folded()?.details(code))?;
    let (clicks, position) = (details.clicks, fresh.position);
    let answer = move || {
        let stats =
            fresh.folded()?.stats(code, &wanted).ok_or_else(|| crate::links::unknown(code))?;
        let mut out = Vec::with_capacity(256 + stats.series.len() * 64);
        json::push_stats(&mut out, code, bucket, &stats);
        Ok::<_, Box<Problem>>(out)
    };
    let out =
        if clicks <= SHORT_CLICKS { job.timed(answer)? } else { job.search(answer).await?? };
    Ok(Response::json(200, out).at(position))
}

/// A parameter that is a moment, as µs since 1970 UTC.
fn moment(params: &Params, name: &str) -> Result<Option<u64>, Box<Problem>> {
    let Some(text) = params.one(name)? else { return Ok(None) };
    match parse_rfc3339(text) {
        Some(moment_us) => Ok(Some(moment_us)),
        // A `+` that was not encoded has become a space.
        None => Err(problem::INVALID
            .because(format!("{name} {MOMENT_RULE} (a + is written %2B here), not {text:?}"))
            .field(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 7] = ["limit", "after", "order", "tag", "search", "from", "to"];

    fn params(query: &str) -> Params {
        Params::parse_known(query, &KNOWN).expect("known parameters")
    }

    #[test]
    fn a_page_is_asked_for() {
        let page = wanted(&params("limit=7&after=3&order=asc&tag=a+b&search=")).unwrap();
        assert_eq!((page.limit, page.after, page.order), (7, Some(3), ListOrder::Oldest));
        assert_eq!((page.tag.as_deref(), page.search), (Some("a b"), None));
        let page = wanted(&params("")).unwrap();
        assert_eq!((page.limit, page.after, page.order), (100, None, ListOrder::Newest));
        for bad in ["limit=0", "limit=1001", "limit=x", "after=-1", "order=up", "tag=a&tag=b"] {
            assert_eq!(wanted(&params(bad)).unwrap_err().kind.status, 422, "{bad}");
        }
    }

    #[test]
    fn moments_are_dates_or_times() {
        let of = |query: &str| moment(&params(query), "from").map_err(|problem| problem.detail);
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("from=1970-01-02"), Ok(Some(86_400_000_000)));
        assert_eq!(of("from=1970-01-01T01:00:00%2B01:00"), Ok(Some(0)));
        assert!(of("from=1970-01-01T01:00:00+01:00").unwrap_err().contains("%2B"));
        assert!(of("from=now").unwrap_err().starts_with("from must be"));
    }
}
