#!/usr/bin/env python3
"""Record duplication: a form that is sent twice places one order.

The form carries an idempotency token, made when the form was shown. The order
event has it as a tag, and the decision requires that no event carries it yet.
Two shorter ways to the same end follow: a condition without any reading
(`failIfExists`), and the `Idempotency-Key` header, where the repetition gets the
first answer instead of a refusal.
"""

import uuid

from demo import Refused, chapter, check, check_refused, event, fresh_log, race, succeeded
from wellspring import ConditionFailed, any_of, matching, projection, unless_exists


def place_order(log, order, token):
    tags = [f"order:{order}", f"token:{token}"]
    projections = {
        "token_used": projection("count", ["OrderPlaced"], tags[1:]),
        "order_exists": projection("count", ["OrderPlaced"], tags[:1]),
    }

    def decision(states):
        if states["token_used"]:
            raise Refused("this form was sent already")
        if states["order_exists"]:
            raise Refused(f"order {order} exists")
        return [event("OrderPlaced", tags, order=order)]

    return log.decide(projections, decision)


def place_order_unread(log, order, token):
    """The same guard without a look at the log first: one request instead of two."""
    tags = [f"order:{order}", f"token:{token}"]
    placed = any_of(*(matching(["OrderPlaced"], [tag]) for tag in tags))
    return log.append([event("OrderPlaced", tags, order=order)], unless_exists(placed))


def orders_with(log, token):
    return len(list(log.read(matching(["OrderPlaced"], [f"token:{token}"]))))


def main(log):
    chapter("The same form twice, in turn")
    place_order(log, "o1", "t1")
    check_refused(lambda: place_order(log, "o2", "t1"), "the second sending is refused")
    check_refused(lambda: place_order(log, "o1", "t2"), "so is an order number in use")
    place_order(log, "o2", "t2")

    chapter("An impatient customer clicks twelve times")
    # Every click makes an order number of its own; only the token tells that they are one form.
    results = race([lambda i=i: place_order(log, f"click-{i}", "t3") for i in range(12)])
    check(len(succeeded(results)) == 1, "exactly one order was placed")
    check(orders_with(log, "t3") == 1, "and the log holds exactly one")

    chapter("The same without reading first: failIfExists")
    results = race([lambda i=i: place_order_unread(log, f"unread-{i}", "t4") for i in range(12)])
    check(len(succeeded(results)) == 1, "exactly one of twelve appends succeeded")
    check(all(isinstance(r, ConditionFailed) for r in results if r not in succeeded(results)),
          "the others were told of the conflict")
    check(orders_with(log, "t4") == 1, "and the log holds exactly one")

    chapter("A sender that lost the answer asks again: Idempotency-Key")
    key = str(uuid.uuid4())
    order = [event("OrderPlaced", ["order:o9", "token:t9"], order="o9")]
    answers = race([lambda: log.append(order, key=key) for _ in range(8)])
    check(len({a.first for a in answers}) == 1, "eight requests got the same position")
    check(sum(not a.replayed for a in answers) == 1, "seven of them were told it is a replay")
    check(orders_with(log, "t9") == 1, "and the log holds exactly one")


if __name__ == "__main__":
    with fresh_log("record-duplication") as fresh:
        main(fresh)
