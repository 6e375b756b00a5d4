"""pg-boss (https://pgboss.io), on Node.js. A batch handler gets a thousand jobs at once, and ends them at once."""

from __future__ import annotations

from typing import ClassVar

from bench.environments import Needs
from bench.peers import NodeQueue, Variant


class Peer(NodeQueue):
    """The program lies beside this file. A killed worker's jobs expire after fifteen minutes."""

    needs = Needs(node=("pg-boss@12.38.0",))
    variants: ClassVar = {
        "batch_1000": Variant(
            "pg-boss",
            "Node.js 24, batch handlers of 1,000 × 2, burst, LISTEN/NOTIFY (default: one job per 2 s); bulk of 1,000",
            language="Node",
        )
    }
    open = "SELECT EXISTS (SELECT FROM pgboss.job WHERE state < 'completed')"
    program = "pgboss_postgres.mjs"
