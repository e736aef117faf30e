//! The fast path of `GET /lookup`, `/lookup/{item}`, `/search/{word}` and
//! `/v1/catalogue/items/{item}`.

use super::memo::Memo;
use crate::etag::push_etag;
use crate::original::{self, NoAnswer, Renderer};
use crate::refusal::unknown_item;
use crate::rendered::RenderedAnswer;
use crate::resources;
use crate::view::{Catalogue, ItemId, Rendering, State};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use wellspring_host::fast::{
    Claim, Factory, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head, Shape,
    TicketState, Varying, Word, erase,
};
use wellspring_host::http::content::names_etag;
use wellspring_host::http::history;
use wellspring_host::identity::Role;
use wellspring_host::names::MAIN;
use wellspring_host::view::{Live, ViewSlot};
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_types::Position;

/// The forms of the answers, by index.
const FOUND: usize = 0;
const NOT_MODIFIED: usize = 1;
/// The same without a history, which a copy does not know before its log is founded.
const WITHOUT_HISTORY: usize = 2;
/// The headers that vary in all of them; the last is missing from [`WITHOUT_HISTORY`].
const VARYING: &[&str] = &["etag", "wellspring-position", history::HEADER];
/// Caches may store the answer, and must ask before they use it (RFC 9111, 5.2.2.4).
const CACHING: &str = "no-cache";

/// The kinds of cached answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachedAnswer {
    /// All items, for the bookstore's clients.
    Lookup,
    /// An item, for the bookstore's clients.
    LookupItem,
    /// Items of the topics whose names contain a word.
    Search,
    /// An item of the JSON interface.
    Item,
}

impl CachedAnswer {
    /// All of them.
    pub(crate) const ALL: [CachedAnswer; 4] =
        [CachedAnswer::Lookup, CachedAnswer::LookupItem, CachedAnswer::Search, CachedAnswer::Item];

    fn route(self) -> &'static str {
        match self {
            CachedAnswer::Lookup => "/lookup",
            CachedAnswer::LookupItem => "/lookup/{item}",
            CachedAnswer::Search => "/search/{word}",
            CachedAnswer::Item => "/v1/catalogue/items/{item}",
        }
    }

    /// Prefix of its targets, and the maximum length of the word after it.
    fn target(self) -> (&'static str, Option<usize>) {
        match self {
            CachedAnswer::Lookup => ("/lookup", None),
            CachedAnswer::LookupItem => ("/lookup/", Some(10)),
            CachedAnswer::Search => ("/search/", Some(64)),
            CachedAnswer::Item => ("/v1/catalogue/items/", Some(10)),
        }
    }

    /// Whether a word is answered here. The general stack handles everything else, including
    /// errors.
    fn accepts(self, word: &[u8]) -> bool {
        match self {
            CachedAnswer::Lookup => word.is_empty(),
            CachedAnswer::Search => !word.is_empty() && word.iter().all(u8::is_ascii_alphanumeric),
            CachedAnswer::LookupItem | CachedAnswer::Item => item_of(word).is_some(),
        }
    }

    /// The answer for a word, and the last event that changed it.
    fn render(self, state: &State, word: &[u8]) -> Result<RenderedAnswer, NoAnswer> {
        let id = || item_of(word).unwrap_or_default();
        match self {
            CachedAnswer::Lookup => {
                let content = original::all(state, Renderer::ServingThread)?;
                Ok(RenderedAnswer { changed_at: state.changed_at(), content: content.to_vec() })
            }
            CachedAnswer::Search => {
                let word = std::str::from_utf8(word).unwrap_or_default();
                let content = original::search(state, word, Renderer::ServingThread)?;
                Ok(RenderedAnswer { changed_at: state.changed_at(), content: content.to_vec() })
            }
            CachedAnswer::LookupItem => Ok(original::item(state, id())),
            CachedAnswer::Item => {
                let id = id();
                let item = state.item(id).ok_or_else(|| NoAnswer::Problem(unknown_item(id)))?;
                let content = state
                    .rendered(item, Rendering::Resource, || resources::item_json(state, id, item));
                let changed_at = state.item_changed_at(item);
                Ok(RenderedAnswer { changed_at, content: content.into_owned() })
            }
        }
    }
}

/// The item of a word: a number in canonical form.
fn item_of(word: &[u8]) -> Option<ItemId> {
    let is_number = (1..=10).contains(&word.len()) && word.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(word).ok().filter(|_| is_number && word[0] != b'0')?;
    digits.parse().ok()
}

/// Makes the path of an answer for a serving thread.
pub(crate) fn fast_path(answer: CachedAnswer, view: &Arc<ViewSlot<Catalogue>>) -> Factory {
    let view = Arc::clone(view);
    Arc::new(move |_| {
        let view = Arc::clone(&view);
        erase(CachedPath {
            answer,
            view,
            log: Rc::from(MAIN),
            live: None,
            history: None,
            memo: Memo::default(),
        })
    })
}

