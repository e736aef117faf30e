//! Answers in the bookstore's format: `{"ok":…,"result":…,"topics":[…]}`, prices as short numbers.

use crate::rendered::RenderedAnswer;
use crate::view::{Item, ItemId, Rendering, State, Topic, TopicId, push_short_price};
use std::sync::Arc;
use wellspring_host::wire::json::{push_list, push_string, push_u64};
use wellspring_host::wire::problem::{self, Problem};

/// Most items of one answer, and most topics: there is no paging here.
const MOST_LISTED: usize = 10_000;
/// Most entries that a serving thread lists in an answer, and most topics that it searches.
const SHORT: usize = 1_000;

/// The thread that renders an answer of many items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renderer {
    /// A serving thread, which must be fast.
    ServingThread,
    /// A dedicated thread.
    Elsewhere,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The answer is too long for this renderer.
    TooLong,
    /// There is no answer.
    Problem(Box<Problem>),
}

/// Every item and topic.
///
/// # Errors
/// There are too many.
pub(crate) fn all(state: &State, renderer: Renderer) -> Result<Arc<[u8]>, NoAnswer> {
    check_listed(state.item_count().max(state.topics().len()), renderer)?;
    Ok(state.rendered_all(|| found(state.items_from(1), state.topics())))
}

/// Checks whether this many items, or topics if more, can be listed.
fn check_listed(count: usize, renderer: Renderer) -> Result<(), NoAnswer> {
    match renderer {
        _ if count > MOST_LISTED => Err(NoAnswer::Problem(too_many(count))),
        Renderer::ServingThread if count > SHORT => Err(NoAnswer::TooLong),
        Renderer::ServingThread | Renderer::Elsewhere => Ok(()),
    }
}

/// Items of the topics whose names contain a word, ignoring case.
///
/// # Errors
/// There are too many.
pub(crate) fn search(state: &State, word: &str, renderer: Renderer) -> Result<Arc<[u8]>, NoAnswer> {
    if renderer == Renderer::ServingThread && state.topics().len() > SHORT {
        return Err(NoAnswer::TooLong);
    }
    let word = word.to_lowercase();
    if let Some(found) = state.known_search(&word) {
        return Ok(found);
    }
    let is_in = |(_, topic): &(TopicId, &Topic)| topic.name.to_lowercase().contains(&word);
    let topics: Vec<_> = state.topics().filter(is_in).collect();
    let items: usize = topics.iter().map(|(_, topic)| topic.items.len()).sum();
    check_listed(items.max(topics.len()), renderer)?;
    Ok(state.rendered_search(&word, || {
        let mut ids: Vec<ItemId> =
            topics.iter().flat_map(|(_, topic)| &topic.items).copied().collect();
        ids.sort_unstable();
        let items = ids.into_iter().filter_map(|id| Some((id, state.item(id)?)));
        found(items, topics.iter().copied())
    }))
}

/// An item and its topic, or that it does not exist.
pub(crate) fn item(state: &State, id: ItemId) -> RenderedAnswer {
    let Some(item) = state.item(id) else {
        let content = b"{\"ok\":false,\"result\":null,\"topics\":[]}".to_vec();
        return RenderedAnswer { changed_at: state.changed_at(), content };
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
    RenderedAnswer { changed_at: state.item_changed_at(item), content: content.into_owned() }
}

fn too_many(count: usize) -> Box<Problem> {
    let detail = format!(
        "there are {count} items or topics, and this answer has no pages; use GET \
         /v1/catalogue/items and GET /v1/catalogue/topics"
    );
    problem::TOO_LARGE.because(detail).limit(MOST_LISTED as u64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Catalogue;
    use wellspring_host::view::contract::{LogEvent, View};
    use wellspring_types::Position;

    /// An added topic, whose number is its index.
    struct AddedTopic(Position, String);

    impl LogEvent for AddedTopic {
        fn position(&self) -> Position {
            self.0
        }

        fn recorded_at_us(&self) -> u64 {
            0
        }

        fn event_type(&self) -> &str {
            "CatalogueTopicAdded"
        }

        fn tags(&self) -> impl Iterator<Item = &str> {
            std::iter::empty()
        }

        fn data(&self) -> &[u8] {
            self.1.as_bytes()
        }
    }

    #[test]
    fn there_are_never_more_topics_than_one_answer_lists() {
        let mut catalogue = Catalogue::new();
        let folded = Arc::clone(Catalogue::folded(&catalogue));
        for topic in 1..=MOST_LISTED + 1 {
            let data = format!(r#"{{"topic":{topic},"name":"T {topic}"}}"#);
            catalogue.apply(&AddedTopic(topic as Position, data));
        }
        let state = folded.read();
        assert_eq!(state.topics().len(), MOST_LISTED, "the fold passes over those beyond");
        assert!(all(&state, Renderer::Elsewhere).is_ok());
        assert!(search(&state, "t 777", Renderer::Elsewhere).is_ok());
        for answer in
            [all(&state, Renderer::ServingThread), search(&state, "t", Renderer::ServingThread)]
        {
            assert!(matches!(answer, Err(NoAnswer::TooLong)), "it is for a thread of its own");
        }
    }
}
