"""A door in a process of its own, to be killed: ``python -m tests.door.process DATABASE [before|after]``.

``before`` and ``after`` make it die around its first put, without a good-bye.
"""

import os
import sys
from pathlib import Path

from tests.door.support import DESTINATIONS, shop
from treppe.config import Web
from treppe.door.guard import Guard
from treppe.door.server import serve
from treppe.door.webhook import Door
from treppe.intake import Batcher, Intake
from treppe.store.sqlite import SQLiteStore


class DyingStore(SQLiteStore):
    """Dies before or after its first put is on disk."""

    when = ""

    def put(self, jobs, events=()):
        return self._around(super().put, jobs, events)

    def try_put(self, jobs, events=()):
        return self._around(super().try_put, jobs, events)

    def _around(self, put, *what):
        if self.when == "before":
            os._exit(9)
        placed = put(*what)
        if self.when == "after":
            os._exit(9)
        return placed


def main(database, when=""):
    store = DyingStore(Path(database))
    store.when = when
    store.migrate()
    web = Web(port=0)
    source = shop(send_to=("crm", "mail"))
    door = Door({"shop": source}, DESTINATIONS, Batcher(Intake(store)), store.journal, web=web)
    serve(Guard(door, web, door.max_body), web, ready=tell, shortcuts=door.shortcuts)


def tell(host, port):
    """Whoever started us waits for this line."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
