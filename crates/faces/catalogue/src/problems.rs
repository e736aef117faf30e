//! The kinds of problems of the catalogue.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    ITEM_NOT_FOUND 404 "item-not-found" "There is no such item" Retry::No,
        "No item has this number. Items are numbered from 1 as they are added.",
        "Look the number up; GET /v1/catalogue/items lists the items.";
    TOPIC_NOT_FOUND 404 "topic-not-found" "There is no such topic" Retry::No,
        "No topic has this number.",
        "Look the number up; GET /v1/catalogue/topics lists the topics.";
    ORDER_NOT_FOUND 404 "order-not-found" "There is no such order" Retry::No,
        "No order has this id. It is the number of the item, a dash, and the number of the order among those of the item.",
        "Look the id up; it stands in the answer to the order.";
    SKU_TAKEN 409 "sku-taken" "Another item has this SKU" Retry::No,
        "Each SKU belongs to one item, for ever. Nothing was added.",
        "Choose another SKU, or change the item that has it.";
    TOPIC_TAKEN 409 "topic-taken" "Another topic has this name" Retry::No,
        "Topics are told apart by their names. Nothing was changed.",
        "Choose another name, or use the topic that has it.";
    SOLD_OUT 409 "sold-out" "There are not as many" Retry::Same,
        "Fewer are in stock than were ordered. Nothing was ordered.",
        "Order at most as many as stock says, or wait until there are more.";
    STOCK_TOO_LOW 409 "stock-too-low" "More was to be taken out than there is" Retry::AfterReread,
        "A stock is never below zero. Nothing was changed.",
        "Look at the stock, then take out less.";
    ITEM_WITHDRAWN 410 "item-withdrawn" "The item has been withdrawn" Retry::No,
        "The item is not sold any more. Nothing was ordered.",
        "Who runs the catalogue can offer it again: PATCH the item with {\"withdrawn\":false}.";
    ITEM_CHANGED 412 "item-changed" "The item has changed meanwhile" Retry::AfterReread,
        "The item is no longer what If-Match names. Nothing was changed.",
        "Read the item again, and decide again.";
    SEARCH_NOT_BUILT 501 "search-not-built" "This program has no full-text search" Retry::No,
        "Full-text search is in programs that are built with the feature search, as the released ones are.",
        "Use a released program, or build with --features search. GET /v1/catalogue/items and /search/{word} need none of it.";
    CATALOGUE_FULL 507 "catalogue-full" "The catalogue has no room for more" Retry::No,
        "There are as many items, topics, or orders of an item as there may be.",
        "Use another server for more.";
}
