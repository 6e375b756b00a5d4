"""A worker's lease, renewed in a thread of its own on a connection of its own.

A handler that blocks the event loop or hogs every thread cannot stop the renewal. Code that holds the
interpreter's lock for longer than a lease belongs in a process of its own.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time

from treppe.store.protocol import Store

log = logging.getLogger("treppe.worker")

RENEWALS_PER_LEASE = 3.3
STALE_AFTER = 2 / 3


class Lease:
    """``worker`` is the identity to claim with; it changes when the store has given the old one up."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.seconds = seconds
        self.worker = 0
        self._store = store
        self._renewed = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="treppe-lease", daemon=True)

    def start(self) -> None:
        """Take the first lease (store errors come through) and keep renewing it."""
        self._take()
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing and let the store know that nobody is left."""
        self._stopped.set()
        self._thread.join()
        try:
            self._store.retire(self.worker)
        except Exception as error:  # of the store or its adapter; the lease then runs out by itself
            log.warning("could not sign off: %s", error)

    @property
    def fresh(self) -> bool:
        """False when renewing has failed for two thirds of a lease: claim nothing new."""
        return time.monotonic() - self._renewed < self.seconds * STALE_AFTER

    def _take(self) -> None:
        worker = secrets.randbits(62)
        before = time.monotonic()
        self._store.enlist(worker, f"{socket.gethostname()}:{os.getpid()}", self.seconds)
        self.worker, self._renewed = worker, before

    def _keep(self) -> None:
        while not self._stopped.wait(self.seconds / RENEWALS_PER_LEASE):
            try:
                self._renew()
            except Exception as error:  # a thread that ended here would lose every lease
                log.warning("could not renew the lease: %s", error)

    def _renew(self) -> None:
        before = time.monotonic()
        if self._store.renew(self.worker, self.seconds):
            self._renewed = before
        else:
            log.warning("the lease was lost; going on under a new identity")
            self._take()
