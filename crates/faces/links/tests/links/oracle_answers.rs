//! Compares the view's answers with those of the naive fold.

use super::oracle::{Click, DAY_US, EXACT, HOUR_US, Link, Oracle, visitors};
use std::cmp::Reverse;
use std::collections::HashMap;
use wellspring_face_links::view::{
    Bucket, Code, Details, Folded, ListOrder, ListRequest, Lookup, SeriesPoint, Stats,
    StatsRequest, Status, TargetVerdict, url,
};

/// Whether a number of visitors is right: exact while small, then within a few percent.
fn agrees(found: u64, truth: usize, exact: bool) -> bool {
    let error = found.abs_diff(truth as u64);
    error == 0 || (!exact && error * 10 <= truth as u64)
}

impl Oracle {
    /// Checks every answer of a view that has folded the same events.
    pub(crate) fn check(&self, folded: &Folded, codes: &[Code], times_us: &[u64]) {
        assert_eq!(folded.count(), self.links.len() as u64);
        for &code in codes {
            let link = self.link(code);
            for &now_us in times_us {
                let mut location = Vec::new();
                let found = folded.lookup(code, now_us, &mut location);
                let expected = expected_lookup(link, now_us);
                assert_eq!((found, location), expected, "{code} at {now_us}");
            }
            match (folded.details(code), link) {
                (None, None) => {}
                (Some(found), Some(link)) => check_details(&found, link),
                (found, link) => panic!("{code}: {found:?} for {link:?}"),
            }
            for bucket in [Bucket::Hour, Bucket::Day] {
                for (from_us, to_us) in spans(times_us) {
                    let request = StatsRequest { bucket, from_us, to_us };
                    match (folded.stats(code, &request), link) {
                        (None, None) => {}
                        (Some(found), Some(link)) => check_stats(&found, link, &request),
                        (found, link) => panic!("{code}: {found:?} for {link:?}"),
                    }
                }
            }
        }
    }

    /// Walks a list page by page and compares it with all matching links.
    pub(crate) fn check_list(&self, folded: &Folded, wanted: &ListRequest) {
        let mut fitting: Vec<&Link> = self.links.iter().filter(|link| fits(link, wanted)).collect();
        if wanted.order == ListOrder::Newest {
            fitting.reverse();
        }
        let (mut fitting, mut request) = (fitting.into_iter(), wanted.clone());
        let scan = wanted.scan_limit.max(1);
        // Each page makes progress: it shows links or scans some.
        for _ in 0..=self.links.len() {
            let page = folded.list(&request);
            assert!(page.links.len() <= wanted.limit, "{wanted:?}");
            let places: Vec<usize> = page.links.iter().map(|d| self.of_code[&d.code]).collect();
            if let (Some(&first), Some(&last)) = (places.first(), places.last()) {
                assert!(first.abs_diff(last) < scan, "{wanted:?} looked at too many");
            }
            for details in &page.links {
                let link = fitting.next().unwrap_or_else(|| panic!("{details:?} for {wanted:?}"));
                check_details(details, link);
            }
            if page.links.len() < wanted.limit && page.next.is_some() {
                assert!(wanted.scan_limit < self.links.len(), "{wanted:?}: a page too short");
            }
            match page.next {
                Some(next) => request.after = Some(next),
                None => {
                    assert_eq!(fitting.next().map(|link| link.code), None, "{wanted:?} ends early");
                    return;
                }
            }
        }
        panic!("{wanted:?} never ends");
    }
}

fn spans(times_us: &[u64]) -> [(Option<u64>, Option<u64>); 3] {
    let (first, last) = (times_us.first().copied(), times_us.last().copied());
    [(None, None), (first, None), (first.map(|us| us / DAY_US * DAY_US), last)]
}

fn expected_lookup(link: Option<&Link>, now_us: u64) -> (Lookup, Vec<u8>) {
    let Some(link) = link else { return (Lookup::Unknown, Vec::new()) };
    let verdict = match link.status {
        Status::Deleted => Lookup::Deleted,
        Status::Disabled => Lookup::Disabled,
        Status::Enabled if link.expires_at_us.is_some_and(|us| us <= now_us) => Lookup::Expired,
        Status::Enabled if link.url.starts_with("sealed:") => Lookup::Sealed,
        Status::Enabled => Lookup::Found,
    };
    let mut location = Vec::new();
    if verdict == Lookup::Found {
        location.extend(url::check(&link.url).expect("a checked URL").location().into_bytes());
    }
    (verdict, location)
}

