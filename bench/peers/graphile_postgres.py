"""Graphile Worker (https://worker.graphile.org), on Node.js. It keeps no history and does not fence."""

from __future__ import annotations

from typing import ClassVar

from bench.environments import Needs
from bench.peers import NodeQueue, Variant


class Peer(NodeQueue):
    """The program lies beside this file. A killed worker's jobs are locked for four hours."""

    needs = Needs(node=("graphile-worker@0.18.0",))
    variants: ClassVar = {
        "batching": Variant(
            "Graphile Worker",
            "Node.js 24, concurrentJobs 24, localQueue.size 500, completeJobBatchDelay 0; bulk of 1,000",
            language="Node",
        )
    }
    open = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)"
    program = "graphile_postgres.mjs"
