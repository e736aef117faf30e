#!/usr/bin/env python3
"""Invoice number: consecutive numbers without a gap and without a duplicate.

The next number is the highest so far plus one. The append condition says that
no invoice was created since the highest was read, so two writers can never use
the same number, and a number is used only together with its invoice, so there
is no gap. Invoice numbers are a true sequence: writers do have to take turns.
"""

from demo import chapter, check, event, fresh_log, race, say, succeeded
from wellspring import matching, projection

FIRST = 1001


def create_invoice(log, customer, amount):
    # `init` is the state while there is no invoice at all.
    highest = projection({"max": "/number"}, ["InvoiceCreated"], init=FIRST - 1)

    def decision(states):
        number = states["highest"] + 1
        tags = [f"invoice:{number}", f"customer:{customer}"]
        return [event("InvoiceCreated", tags, number=number, customer=customer, amount=amount)]

    return log.decide({"highest": highest}, decision)


def numbers(log):
    return [e.data["number"] for e in log.read(matching(["InvoiceCreated"]))]


def main(log):
    chapter("Numbers begin where the bookkeeper wants them to")
    create_invoice(log, "ada", 120.50)
    create_invoice(log, "ben", 79.50)
    check(numbers(log) == [1001, 1002], "the first invoices are 1001 and 1002")

    chapter("Sixteen clerks create an invoice each, at the same moment")
    results = race([lambda i=i: create_invoice(log, f"c{i}", 10 + i) for i in range(16)])
    check(len(succeeded(results)) == 16, "all sixteen succeeded, some after looking again")
    found = numbers(log)
    say(f"numbers in the order of the log: {found[0]} … {found[-1]}")
    check(found == list(range(FIRST, FIRST + 18)), "consecutive: no gap, no duplicate, in order")

    chapter("What the server can add up meanwhile")
    states = log.project({
        "count": projection("count", ["InvoiceCreated"]),
        "total": projection({"sum": "/amount"}, ["InvoiceCreated"]),
    }).states
    say(f"{states['count']} invoices, {states['total']} in total")
    check(states == {"count": 18, "total": 200 + sum(range(10, 26))}, "every invoice is counted once")


if __name__ == "__main__":
    with fresh_log("invoice-number") as fresh:
        main(fresh)
