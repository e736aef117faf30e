//! All queries, with their answers as one text.

use super::history::TAGS;
use super::oracle::{DAY_US, Oracle};
use std::fmt::Write;
use wellspring_face_links::view::{
    Bucket, Code, Folded, Links, ListOrder, ListRequest, Lookup, StatsRequest,
};
use wellspring_host::view::contract::View;

/// Codes to query: existing ones and some that may not exist.
pub(crate) fn codes(oracle: &Oracle) -> Vec<Code> {
    let known = oracle.links.iter().map(|link| link.code);
    let others = ["0", "1", "aaa", "api", "Yci", "zzzzzzzzzz"];
    known.chain(others.iter().filter_map(|text| Code::parse(text.as_bytes()))).collect()
}

/// Times to query, ascending: around the last day and around links' expiries.
pub(crate) fn times(oracle: &Oracle, now_us: u64) -> Vec<u64> {
    let ends = oracle.links.iter().filter_map(|link| link.expires_at_us);
    let mut times: Vec<u64> = ends.take(2).flat_map(|us| [us.saturating_sub(1), us]).collect();
    times.extend([now_us.saturating_sub(DAY_US), now_us]);
    times.sort_unstable();
    times
}

/// Lists to walk, with every limit.
pub(crate) fn lists(count: usize) -> Vec<ListRequest> {
    let mut lists = Vec::new();
    for order in [ListOrder::Newest, ListOrder::Oldest] {
        let plain = ListRequest { order, scan_limit: 10_000, ..ListRequest::default() };
        for limit in 1..=count.min(12) + 1 {
            lists.push(ListRequest { limit, ..plain.clone() });
            lists.push(ListRequest { limit, scan_limit: limit.div_ceil(2) + 1, ..plain.clone() });
        }
        for tag in TAGS.iter().chain(&["none"]) {
            let tag = Some((*tag).to_owned());
            lists.push(ListRequest { limit: 3, tag: tag.clone(), ..plain.clone() });
            lists.push(ListRequest { limit: 3, scan_limit: 2, tag, ..plain.clone() });
        }
        for search in ["", "EXAMPLE", "ÜBER", "ß", "ПУТЬ", "yci", "GRÖSSE", "istanbul", "sealed"]
        {
            let search = Some(search.to_owned());
            lists.push(ListRequest { limit: 2, search: search.clone(), ..plain.clone() });
            let tag = Some("a".to_owned());
            lists.push(ListRequest { limit: 50, scan_limit: 7, search, tag, ..plain.clone() });
        }
    }
    lists
}

/// All answers of a view.
pub(crate) fn answers(folded: &Folded, codes: &[Code], times_us: &[u64]) -> String {
    let mut text = format!("{}\n", folded.count());
    for &code in codes {
        for &now_us in times_us {
            let mut location = Vec::new();
            let found: Lookup = folded.lookup(code, now_us, &mut location);
            let location = String::from_utf8(location).expect("visible ASCII");
            writeln!(text, "{code} {found:?} {location}").expect("a text takes all");
        }
        let stats = [Bucket::Hour, Bucket::Day]
            .map(|bucket| folded.stats(code, &StatsRequest { bucket, from_us: None, to_us: None }));
        writeln!(text, "{:?} {stats:?}", folded.details(code)).expect("a text takes all");
    }
    for request in lists(folded.count() as usize) {
        writeln!(text, "{:?}", folded.list(&request)).expect("a text takes all");
    }
    text
}

/// The snapshot of a view at rest.
pub(crate) fn encoded(view: &Links) -> Vec<u8> {
    let mut bytes = Vec::new();
    Links::encode(view.folded(), &mut bytes).expect("memory takes all");
    bytes
}
