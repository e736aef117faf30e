//! The problem types of the catalogue.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    ITEM_NOT_FOUND 404 "item-not-found" "No such item" Retry::No,
        "No item has this number. Items are numbered from 1 in the order they are added.",
        "Check the number. GET /v1/catalogue/items lists all items.",
        "there is no item 99";
    TOPIC_NOT_FOUND 404 "topic-not-found" "No such topic" Retry::No,
        "No topic has this number.",
        "Check the number. GET /v1/catalogue/topics lists all topics.",
        "there is no topic 9" r#""topic":9"#;
    ORDER_NOT_FOUND 404 "order-not-found" "No such order" Retry::No,
        "No order has this id. An id is the number of the item, a dash, and the number of the order among those of the item.",
        "Check the id; the answer to the order contains it.",
        "there is no order 17-4";
    SKU_TAKEN 409 "sku-taken" "Another item has this SKU" Retry::No,
        "Each SKU belongs to one item for good. Nothing was added.",
        "Choose another SKU, or change the item that has it.",
        "the SKU book-1 belongs to item 17" r#""field":"sku","item":17"#;
    TOPIC_TAKEN 409 "topic-taken" "Another topic has this name" Retry::No,
        "The names of topics are unique. Nothing was changed.",
        "Choose another name, or use the topic that has it.",
        "\"History\" is the name of topic 3" r#""field":"name","topic":3"#;
    SOLD_OUT 409 "sold-out" "Not enough in stock" Retry::AfterReread,
        "The stock is smaller than the order. Nothing was ordered.",
        "Order at most the number that stock gives, or wait until more arrive.",
        "item 17: 5 were ordered, 3 are in stock" r#""field":"amount","stock":3"#;
    STOCK_TOO_LOW 409 "stock-too-low" "The stock is too low" Retry::AfterReread,
        "More was to be taken out than the stock holds, and a stock cannot be negative. Nothing was changed.",
        "Read the stock again, then take out less.",
        "5 cannot be taken out of a stock of 3" r#""field":"by","stock":3"#;
    ITEM_WITHDRAWN 410 "item-withdrawn" "The item has been withdrawn" Retry::No,
        "The item is no longer sold. Nothing was ordered.",
        "An operator of the catalogue can offer it again: PATCH the item with {\"withdrawn\":false}.",
        "item 17 has been withdrawn" r#""item":17"#;
    ITEM_CHANGED 412 "item-changed" "The item has changed" Retry::AfterReread,
        "The item has changed since the version that If-Match names. Nothing was changed.",
        "Read the item again and decide again.",
        "item 17 has changed since the client read it";
    SEARCH_NOT_BUILT 501 "search-not-built" "This program was built without full-text search" Retry::No,
        "Full-text search is an optional feature; the released programs have it, and this one does not.",
        "Use a released program, or build with --features search. GET /v1/catalogue/items and /search/{word} work without it.",
        "this program was built without the feature search";
    CATALOGUE_FULL 507 "catalogue-full" "The catalogue is full" Retry::No,
        "The limit of items, of topics, or of orders of an item is reached.",
        "Use another server for more.",
        "the limit of items is reached";
}
