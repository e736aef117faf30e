"""A client of the Wellspring event store.

from wellspring import Client, NewEvent, matching, unless_exists

log = Client("http://127.0.0.1:4000").log("main")
claimed = matching(["UsernameClaimed"], ["username:ada"])
log.append([NewEvent("UsernameClaimed", {"user": 1}, ["username:ada"])], unless_exists(claimed))
"""

from .answers import Accepted, Appended, BulkAppended, LogInfo, PassedOver, Projected
from .client import Client
from .consumers import ConsumerKey, ConsumerStatus
from .cursor import Cursor, Place
from .delivery import Delivery, Park
from .errors import (
    AnotherHistory,
    ConditionFailed,
    Conflict,
    Forbidden,
    Invalid,
    LeaseHeld,
    LeaseLost,
    NotFound,
    OutcomeUnknown,
    ServerFault,
    Unauthenticated,
    Unavailable,
    Untrusted,
    WellspringError,
)
from .events import (
    ALL,
    Condition,
    Event,
    Json,
    NewEvent,
    Projection,
    Query,
    QueryItem,
    any_of,
    matching,
    projection,
    unless_changed,
    unless_exists,
)
from .leases import Fence, HeldLease, Lease
from .links import Link, LinkDetails, Links, LinkStats
from .log import Log
from .read_model import ReadModel
from .retry import NO_RETRY, RetryPolicy
from .subscription import Subscription
from .worker import Worker

__all__ = [
    "ALL",
    "NO_RETRY",
    "Accepted",
    "AnotherHistory",
    "Appended",
    "BulkAppended",
    "Client",
    "Condition",
    "ConditionFailed",
    "Conflict",
    "ConsumerKey",
    "ConsumerStatus",
    "Cursor",
    "Delivery",
    "Event",
    "Fence",
    "Forbidden",
    "HeldLease",
    "Invalid",
    "Json",
    "Lease",
    "LeaseHeld",
    "LeaseLost",
    "Link",
    "LinkDetails",
    "LinkStats",
    "Links",
    "Log",
    "LogInfo",
    "NewEvent",
    "NotFound",
    "OutcomeUnknown",
    "Place",
    "Park",
    "PassedOver",
    "Projected",
    "Projection",
    "Query",
    "QueryItem",
    "ReadModel",
    "RetryPolicy",
    "ServerFault",
    "Subscription",
    "Unauthenticated",
    "Unavailable",
    "Untrusted",
    "WellspringError",
    "Worker",
    "any_of",
    "matching",
    "projection",
    "unless_changed",
    "unless_exists",
]