/// A thread's access to an answer.
struct CachedPath {
    answer: CachedAnswer,
    view: Arc<ViewSlot<Catalogue>>,
    log: Rc<str>,
    /// The view; a new one after the log has been emptied.
    live: Option<Arc<Live<Catalogue>>>,
    /// The history of its log, as text. Missing while a copy does not know it.
    history: Option<Box<[u8]>>,
    memo: Memo,
}

/// What a head asks for apart from the word.
struct Conditions {
    /// Entity tags that the client has.
    if_none_match: Option<Box<[u8]>>,
    /// Least position of the answer.
    min_position: Position,
}

impl CachedPath {
    /// The view, missing while the log is being emptied, and the history of its log.
    fn renew(&mut self) {
        if self.live.as_ref().is_none_or(|live| live.is_closed()) {
            self.live = self.view.live();
            self.history = None;
            self.memo = Memo::default();
        }
        if self.history.is_none() {
            let known = self.live.as_ref().and_then(|live| live.log().history());
            self.history = known.map(|history| history.to_string().into_bytes().into());
        }
    }
}

impl FastPath for CachedPath {
    type Params = Conditions;
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: self.answer.route() }
    }

    fn forms(&self) -> Vec<Form> {
        let form = |status, varying_headers, content_type, content| Form {
            status,
            content_type,
            headers: vec![("cache-control", CACHING.to_owned())],
            varying_headers,
            content,
        };
        let both = |varying| {
            [
                form(200, varying, "application/json", FormContent::Varying),
                form(304, varying, "", FormContent::Fixed(b"")),
            ]
        };
        [both(VARYING), both(&VARYING[..2])].concat()
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let (prefix, most) = self.answer.target();
        let word = target.strip_prefix(prefix).filter(|_| method == "GET")?;
        let word_at = most.map(|most| Word { at: prefix.len(), most });
        let fits = word.len() <= most.unwrap_or(0) && self.answer.accepts(word.as_bytes());
        fits.then(|| Claim {
            role: Some(Role::Reader),
            log: Some(Rc::clone(&self.log)),
            shape: Shape::Bare(word_at),
        })
    }

    fn accepts(&self, word: &[u8]) -> bool {
        self.answer.accepts(word)
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<Conditions>, Box<Problem>> {
        let if_none_match = head.headers.get("if-none-match").map(Box::from);
        Ok(Some(Conditions { if_none_match, min_position: head.least_position() }))
    }

    fn answer(
        &mut self,
        conditions: &Conditions,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<Infallible> {
        self.renew();
        let CachedPath { answer, live, history, memo, .. } = self;
        let Some((live, folded)) = live.as_ref().and_then(|live| Some((live, live.folded()?)))
        else {
            return FastAnswer::Elsewhere(
                problem::VIEW_NOT_READY.because("the view is being rebuilt"),
            );
        };
        let history = history.as_deref();
        // The position first: what is read afterwards is at least as fresh.
        let position = live.position();
        if position < conditions.min_position {
            return FastAnswer::Elsewhere(
                problem::NOT_YET.because("the position has not been reached"),
            );
        }
        let changed_at = folded.changed_at();
        if let Some(rendered) = memo.get(asked.word, changed_at) {
            return reply(conditions, rendered, position, history, varying);
        }
        let state = folded.read();
        match answer.render(&state, asked.word) {
            Ok(rendered) => {
                memo.keep(asked.word, state.changed_at(), &rendered);
                reply(conditions, &rendered, position, history, varying)
            }
            Err(NoAnswer::Problem(problem)) => FastAnswer::Refused(problem),
            Err(NoAnswer::TooLong) => {
                let what = "the catalogue has grown too large for this route";
                FastAnswer::Elsewhere(problem::OVERLOADED.because(what))
            }
        }
    }

    fn settled(&mut self, ticket: &Infallible, _: &mut Varying) -> TicketState {
        match *ticket {}
    }
}

fn reply(
    conditions: &Conditions,
    rendered: &RenderedAnswer,
    position: Position,
    history: Option<&[u8]>,
    varying: &mut Varying,
) -> FastAnswer<Infallible> {
    let is_known = varying.header(|out| {
        let from = out.len();
        push_etag(out, rendered.changed_at, history);
        conditions.if_none_match.as_deref().is_some_and(|known| names_etag(known, &out[from..]))
    });
    varying.header(|out| push_u64(out, position));
    let forms = match history {
        Some(history) => {
            varying.header(|out| out.extend_from_slice(history));
            0
        }
        None => WITHOUT_HISTORY,
    };
    if is_known {
        return FastAnswer::Reply(forms + NOT_MODIFIED);
    }
    varying.content().extend_from_slice(&rendered.content);
    FastAnswer::Reply(forms + FOUND)
}
