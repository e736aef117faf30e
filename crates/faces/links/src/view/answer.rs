//! Queries: single links, pages of links, and click statistics.

use super::agent;
use super::clicks::{DAY_US, Detail, HOUR_US};
use super::event::sealed_at;
use super::record::{Record, Status};
use super::state::Folded;
use super::{Code, TargetVerdict, top};
use wellspring_types::Position;

/// A link, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// Its code.
    pub code: Code,
    /// Its target, or [where its sealed target is](super::event::sealed_at).
    pub url: String,
    /// When it was created, µs since 1970 UTC.
    pub created_at_us: u64,
    /// Position of the event that created it.
    pub created: Position,
    /// Whether it redirects.
    pub status: Status,
    /// Expiry, µs since 1970 UTC.
    pub expires_at_us: Option<u64>,
    /// How often it may be followed.
    pub max_clicks: Option<u32>,
    /// Whether the settings allow its target.
    pub verdict: TargetVerdict,
    /// Its tags.
    pub tags: Vec<String>,
    /// Clicks, including those of bots.
    pub clicks: u64,
    /// Visitors, each counted once a day; excludes bots; estimated (±2.3%) above 64 a day.
    pub visitors: u64,
    /// Clicks of bots.
    pub bots: u64,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListOrder {
    /// Newest first.
    #[default]
    Newest,
    /// Oldest first.
    Oldest,
}

/// A request for a page of links.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// The previous page's `next`.
    pub after: Option<u64>,
    /// The order.
    pub order: ListOrder,
    /// Maximum number of links on the page.
    pub limit: usize,
    /// Only links with this tag.
    pub tag: Option<String>,
    /// Only links whose code, URL or one tag contains this text, ignoring case.
    pub search: Option<String>,
    /// Maximum number of links examined for the page, which bounds the work of a search without
    /// matches.
    pub scan_limit: usize,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The links, without deleted ones.
    pub links: Vec<Details>,
    /// Where to continue, if there may be more. Even an empty page may have a `next`.
    pub next: Option<u64>,
}

/// The granularity of a click series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bucket {
    /// By hour; kept for 92 days that have clicks.
    Hour,
    /// By day; kept for ever.
    Day,
}

/// A request for click statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsRequest {
    /// The granularity.
    pub bucket: Bucket,
    /// Only buckets that begin at or after this, µs since 1970 UTC.
    pub from_us: Option<u64>,
    /// Only buckets that begin before this, µs since 1970 UTC.
    pub to_us: Option<u64>,
}

/// The clicks of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesPoint {
    /// Start of the bucket, µs since 1970 UTC.
    pub start_us: u64,
    /// Number of clicks.
    pub clicks: u64,
    /// The day's visitors; `None` in a series by hour.
    pub visitors: Option<u64>,
}

/// A referrer's clicks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferrerClicks {
    /// The referrer's host; `None`: the browser sent none.
    pub referrer: Option<String>,
    /// Number of clicks.
    pub clicks: u64,
    /// By how much `clicks` may be too high: 0 while there are at most 64 referrers.
    pub excess: u64,
}

/// The click statistics of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// All clicks.
    pub clicks: u64,
    /// Visitors, as in [`Details`].
    pub visitors: u64,
    /// Clicks of bots.
    pub bots: u64,
    /// Ascending; omits buckets without clicks.
    pub series: Vec<SeriesPoint>,
    /// Most clicks first.
    pub referrers: Vec<ReferrerClicks>,
    /// Families of user agents and their clicks, most clicks first.
    pub agents: Vec<(&'static str, u64)>,
}

impl Folded {
    /// A link, deleted or not; `None` if it never existed.
    #[must_use]
    pub fn details(&self, code: Code) -> Option<Details> {
        let link = self.find(code)?;
        Some(self.detailed(link, self.record(link)?))
    }

    fn detailed(&self, link: u64, record: Record) -> Details {
        let clicks = self.clicks(link);
        let (visitors, bots) = clicks.map_or((0, 0), |clicks| clicks.visits());
        Details {
            code: record.code,
            url: record.url,
            created_at_us: record.created_at_us,
            created: record.created,
            status: record.status,
            expires_at_us: record.expires_at_us,
            max_clicks: record.max_clicks,
            verdict: record.verdict,
            tags: record.tags,
            clicks: clicks.map_or(0, |clicks| clicks.total()),
            visitors,
            bots,
        }
    }

