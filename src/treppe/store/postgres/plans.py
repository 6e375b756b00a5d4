"""A self-test: does the server find what a worker asks for by the indexes that are meant for it?

Every statement of the hot paths is planned, not run, and its plan is read: a table that grows must be entered by a
condition on an index. Used by the tests and by ``treppe doctor``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from treppe.store.postgres.connecting import PLAN_STRICTLY
from treppe.store.postgres.database import SQL, Database, Tx

GROWING = frozenset({"live", "job", "attempt", "slot", "event", "journal", "value", "dead", "note"})
"""Tables of which no statement may read more than it was asked for."""

HOT = (
    "attempt_add", "cancel_ask", "claim_heads", "claim_take", "claim_usual", "dead_drop", "dead_lock", "due_beyond",
    "due_look", "events_of", "forget_events", "forget_jobs", "health_of", "journal_drop", "journal_page", "keep_look",
    "key_judge", "keys_free", "keys_hold", "keys_promote", "lapsed_look", "live_aside", "live_defer", "live_delete",
    "live_lapse", "live_lock", "notes_of", "notes_restart", "report_add", "revive_dead", "revive_live",
    "settle_finish", "settle_told", "slots_free", "slots_used", "suspect_look", "value_get", "watched", "worker_known",
    "worker_renew",
)  # fmt: skip
"""Claim, settle, renew, acts and upkeep."""

WALKS = {("claim_heads", "live_due"), ("claim_heads", "live_suspect"), ("claim_usual", "live_suspect")}
"""Scans that begin at an index's end and stop by themselves: the first queue, and suspects, of which there are few."""


def check(database: Database) -> list[str]:
    """What is planned in a way that would decay; empty when all is well. Nothing is run or changed."""
    return database.write(_check)


def _check(tx: Tx) -> list[str]:
    tx.script(PLAN_STRICTLY)
    return [fault for name in HOT for fault in _faults(tx, name)]


def _faults(tx: Tx, name: str) -> list[str]:
    return [f"{name}: {fault}" for fault in _bad_scans(_plan(tx, name), name)]


def _plan(tx: Tx, name: str) -> dict[str, Any]:
    """The plan for any parameters, as a prepared statement gets it."""
    sql = SQL[name]
    most = max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
    tx.script("SET LOCAL plan_cache_mode = force_generic_plan")
    tx.script(f"PREPARE treppe_check AS {sql}")
    arguments = f"({', '.join(['NULL'] * most)})" if most else ""
    ((plans,),) = tx.rows(f"EXPLAIN (FORMAT JSON) EXECUTE treppe_check{arguments}")
    tx.script("DEALLOCATE treppe_check")
    plan: dict[str, Any] = plans[0]["Plan"]
    return plan


def _bad_scans(plan: dict[str, Any], name: str) -> Iterator[str]:
    for node in _nodes(plan):
        table, index = node.get("Relation Name"), node.get("Index Name")
        if table not in GROWING or "Scan" not in node["Node Type"] or node["Node Type"] == "Tid Scan":
            continue
        if index is None:
            yield f"reads all of treppe.{table} ({node['Node Type']})"
        elif "Index Cond" not in node and (name, index) not in WALKS:
            yield f"reads all of the index {index}"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
