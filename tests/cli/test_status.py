import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import support
from tests.cli.support import Ran

Treppe = Callable[..., Ran]


def test_the_status_begins_with_the_one_number(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a", "b")
    support.dead(folder, "c")
    support.done(folder, "d")
    lines = treppe("status").out.splitlines()
    assert lines[0].startswith("2 open, the oldest due for ")
    assert lines[1] == "4 accepted, 1 done, 1 dead, 0 unclear"
    assert lines[3].split() == ["queue", "waiting", "later", "running", "unclear", "dead", "oldest", "pace"]
    assert lines[4].split()[:6] == ["crm", "2", "0", "0", "0", "1"]


def test_the_status_is_one_json_document(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a", delay=3600.0)
    found = json.loads(treppe("status", "--json").out)
    assert (found["open"], found["accepted"], found["oldest_age_s"]) == (1, 1, None)
    assert found["queues"][0]["scheduled"] == 1


def test_an_empty_store_has_a_status(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder)
    assert treppe("status") == (
        0,
        "0 open\n0 accepted, 0 done, 0 dead, 0 unclear\n\n",
        "no queue has an open job\n",
    )


def test_a_paused_queue_says_who_paused_it_and_why(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a")
    assert treppe("queues", "pause", "crm", "--note", "their new server").out == "crm is paused\n"
    assert treppe("queues", "pause", "crm").out == "crm was paused already\n"
    (queue,) = json.loads(treppe("queues", "ls", "--json").out)["queues"]
    assert (queue["held"], queue["why"], queue["note"]) == (True, "paused", "their new server")
    assert queue["since"].startswith("20")
    assert "their new server" in treppe("queues", "ls").out
    assert treppe("queues", "resume", "crm").out == "crm goes on\n"
    assert treppe("queues", "resume", "crm").out == "crm was not held\n"
    with support.a_store(folder) as store:
        assert [json.loads(each.record)["act"] for each in store.journal.page("audit")] == ["pause", "resume"]


def test_a_queue_of_the_settings_can_be_paused_before_its_first_job(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder)
    assert treppe("queues", "pause", "accounting").code == 0


def test_a_pace_below_the_full_one_is_shown(folder: Path, treppe: Treppe) -> None:
    from treppe.policy.pace import Flow, encode

    with support.a_store(folder) as store:
        support.put(store, "a")
        store.journal.swap("flow:crm", None, encode(Flow(level=0.5, level_at=store.now() + 3600)))
    assert "50 % of the full pace" in treppe("queues", "ls").out


@pytest.mark.parametrize("act", ["pause", "resume"])
def test_an_unknown_queue_is_most_likely_misspelt(folder: Path, treppe: Treppe, act: str) -> None:
    support.waiting(folder)
    ran = treppe("queues", act, "acounting")
    assert (ran.code, ran.err) == (1, 'treppe: there is no queue "acounting". Did you mean "accounting"?\n')