    /// A page of links. Examines at most `scan_limit` of them.
    #[must_use]
    pub fn list(&self, request: &ListRequest) -> Page {
        let count = self.count();
        let search = request.search.as_deref().map(str::to_lowercase);
        let mut links = Vec::new();
        // The number of links before the page, in the requested order.
        let start = match (request.order, request.after) {
            (_, None) => 0,
            (ListOrder::Oldest, Some(after)) => after.saturating_add(1),
            (ListOrder::Newest, Some(after)) => count.saturating_sub(after),
        };
        let end = count.min(start.saturating_add(request.scan_limit as u64));
        let link_at = |passed: u64| match request.order {
            ListOrder::Oldest => passed,
            ListOrder::Newest => count - 1 - passed,
        };
        for passed in start..end {
            let link = link_at(passed);
            if let Some(record) = self.record(link).filter(|record| fits(record, request, &search))
            {
                links.push(self.detailed(link, record));
            }
            if links.len() == request.limit {
                return Page { links, next: (passed + 1 < count).then_some(link) };
            }
        }
        Page { links, next: (end > start && end < count).then(|| link_at(end - 1)) }
    }

    /// The click statistics of a link; `None` if it never existed.
    #[must_use]
    pub fn stats(&self, code: Code, request: &StatsRequest) -> Option<Stats> {
        let link = self.find(code)?;
        let detail = self.clicks(link).map(|clicks| clicks.detail()).unwrap_or_default();
        let within = |start_us: u64| {
            request.from_us.is_none_or(|from_us| start_us >= from_us)
                && request.to_us.is_none_or(|to_us| start_us < to_us)
        };
        let mut series = series(&detail, request.bucket);
        series.retain(|point| within(point.start_us));
        let mut agents: Vec<(&'static str, u64)> = detail
            .agents
            .iter()
            .filter_map(|&(family, clicks)| {
                Some((*agent::FAMILIES.get(usize::from(family))?, clicks))
            })
            .collect();
        agents.sort_by_key(|&(family, clicks)| (std::cmp::Reverse(clicks), family));
        Some(Stats {
            clicks: detail.total,
            visitors: detail.visitors(),
            bots: detail.bots,
            series,
            referrers: referrers(&detail),
            agents,
        })
    }
}

fn fits(record: &Record, request: &ListRequest, search: &Option<String>) -> bool {
    let contains = |text: &str, wanted: &str| text.to_lowercase().contains(wanted);
    record.status != Status::Deleted
        && request.tag.as_ref().is_none_or(|tag| record.tags.contains(tag))
        && search.as_ref().is_none_or(|wanted| {
            (sealed_at(&record.url).is_none() && contains(&record.url, wanted))
                || contains(&record.code.as_text(), wanted)
                || record.tags.iter().any(|tag| contains(tag, wanted))
        })
}

fn series(detail: &Detail, bucket: Bucket) -> Vec<SeriesPoint> {
    match bucket {
        Bucket::Hour => {
            let point = |&(hour, clicks): &(u32, u64)| SeriesPoint {
                start_us: u64::from(hour) * HOUR_US,
                clicks,
                visitors: None,
            };
            detail.hours.iter().map(point).collect()
        }
        Bucket::Day => {
            let today = detail.days.len().saturating_sub(1);
            let days = detail.days.iter().enumerate();
            days.map(|(at, day)| SeriesPoint {
                start_us: u64::from(day.day) * DAY_US,
                clicks: day.clicks,
                visitors: Some(if at == today {
                    detail.today.count()
                } else {
                    day.visitors.into()
                }),
            })
            .collect()
        }
    }
}

fn referrers(detail: &Detail) -> Vec<ReferrerClicks> {
    let named = |entry: &top::Entry| ReferrerClicks {
        referrer: Some(entry.name.to_string()),
        clicks: entry.count,
        excess: entry.excess,
    };
    let mut referrers: Vec<ReferrerClicks> = detail.referrers.entries().iter().map(named).collect();
    if detail.direct > 0 {
        referrers.push(ReferrerClicks { referrer: None, clicks: detail.direct, excess: 0 });
    }
    referrers.sort_by(|a, b| b.clicks.cmp(&a.clicks).then_with(|| a.referrer.cmp(&b.referrer)));
    referrers
}