fn bots(link: &Link) -> u64 {
    link.clicks.iter().filter(|click| click.bot).count() as u64
}

fn all_visitors(link: &Link) -> (usize, bool) {
    let days: Vec<usize> = link.series(DAY_US).values().map(|clicks| visitors(clicks)).collect();
    (days.iter().sum(), days.iter().all(|&day| day <= EXACT))
}

fn check_details(found: &Details, link: &Link) {
    let (truth, exact) = all_visitors(link);
    assert!(agrees(found.visitors, truth, exact), "{} visitors for {truth}", found.visitors);
    let expected = Details {
        code: link.code,
        url: link.url.clone(),
        created_at_us: link.created_at_us,
        created: link.created,
        status: link.status,
        expires_at_us: link.expires_at_us,
        max_clicks: None,
        verdict: TargetVerdict::Followed,
        tags: link.tags.clone(),
        clicks: link.clicks.len() as u64,
        visitors: found.visitors,
        bots: bots(link),
    };
    assert_eq!(*found, expected);
}

fn check_stats(found: &Stats, link: &Link, request: &StatsRequest) {
    let (truth, exact) = all_visitors(link);
    assert!(agrees(found.visitors, truth, exact), "{} visitors for {truth}", found.visitors);
    assert_eq!((found.clicks, found.bots), (link.clicks.len() as u64, bots(link)));
    check_series(&found.series, link, request);
    let mut agents = counts(link, |click| click.agent);
    agents.sort_by_key(|&(agent, clicks)| (Reverse(clicks), agent));
    assert_eq!(found.agents, agents);
    check_referrers(found, link);
}

fn check_series(found: &[SeriesPoint], link: &Link, request: &StatsRequest) {
    let width_us = if request.bucket == Bucket::Hour { HOUR_US } else { DAY_US };
    let within = |start_us: u64| {
        request.from_us.is_none_or(|us| us <= start_us)
            && request.to_us.is_none_or(|us| start_us < us)
    };
    let series: Vec<_> = link.series(width_us).into_iter().filter(|&(us, _)| within(us)).collect();
    assert_eq!(found.len(), series.len(), "{found:?}");
    for (point, (start_us, clicks)) in found.iter().zip(series) {
        assert_eq!((point.start_us, point.clicks), (start_us, clicks.len() as u64));
        let truth = visitors(&clicks);
        match (request.bucket, point.visitors) {
            (Bucket::Hour, None) => {}
            (Bucket::Day, Some(found)) if agrees(found, truth, truth <= EXACT) => {}
            (_, found) => panic!("{found:?} visitors for {truth}"),
        }
    }
}

fn counts<K: std::hash::Hash + Eq>(link: &Link, key: impl Fn(&Click) -> K) -> Vec<(K, u64)> {
    let mut counts = HashMap::new();
    link.clicks.iter().for_each(|click| *counts.entry(key(click)).or_default() += 1);
    counts.into_iter().collect()
}

fn check_referrers(found: &Stats, link: &Link) {
    let mut truth = counts(link, |click| click.referrer.clone());
    let named = truth.iter().filter(|(name, _)| name.is_some()).count();
    if named <= EXACT {
        truth.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let referrers = found.referrers.iter().map(|r| (r.referrer.clone(), r.clicks));
        assert_eq!(referrers.collect::<Vec<_>>(), truth);
        assert!(found.referrers.iter().all(|r| r.excess == 0));
        return;
    }
    let truth: HashMap<_, _> = truth.into_iter().collect();
    assert_eq!(found.referrers.iter().map(|r| r.clicks).sum::<u64>(), found.clicks);
    assert!(found.referrers.is_sorted_by(|a, b| a.clicks >= b.clicks));
    for referrer in &found.referrers {
        let truth = truth[&referrer.referrer];
        assert!(referrer.clicks >= truth && referrer.clicks - referrer.excess <= truth);
    }
    assert!(found.referrers.iter().filter(|r| r.referrer.is_some()).count() == EXACT);
}

fn fits(link: &Link, request: &ListRequest) -> bool {
    let contains = |text: &str| {
        let wanted = request.search.as_deref().unwrap_or_default().to_lowercase();
        text.to_lowercase().contains(&wanted)
    };
    link.status != Status::Deleted
        && request.tag.as_ref().is_none_or(|tag| link.tags.iter().any(|t| t == tag))
        && ((!link.url.starts_with("sealed:") && contains(&link.url))
            || contains(&link.code.to_string())
            || link.tags.iter().any(|tag| contains(tag)))
}
