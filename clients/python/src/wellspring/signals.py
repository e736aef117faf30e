"""Waiting that a signal handler can end."""

from __future__ import annotations

import queue
from typing import TypeVar

Item = TypeVar("Item")

_LATEST_S = 0.5


def next_item(items: queue.SimpleQueue[Item]) -> Item:
    """Takes the next item of a queue that a signal handler may fill; waits for it.

    Python runs handlers in the main thread, and does not wake it for a signal that the system gave
    to another one. So the wait ends now and then.
    """
    while True:
        try:
            return items.get(timeout=_LATEST_S)
        except queue.Empty:
            continue
