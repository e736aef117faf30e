//! The catalogue: topics, items and their prices, orders that cannot oversell. The bookstore's
//! interface byte for byte, and a JSON interface next to it.

#![forbid(unsafe_code)]

mod cached;
mod etag;
mod execute;
mod fresh;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzed;
mod original;
mod problems;
mod refusal;
mod rendered;
mod resources;
mod search;
mod segments;
mod settings;
mod view;

use cached::{CachedAnswer, fast_path};
use original::{ORDERED, add_stock, deduct_stock, lookup, lookup_all, price, search_topics};
use problems::{
    CATALOGUE_FULL, ITEM_CHANGED, ITEM_NOT_FOUND, ITEM_WITHDRAWN, ORDER_NOT_FOUND,
    SEARCH_NOT_BUILT, SKU_TAKEN, SOLD_OUT, STOCK_TOO_LOW, TOPIC_NOT_FOUND, TOPIC_TAKEN,
};
use resources::{AFTER, BEFORE, IN_STOCK, IN_TOPIC, KNOWN_STOCK, LIMIT, OF_ITEM, SKU, WITHDRAWN};
use search::SearchRoom;
use segments::{AMOUNT, ITEM, ORDER, PRICE, TOPIC, WORD};
use settings::CatalogueConfig;
use std::sync::Arc;
use view::{Catalogue, Currency, Folded};
use wellspring_host::declare::routes;
use wellspring_host::fast::Factory;
use wellspring_host::http::contract::{Accept, FRESHNESS_CACHED, IDEMPOTENCY_KEY, LOCATION};
use wellspring_host::http::declared_problems::{APPENDING, READING, VIEWING};
use wellspring_host::http::face::{Face, ServedRoute, Surroundings};
use wellspring_host::http::{Host, JSON, NDJSON};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::names::MAIN;
use wellspring_host::setup::SetupError;
use wellspring_host::stats::family::Family;
use wellspring_host::view::{Live, ViewSlot};
use wellspring_host::wire::problem::{self, KEY_REUSED, Kind, Problem, TOO_LARGE};

/// The face.
pub struct CatalogueFace {
    host: Arc<Host>,
    /// The default currency of items.
    currency: Currency,
    /// The catalogue of the log `main`.
    view: Arc<ViewSlot<Catalogue>>,
    /// The full-text index.
    search: SearchRoom,
}

