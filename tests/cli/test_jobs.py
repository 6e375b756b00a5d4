import json
from collections.abc import Callable
from pathlib import Path

from tests.cli import support
from tests.cli.support import Ran

Treppe = Callable[..., Ran]


def test_jobs_are_listed_newest_first(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a", "b")
    ran = treppe("jobs", "ls")
    assert ran.code == 0
    assert [line.split()[:4] for line in ran.out.splitlines()] == [
        ["id", "state", "queue", "task"],
        ["b", "waiting", "crm", "destination:crm"],
        ["a", "waiting", "crm", "destination:crm"],
    ]


def test_jobs_are_listed_as_one_json_document(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a")
    (job,) = json.loads(treppe("jobs", "ls", "--json").out)["jobs"]
    assert (job["id"], job["state"], job["claims"], job["error"]) == ("a", "dead", 1, "the CRM answered 422")
    assert job["created_at"].startswith("20")


def test_a_long_list_comes_in_pages(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, *(f"job-{n}" for n in range(5)))
    first = treppe("jobs", "ls", "-n", "3")
    assert first.out.count("job-") == 3
    after = first.err.removeprefix("there are more: --after ").strip()
    second = treppe("jobs", "ls", "-n", "3", "--after", after, "--json")
    assert [job["id"] for job in json.loads(second.out)["jobs"]] == ["job-1", "job-0"]
    assert json.loads(second.out)["after"] is None


def test_jobs_are_filtered(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "b")
    support.unclear(folder, "c")
    support.waiting(folder, "a", key="7")

    def ids(*filters: str) -> list[str]:
        return [job["id"] for job in json.loads(treppe("jobs", "ls", "--json", *filters).out)["jobs"]]

    assert ids("--state", "dead") == ["b"]
    assert ids("--state", "dead", "--state", "unclear") == ["c", "b"]
    assert ids("--key", "7") == ["a"]
    assert ids("--queue", "crm") == ["a", "c", "b"]
    assert ids("--queue", "mail") == []
    assert ids("--task", "destination:crm") == ["a", "c", "b"]
    assert ids("--text", "422") == ["b"]


def test_where_there_is_nothing_a_list_says_so_beside_the_answer(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder)
    assert treppe("jobs", "ls") == (0, "", "no such job\n")
    assert json.loads(treppe("jobs", "ls", "--json").out) == {"jobs": [], "after": None}


def test_an_unknown_state_is_answered_with_those_there_are(treppe: Treppe) -> None:
    ran = treppe("jobs", "ls", "--state", "broken")
    assert ran.code == 2
    assert "'waiting', 'running'" in ran.err


def test_a_job_is_shown_with_its_history_and_payload(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a")
    out = treppe("jobs", "show", "a").out
    for part in (
        "state     dead",
        "tries     1 (charged: 0 of 5)",
        "token     1",
        "the CRM answered 422",
        '"order": 1',
    ):
        assert part in out
    assert "bury" in out


def test_a_waiting_job_says_what_it_waits_for(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a")
    treppe("queues", "pause", "crm", "--note", "their new server")
    assert "Its queue is paused by" in treppe("jobs", "show", "a").out


def test_what_a_task_returned_is_shown(folder: Path, treppe: Treppe) -> None:
    support.done(folder, "a")
    assert 'result    "r"' in treppe("jobs", "show", "a").out


def test_a_job_whose_task_nobody_here_knows_says_so(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a", task="destination:cmr")
    support.waiting(folder, "b", task="shop.send_mail")
    assert 'knows the task. Did you mean "destination:crm"?' in treppe("jobs", "show", "a").out
    assert "no worker with these settings knows the task" in treppe("jobs", "show", "b").out


def test_a_job_is_shown_as_one_json_document(folder: Path, treppe: Treppe) -> None:
    support.unclear(folder, "a")
    job = json.loads(treppe("jobs", "show", "a", "--json").out)
    assert (job["state"], job["token"], job["payload"]) == ("unclear", 1, '{"order":1}')
    assert [(attempt["kind"], attempt["detail"]) for attempt in job["history"]] == [("unclear", '{"status":422}')]
    support.done(folder, "b")
    assert json.loads(treppe("jobs", "show", "b", "--json").out)["result"] == '"r"'


def test_bytes_that_are_no_text_come_in_base64(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a", payload=b"\xff\x00")
    assert json.loads(treppe("jobs", "show", "a", "--json").out)["payload_base64"] == "/wA="
    assert treppe("jobs", "show", "a").code == 0


def test_nothing_from_outside_reaches_the_terminal_as_a_command(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a", "c", error="\x1b[2J\x07 [bold]x[/bold]")
    support.waiting(folder, "b", payload=b'"\x1b]0;owned\x07"', content_type="text/plain")
    for arguments in (("jobs", "ls"), ("jobs", "show", "a"), ("jobs", "show", "b"), ("jobs", "revive", "a", "--yes")):
        ran = treppe(*arguments)
        assert "\x1b" not in ran.out + ran.err
        assert "\x07" not in ran.out + ran.err
    assert "[bold]x[/bold]" in treppe("jobs", "ls", "--text", "bold").out


def test_an_unknown_job_is_told(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder)
    for command in (("jobs", "show"), ("dead", "show")):
        assert treppe(*command, "nope") == (1, "", 'treppe: there is no job "nope". Look for it: treppe jobs ls\n')


def test_dead_letters_are_listed_and_shown(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "b")
    support.waiting(folder, "a")
    assert [job["id"] for job in json.loads(treppe("dead", "ls", "--json").out)["jobs"]] == ["b"]
    assert "the CRM answered 422" in treppe("dead", "show", "b").out
    assert treppe("dead", "show", "a").err == 'treppe: the job "a" is waiting, not dead. See: treppe jobs show a\n'


def test_a_job_of_an_event_is_shown_with_what_came_in(folder: Path, treppe: Treppe) -> None:
    from treppe.job import NewEvent, NewJob

    with support.a_store(folder) as store:
        event = NewEvent("shop", "e1", b'{"total": 12345678901234567890}', content_type="application/json")
        store.put([NewJob("shop:e1:crm", "destination:crm", "crm", event=("shop", "e1"))], [event])
    out = treppe("jobs", "show", "shop:e1:crm").out
    assert "event     shop e1" in out
    assert '"total": 12345678901234567890' in out


def test_a_large_payload_is_cut(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a", payload=b'"' + b"x" * 100_000 + b'"')
    out = treppe("jobs", "show", "a").out
    assert "… 100002 bytes in all" in out
    assert len(out) < 90_000


def test_a_job_without_a_payload_is_shown(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a", payload=b"")
    assert treppe("jobs", "show", "a").out.splitlines()[-1].startswith("expires")
