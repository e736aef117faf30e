"""What a forked child process does with the objects of its parent."""

from __future__ import annotations

import os
import socket
import weakref
from typing import Protocol


class Forkable(Protocol):
    """An object that has locks or connections."""

    def _after_fork(self) -> None:
        """Replaces the locks, and drops the connections, in the child alone."""


_forkables: weakref.WeakSet[Forkable] = weakref.WeakSet()


def on_fork(forkable: Forkable) -> None:
    """Has `_after_fork` called in every child that this process forks."""
    _forkables.add(forkable)


def abandon(sock: socket.socket) -> None:
    """Closes this process's descriptor and says nothing to the peer.

    A shutdown, or the close of TLS, would end the connection of the parent, too.
    """
    descriptor = sock.detach()
    if descriptor >= 0:
        os.close(descriptor)


def _after_fork() -> None:
    for forkable in list(_forkables):
        forkable._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
