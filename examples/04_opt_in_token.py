#!/usr/bin/env python3
"""Opt-in token: a double opt-in whose one-time code is checked against the log itself.

There is no table of tokens to keep, expire and clean: the sign-up event carries
the code as a tag, and whether a code is still good is a projection over the
events of that address. A code works once, for sixty minutes, and only until a
newer one was sent.
"""

import secrets

from demo import Refused, chapter, check, check_refused, event, fresh_log, race, succeeded
from wellspring import matching, projection

VALID_MINUTES = 60


def sign_up(log, email, name, minute):
    """Starts a sign-up and returns the code that would be sent by mail."""
    code = secrets.token_hex(4)
    email_tag = f"email:{email}"

    def decision(states):
        if states["confirmed"]:
            raise Refused(f"{email} has an account already")
        tags = [email_tag, f"code:{code}"]
        return [event("SignUpInitiated", tags, email=email, name=name, code=code, minute=minute)]

    log.decide({"confirmed": projection("count", ["SignUpConfirmed"], [email_tag])}, decision)
    return code


def confirm(log, email, code, minute):
    email_tag, code_tag = f"email:{email}", f"code:{code}"
    initiated = ["SignUpInitiated"]
    projections = {
        "sign_up": projection({"last": ""}, initiated, [email_tag, code_tag]),
        "newest_code": projection({"last": "/code"}, initiated, [email_tag]),
        "confirmed": projection("count", ["SignUpConfirmed"], [email_tag]),
    }

    def decision(states):
        pending = states["sign_up"]
        if pending is None:
            raise Refused("there is no such sign-up")
        if states["confirmed"]:
            raise Refused("the sign-up was confirmed already")
        if states["newest_code"] != code:
            raise Refused("a newer code was sent")
        if minute > pending["minute"] + VALID_MINUTES:
            raise Refused("the code has expired")
        tags = [email_tag, code_tag]
        return [event("SignUpConfirmed", tags, email=email, name=pending["name"], minute=minute)]

    return log.decide(projections, decision)


def main(log):
    ada, ben, cleo = "ada@example.org", "ben@example.org", "cleo@example.org"

    chapter("The code that was sent confirms the address, once")
    code = sign_up(log, ada, "Ada", minute=0)
    check_refused(lambda: confirm(log, ada, "00000000x", minute=1), "a made-up code is refused")
    check_refused(lambda: confirm(log, ben, code, minute=1), "the code of another is refused")
    confirm(log, ada, code, minute=60)
    check_refused(lambda: confirm(log, ada, code, minute=60), "using it again is refused")
    check_refused(lambda: sign_up(log, ada, "Ada", minute=61), "signing up again is refused")

    chapter("A code expires, and a newer one replaces it")
    old = sign_up(log, ben, "Ben", minute=0)
    check_refused(lambda: confirm(log, ben, old, minute=61), "after an hour it is refused")
    new = sign_up(log, ben, "Ben", minute=70)
    third = sign_up(log, ben, "Ben", minute=71)
    check_refused(lambda: confirm(log, ben, new, minute=72), "a replaced code is refused")
    confirm(log, ben, third, minute=72)

    chapter("The link is opened in twelve places at the same moment")
    code = sign_up(log, cleo, "Cleo", minute=0)
    results = race([lambda: confirm(log, cleo, code, minute=5) for _ in range(12)])
    check(len(succeeded(results)) == 1, "exactly one confirmation succeeded")
    confirmed = list(log.read(matching(["SignUpConfirmed"], [f"email:{cleo}"])))
    check(len(confirmed) == 1, "and the log holds exactly one")


if __name__ == "__main__":
    with fresh_log("opt-in-token") as fresh:
        main(fresh)
