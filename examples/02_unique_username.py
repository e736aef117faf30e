#!/usr/bin/env python3
"""Unique username: a value is unique in the whole application, without a lock or a second table.

The username is a tag, so "is it free?" is a projection over the few events that
carry it. Closing an account or changing its name gives the old name back, but
only after three days, so that a name that just became free cannot be taken over.
"""

from demo import Refused, chapter, check, check_refused, event, fresh_log, race, say, succeeded
from wellspring import matching, projection

RETENTION_DAYS = 3
CLAIMS = ["AccountRegistered", "UsernameClaimed"]
RELEASES = ["AccountClosed", "UsernameReleased"]


def username_projections(username):
    """How often the name was claimed and given back, and the day of the last giving back."""
    tags = [f"username:{username}"]
    return {
        "claimed": projection("count", CLAIMS, tags),
        "released": projection("count", RELEASES, tags),
        "released_on": projection({"max": "/day"}, RELEASES, tags),
    }


def require_free(states, username, today):
    if states["claimed"] > states["released"]:
        raise Refused(f"{username} is taken")
    if states["released_on"] is not None and today < states["released_on"] + RETENTION_DAYS:
        raise Refused(f"{username} became free less than {RETENTION_DAYS} days ago")


def register(log, account, username, today):
    def decision(states):
        require_free(states, username, today)
        tags = [f"account:{account}", f"username:{username}"]
        return [event("AccountRegistered", tags, account=account, username=username, day=today)]

    return log.decide(username_projections(username), decision)


def current_name(account):
    """The account's present name, and whether the account was closed."""
    tags = [f"account:{account}"]
    return {
        "name": projection({"last": "/username"}, CLAIMS, tags),
        "closed": projection("count", ["AccountClosed"], tags),
    }


def require_open(states, account):
    if states["name"] is None or states["closed"]:
        raise Refused(f"account {account} is not open")


def close(log, account, today):
    def decision(states):
        require_open(states, account)
        tags = [f"account:{account}", f"username:{states['name']}"]
        return [event("AccountClosed", tags, account=account, username=states["name"], day=today)]

    return log.decide(current_name(account), decision)


def change_username(log, account, username, today):
    def decision(states):
        require_open(states, account)
        require_free(states, username, today)
        owner, old = f"account:{account}", states["name"]
        return [
            event("UsernameReleased", [owner, f"username:{old}"], username=old, day=today),
            event("UsernameClaimed", [owner, f"username:{username}"], username=username, day=today),
        ]

    return log.decide({**username_projections(username), **current_name(account)}, decision)


def main(log):
    chapter("A name can be taken once")
    register(log, "a1", "ada", today=0)
    check_refused(lambda: register(log, "a2", "ada", today=0), "a second ada is refused")

    chapter("A closed account gives its name back after three days")
    close(log, "a1", today=10)
    check_refused(lambda: close(log, "a1", today=10), "closing twice is refused")
    check_refused(lambda: register(log, "a2", "ada", today=12), "two days later it is too early")
    register(log, "a2", "ada", today=13)
    say("on the third day the name is free")

    chapter("A new name is claimed and the old one given back in one step")
    change_username(log, "a2", "grace", today=20)
    check_refused(lambda: register(log, "a3", "grace", today=20), "the new name is taken")
    register(log, "a3", "ada", today=23)

    chapter("Twenty people want the same name at the same moment")
    results = race([lambda i=i: register(log, f"r{i}", "zoe", today=30) for i in range(20)])
    check(len(succeeded(results)) == 1, "exactly one registration succeeded")
    owners = [e.data["account"] for e in log.read(matching(CLAIMS, ["username:zoe"]))]
    check(len(owners) == 1, f"and the log knows one owner of zoe: {owners[0]}")

    chapter("Twenty people want twenty names: no one waits for another")
    results = race([lambda i=i: register(log, f"s{i}", f"name-{i}", today=30) for i in range(20)])
    check(len(succeeded(results)) == 20, "all twenty registrations succeeded")


if __name__ == "__main__":
    with fresh_log("unique-username") as fresh:
        main(fresh)
