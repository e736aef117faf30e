#!/usr/bin/env python3
"""Dynamic product price: customers pay the price they were shown, as long as it is fair.

A displayed price is good if it is the present price, or was until at most ten
minutes ago. Price changes carry the old price, so the grace period is one
projection: when was each former price last replaced? A cart with several
products is still one decision and one append.
"""

from demo import Refused, chapter, check, check_refused, event, fresh_log, race, say, succeeded
from wellspring import matching, projection

GRACE_MINUTES = 10
PRICED = ["ProductDefined", "ProductPriceChanged"]


def define_product(log, product, price, minute=0):
    tag = f"product:{product}"

    def decision(states):
        if states["defined"]:
            raise Refused(f"product {product} is already defined")
        return [event("ProductDefined", [tag], product=product, price=price, minute=minute)]

    return log.decide({"defined": projection("count", ["ProductDefined"], [tag])}, decision)


def change_price(log, product, price, minute=0):
    tag = f"product:{product}"

    def decision(states):
        old = states["price"]
        if old is None:
            raise Refused(f"product {product} is not defined")
        if old == price:
            raise Refused(f"the price of {product} is {price} already")
        data = {"product": product, "from": old, "price": price, "minute": minute}
        return [event("ProductPriceChanged", [tag], **data)]

    return log.decide({"price": projection({"last": "/price"}, PRICED, [tag])}, decision)


def order(log, cart, minute=0, grace=GRACE_MINUTES):
    """Orders a cart of {product: displayed price in cents}."""
    projections = {}
    for product in cart:
        tags = [f"product:{product}"]
        replaced = {"group": {"by": "/from", "reduce": {"last": "/minute"}}}
        projections[f"price of {product}"] = projection({"last": "/price"}, PRICED, tags)
        # For each former price the minute in which it was last replaced.
        projections[f"replaced for {product}"] = projection(
            replaced, ["ProductPriceChanged"], tags, init={}
        )

    def decision(states):
        for product, displayed in cart.items():
            if displayed == states[f"price of {product}"]:
                continue
            replaced_in = states[f"replaced for {product}"].get(str(displayed))
            if replaced_in is None or minute >= replaced_in + grace:
                raise Refused(f"{displayed} is not the price of {product}")
        tags = [f"product:{product}" for product in cart]
        return [event("ProductsOrdered", tags, cart=cart, minute=minute)]

    return log.decide(projections, decision)


def unfair_orders(log, product):
    """Replays the log: orders whose price was not the present one at their place in the order of events."""
    price, unfair = None, []
    for found in log.read(matching(tags=[f"product:{product}"])):
        if found.type == "ProductsOrdered":
            if found.data["cart"][product] != price:
                unfair.append(found.position)
        else:
            price = found.data["price"]
    return unfair


def main(log):
    chapter("The displayed price must be the price")
    define_product(log, "tea", 500)
    check_refused(lambda: define_product(log, "tea", 1), "defining it twice is refused")
    order(log, {"tea": 500})
    check_refused(lambda: order(log, {"tea": 100}), "a made-up price is refused")
    check_refused(lambda: order(log, {"mug": 100}), "an unknown product is refused")

    chapter("A price that has just changed is honoured for ten minutes")
    change_price(log, "tea", 600, minute=30)
    check_refused(lambda: change_price(log, "tea", 600, minute=31), "the same price again is refused")
    order(log, {"tea": 600}, minute=31)
    order(log, {"tea": 500}, minute=39)
    say("nine minutes after the change the old price was accepted")
    check_refused(lambda: order(log, {"tea": 500}, minute=40), "after ten minutes it is refused")

    chapter("A cart is ordered as a whole or not at all")
    define_product(log, "mug", 1200)
    order(log, {"tea": 600, "mug": 1200}, minute=50)
    check_refused(lambda: order(log, {"tea": 600, "mug": 1}, minute=50), "one wrong price spoils it")
    ordered = list(log.read(matching(["ProductsOrdered"], ["product:mug"])))
    check(len(ordered) == 1, "and nothing of that cart was ordered")

    chapter("Twenty customers order while the price changes, without any grace")
    define_product(log, "lamp", 1000)
    customers = [lambda: order(log, {"lamp": 1000}, grace=0) for _ in range(20)]
    shop = [lambda: change_price(log, "lamp", 1500)]
    results = race(customers[:10] + shop + customers[10:])
    ordered = len(succeeded(results)) - 1
    say(f"{ordered} were in time at the old price, {20 - ordered} were refused")
    check(len(list(log.read(matching(["ProductsOrdered"], ["product:lamp"])))) == ordered,
          "the log holds exactly the orders that were confirmed")
    check(unfair_orders(log, "lamp") == [], "no order at the old price stands after the change")
    check_refused(lambda: order(log, {"lamp": 1000}, grace=0), "the old price is history now")


if __name__ == "__main__":
    with fresh_log("dynamic-product-price") as fresh:
        main(fresh)