impl Face for CatalogueFace {
    const NAME: &'static str = "catalogue";
    const PROBLEMS: &'static [&'static Kind] = problems::ALL;
    type Settings = CatalogueConfig;
    const ROUTES: &'static [ServedRoute<CatalogueFace>] = routes! { |face| face;
        GET "/lookup" Main Reader lookup_all: "All items and topics, in the format of the \
                                               bookstore's clients."
            .fresh(FRESHNESS_CACHED) .accept(Accept::Ignored) .fails[READING, VIEWING, &[&TOO_LARGE]]
            => [200 JSON "BookstoreItems", 304];
        GET "/lookup/{item}" Main Reader lookup: "An item and its topic, in the format of the \
                                                  bookstore's clients."
            .at(&ITEM) .fresh(FRESHNESS_CACHED) .accept(Accept::Ignored) .fails[VIEWING] => [200 JSON "BookstoreItem", 304];
        GET "/search/{word}" Main Reader search_topics: "Items of the topics whose names \
                                                         contain a word."
            .at(&WORD) .fresh(FRESHNESS_CACHED) .accept(Accept::Ignored) .fails[READING, VIEWING, &[&TOO_LARGE]]
            => [200 JSON "BookstoreItems", 304];
        POST "/order/{item}" Main Writer original::order: "Orders items: true, or false if \
                                                           there are not enough in stock."
            .at(&ITEM) .query[&ORDERED] .headers[&IDEMPOTENCY_KEY] .short(true)
            .fails[APPENDING, VIEWING, &[&CATALOGUE_FULL, &KEY_REUSED, &TOO_LARGE]] => [200 JSON "Done"];
        POST "/update/{item}/stock/add/{amount}" Main Operator add_stock: "Adds items to the stock: true, or false if that is impossible."
            .at(&ITEM) .at(&AMOUNT) .headers[&IDEMPOTENCY_KEY] .short(true) .fails[APPENDING, VIEWING, &[&KEY_REUSED, &TOO_LARGE]]
            => [200 JSON "Done"];
        POST "/update/{item}/stock/deduct/{amount}" Main Operator deduct_stock:
            "Takes items out of stock: true, or false if there are not enough."
            .at(&ITEM) .at(&AMOUNT) .headers[&IDEMPOTENCY_KEY] .short(true) .fails[APPENDING, VIEWING, &[&KEY_REUSED, &TOO_LARGE]]
            => [200 JSON "Done"];
        POST "/update/{item}/price/{price}" Main Operator price: "Sets an item's price: true, or false if the item does not exist."
            .at(&ITEM) .at(&PRICE) .short(true) .fails[APPENDING, VIEWING] => [200 JSON "Done"];
        GET "/v1/catalogue/topics" Main Reader resources::list_topics: "Topics by number, in pages."
            .query[&LIMIT, &AFTER] .fresh(FRESHNESS_CACHED) .fails[VIEWING] => [200 JSON "Topics"];
        POST "/v1/catalogue/topics" Main Operator resources::add_topic: "Adds a topic."
            .takes[(JSON, "TopicName")] .fails[APPENDING, VIEWING, &[&TOPIC_TAKEN, &CATALOGUE_FULL]] => [201 JSON "Topic"];
        PATCH "/v1/catalogue/topics/{topic}" Main Operator resources::rename_topic: "Renames a topic."
            .at(&TOPIC) .takes[(JSON, "TopicName")] .fails[APPENDING, VIEWING, &[&TOPIC_TAKEN, &TOPIC_NOT_FOUND]]
            => [200 JSON "Topic"];
        GET "/v1/catalogue/items" Main Reader resources::list: "Items by number, in pages."
            .query[&LIMIT, &AFTER, &IN_TOPIC, &SKU, &IN_STOCK, &WITHDRAWN] .fresh(FRESHNESS_CACHED) .short(true) .fails[READING, VIEWING]
            => [200 JSON "Items"];
        POST "/v1/catalogue/items" Main Operator resources::add:
            "Adds an item. With application/x-ndjson: one item a line, added or changed by its SKU."
            .query[&KNOWN_STOCK] .takes[(JSON, "NewItem"), (NDJSON, "NewItem")] .headers[&IDEMPOTENCY_KEY]
            .fails[APPENDING, VIEWING, &[&TOPIC_NOT_FOUND, &SKU_TAKEN, &CATALOGUE_FULL, &KEY_REUSED]]
            => [201 JSON "Item" + LOCATION, 200 JSON "Item" + LOCATION];
        GET "/v1/catalogue/items/{item}" Main Reader resources::item: "An item."
            .at(&ITEM) .fresh(FRESHNESS_CACHED) .accept(Accept::Ignored) .fails[VIEWING, &[&ITEM_NOT_FOUND]] => [200 JSON "Item", 304];
        PATCH "/v1/catalogue/items/{item}" Main Operator resources::change:
            "Changes an item; with If-Match only if it still has that ETag."
            .at(&ITEM) .takes[(JSON, "ItemChanges")] .short(true)
            .fails[APPENDING, VIEWING, &[&ITEM_NOT_FOUND, &TOPIC_NOT_FOUND, &ITEM_CHANGED, &CATALOGUE_FULL]] => [200 JSON "Item"];
        POST "/v1/catalogue/items/{item}/stock" Main Operator resources::change_stock: "Adds items to the stock, or takes them out."
            .at(&ITEM) .takes[(JSON, "StockChange")] .headers[&IDEMPOTENCY_KEY] .short(true)
            .fails[APPENDING, VIEWING, &[&ITEM_NOT_FOUND, &STOCK_TOO_LOW, &KEY_REUSED]] => [200 JSON "Item"];
        GET "/v1/catalogue/search" Main Reader search::search:
            "Full-text search in names and descriptions, best matches first, in pages."
            .query[&search::Q, &IN_TOPIC, &search::LIMIT, &search::AFTER] .fresh(FRESHNESS_CACHED)
            .fails[READING, VIEWING, &[&SEARCH_NOT_BUILT]] => [200 JSON "FoundItems"];
        GET "/v1/catalogue/items/{item}/prices" Main Reader resources::prices: "The latest prices of an item, newest first."
            .at(&ITEM) .fresh(FRESHNESS_CACHED) .fails[VIEWING, &[&ITEM_NOT_FOUND]] => [200 JSON "Prices"];
        GET "/v1/catalogue/orders" Main Reader resources::list_orders: "The orders of an item, newest first, in pages."
            .query[&OF_ITEM, &LIMIT, &BEFORE] .fresh(FRESHNESS_CACHED) .short(true) .fails[VIEWING, &[&ITEM_NOT_FOUND]] => [200 JSON "Orders"];
        POST "/v1/catalogue/orders" Main Writer resources::place: "Orders items, all or none."
            .takes[(JSON, "NewOrder")] .headers[&IDEMPOTENCY_KEY] .short(true)
            .fails[APPENDING, VIEWING, &[&ITEM_NOT_FOUND, &ITEM_WITHDRAWN, &SOLD_OUT, &CATALOGUE_FULL, &KEY_REUSED]]
            => [201 JSON "Order" + LOCATION, 200 JSON "Order" + LOCATION];
        GET "/v1/catalogue/orders/{order}" Main Reader resources::order: "An order."
            .at(&ORDER) .fresh(FRESHNESS_CACHED) .short(true) .fails[VIEWING, &[&ORDER_NOT_FOUND]] => [200 JSON "Order"];
        DELETE "/v1/catalogue/orders/{order}" Main Writer resources::cancel: "Cancels an order and returns its items to the stock."
            .at(&ORDER) .short(true) .fails[APPENDING, VIEWING, &[&ORDER_NOT_FOUND]] => [200 JSON "Order"];
    };

    fn check(
        settings: &CatalogueConfig,
        _surroundings: Surroundings<'_>,
    ) -> Result<(), SetupError> {
        settings.currency().map(drop)
    }

    fn kept_events(settings: &CatalogueConfig) -> Option<&'static KeptEvents> {
        settings.kept_events()
    }

    fn open(settings: CatalogueConfig, host: &Arc<Host>) -> Result<CatalogueFace, SetupError> {
        let currency = settings.currency()?;
        let view = ViewSlot::new(|| Ok(()));
        host.node.attach(MAIN, Arc::clone(&view) as _).map_err(|error| error.to_string())?;
        let search = SearchRoom::open(&view)?;
        Ok(CatalogueFace { host: Arc::clone(host), currency, view, search })
    }

    fn figures(&self) -> Vec<Family> {
        let live = self.view.live();
        let Some(folded) = live.as_ref().and_then(|live| live.folded()) else { return Vec::new() };
        let (items, topics) = {
            let state = folded.read();
            (state.item_count() as u64, state.topics().len() as u64)
        };
        let mut figures = vec![
            Family::gauge("wellspring_catalogue_items", "Items, including withdrawn ones.", items),
            Family::gauge("wellspring_catalogue_topics", "Topics.", topics),
        ];
        figures.extend(self.search.figures());
        figures
    }

    fn fast_paths(&self) -> Vec<Factory> {
        CachedAnswer::ALL.iter().map(|answer| fast_path(*answer, &self.view)).collect()
    }
}

impl CatalogueFace {
    /// The view of the catalogue.
    fn live(&self) -> Result<Arc<Live<Catalogue>>, Box<Problem>> {
        self.view.live().ok_or_else(|| problem::LOG_CLOSED.because("the log main is being emptied"))
    }

    /// The fold, after waiting for it.
    fn folded<'a>(&self, live: &'a Live<Catalogue>) -> Result<&'a Folded, Box<Problem>> {
        live.folded().ok_or_else(|| problem::VIEW_NOT_READY.because("the view is being rebuilt"))
    }
}
