//! Arbitrary text typed into the catalogue's search box: words and phrases or refused, never a
//! panic; typed again as plain words it holds the same words.
use std::collections::BTreeSet;
use wellspring_server::parsers::catalogue_search;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((words, phrased)) = catalogue_search(text) else {
        assert!(text.trim().is_empty() || text.len() > 300);
        return;
    };
    assert!(phrased <= words.len());
    let plain = text.replace('"', " ");
    let (plain, none_phrased) = catalogue_search(&plain).unwrap_or_default();
    assert_eq!(none_phrased, 0);
    let set = |words: Vec<String>| words.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(set(words), set(plain), "{text:?}");
}
