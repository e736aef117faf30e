//! Answers as the bookstore gives them: `{"ok":…,"result":…,"topics":[…]}`, prices as short numbers.

use crate::cached::Rendered;
use crate::view::{Item, ItemId, Rendering, State, Topic, TopicId, push_short_price};
use std::sync::Arc;
use wellspring_host::wire::json::{push_list, push_string, push_u64};
use wellspring_host::wire::problem::{self, Problem};

/// Most items of one answer: there are no pages here.
const MOST_ITEMS: usize = 10_000;
/// Most items, and topics that are looked through, of an answer that a serving thread renders.
const SHORT: usize = 1_000;

/// Who renders an answer of many items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renderer {
    /// A serving thread, which others wait for.
    ServingThread,
    /// A thread that is there for it.
    Elsewhere,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It is too long for whoever renders it.
    TooLong,
    /// There is none.
    Problem(Box<Problem>),
}

/// Every item and topic.
///
/// # Errors
/// There are too many.
pub(crate) fn all(state: &State, renderer: Renderer) -> Result<Arc<[u8]>, NoAnswer> {
    check(state.item_count(), state.topics().len(), renderer)?;
    Ok(state.rendered_all(|| found(state.items_from(1), state.topics())))
}

fn check(items: usize, topics: usize, renderer: Renderer) -> Result<(), NoAnswer> {
    match renderer {
        _ if items > MOST_ITEMS => Err(NoAnswer::Problem(too_many(items))),
        Renderer::ServingThread if items.max(topics) > SHORT => Err(NoAnswer::TooLong),
        Renderer::ServingThread | Renderer::Elsewhere => Ok(()),
    }
}

/// The items of the topics whose names hold a word, in either case.
///
/// # Errors
/// There are too many.
pub(crate) fn search(state: &State, word: &str, renderer: Renderer) -> Result<Arc<[u8]>, NoAnswer> {
    check(0, state.topics().len(), renderer)?;
    let word = word.to_lowercase();
    let is_in = |(_, topic): &(TopicId, &Topic)| topic.name.to_lowercase().contains(&word);
    let topics: Vec<_> = state.topics().filter(is_in).collect();
    check(topics.iter().map(|(_, topic)| topic.items.len()).sum(), 0, renderer)?;
    Ok(state.rendered_search(&word, || {
        let mut ids: Vec<ItemId> =
            topics.iter().flat_map(|(_, topic)| &topic.items).copied().collect();
        ids.sort_unstable();
        let items = ids.into_iter().filter_map(|id| Some((id, state.item(id)?)));
        found(items, topics.iter().copied())
    }))
}

/// An item and its topic, or that there is none.
pub(crate) fn item(state: &State, id: ItemId) -> Rendered {
    let Some(item) = state.item(id) else {
        let content = b"{\"ok\":false,\"result\":null,\"topics\":[]}".to_vec();
        return Rendered { changed_at: state.changed_at(), content };
    };
    let content = state.rendered(item, Rendering::Original, || {
        if item.standing.withdrawn {
            return b"{\"ok\":false,\"result\":null,\"topics\":[]}".to_vec();
        }
        let mut out = b"{\"ok\":true,\"result\":".to_vec();
        push_item(&mut out, id, item);
        let topic = state.topic(item.topic).map(|topic| (item.topic, topic));
        push_topics(&mut out, topic.into_iter());
        out
    });
    Rendered { changed_at: state.item_changed_at(item), content: content.to_vec() }
}

fn too_many(count: usize) -> Box<Problem> {
    let detail = format!(
        "these are {count} items, and this answer has no pages; GET /v1/catalogue/items gives them page by page"
    );
    problem::TOO_LARGE.because(detail).limit(MOST_ITEMS as u64)
}

fn found<'a>(
    items: impl Iterator<Item = (ItemId, &'a Item)>,
    topics: impl Iterator<Item = (TopicId, &'a Topic)>,
) -> Vec<u8> {
    let mut out = b"{\"ok\":true,\"result\":".to_vec();
    let sold = items.filter(|(_, item)| !item.standing.withdrawn);
    push_list(&mut out, sold, |out, (id, item)| push_item(out, id, item));
    push_topics(&mut out, topics);
    out
}

fn push_item(out: &mut Vec<u8>, id: ItemId, item: &Item) {
    out.extend_from_slice(b"{\"id\":");
    push_u64(out, id.into());
    out.extend_from_slice(b",\"name\":");
    push_string(out, &item.name);
    out.extend_from_slice(b",\"stock\":");
    push_u64(out, item.standing.stock.into());
    out.extend_from_slice(b",\"price\":");
    push_short_price(out, item.standing.price_minor, item.currency);
    out.extend_from_slice(b",\"topic\":");
    push_u64(out, item.topic.into());
    out.push(b'}');
}

fn push_topics<'a>(out: &mut Vec<u8>, topics: impl Iterator<Item = (TopicId, &'a Topic)>) {
    out.extend_from_slice(b",\"topics\":");
    push_list(out, topics, |out, (id, topic)| {
        out.extend_from_slice(b"{\"id\":");
        push_u64(out, id.into());
        out.extend_from_slice(b",\"name\":");
        push_string(out, &topic.name);
        out.push(b'}');
    });
    out.push(b'}');
}
