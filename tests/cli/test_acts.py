import io
import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import support
from tests.cli.support import Ran

Treppe = Callable[..., Ran]
ME = pwd.getpwuid(os.getuid()).pw_name


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def audit(folder: Path) -> list[dict[str, object]]:
    with support.a_store(folder) as store:
        return [json.loads(record.record) for record in store.journal.page("audit")]


@pytest.mark.parametrize(
    ("make", "command", "state", "said"),
    [
        (support.dead, ("jobs", "revive"), "waiting", "a: will be done again"),
        (support.dead, ("dead", "revive"), "waiting", "a: will be done again"),
        (support.dead, ("dead", "discard"), "cancelled", "a: discarded"),
        (support.dead, ("jobs", "confirm", "--note", "sent by hand"), "done", "a: done"),
        (support.unclear, ("jobs", "confirm"), "done", "a: done"),
        (support.unclear, ("jobs", "revive"), "waiting", "a: will be done again"),
        (support.unclear, ("jobs", "cancel"), "cancelled", "a: called off"),
        (support.waiting, ("jobs", "cancel"), "cancelled", "a: called off"),
    ],
)
def test_each_act_changes_the_state_and_is_written_down(
    folder: Path, treppe: Treppe, make: Callable[..., None], command: tuple[str, ...], state: str, said: str
) -> None:
    make(folder, "a")
    ran = treppe(*command, "a", "--yes")
    assert (ran.code, ran.out) == (0, said + "\n")
    assert support.state_of(folder, "a") == state
    (record,) = audit(folder)
    assert (record["by"], record["ids"]) == (ME, ["a"])


def test_the_job_is_shown_as_it_is_before_anything_is_asked(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    support.dead(folder, "a")
    answer(monkeypatch, "y\n")
    ran = treppe("jobs", "revive", "a", "--note", "fixed")
    assert "a: dead, token 1, the CRM answered 422" in ran.err
    assert "Do it again? [y/N]" in ran.err
    assert support.state_of(folder, "a") == "waiting"
    assert audit(folder)[0]["note"] == "fixed"


def test_no_means_no(folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    support.dead(folder, "a", "b")
    answer(monkeypatch, "n\n")
    ran = treppe("dead", "discard", "a", "b")
    assert "Discard it (2 jobs)? [y/N]" in ran.err
    assert ran.code == 1
    assert ran.err.endswith("treppe: nothing was changed\n")
    assert support.state_of(folder, "a") == "dead"


def test_where_nobody_can_answer_nothing_is_done(folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    support.dead(folder, "a")
    answer(monkeypatch, "")
    ran = treppe("jobs", "revive", "a")
    assert ran.code == 1
    assert ran.err.endswith("treppe: nobody is there to answer. To act without a question add --yes\n")
    assert support.state_of(folder, "a") == "dead"


def test_a_running_job_is_asked_to_stop(folder: Path, treppe: Treppe) -> None:
    support.running(folder, "a")
    ran = treppe("jobs", "cancel", "a", "--yes")
    assert ran.out == "a: asked to stop\n"
    assert json.loads(treppe("jobs", "show", "a", "--json").out)["cancelling"] is True


def test_running_and_waiting_jobs_are_called_off_together(folder: Path, treppe: Treppe) -> None:
    support.running(folder, "a")
    support.waiting(folder, "b")
    ran = treppe("jobs", "cancel", "a", "b", "--yes")
    assert ran.out == "a: asked to stop\nb: called off\n"


@pytest.mark.parametrize(
    ("make", "command", "sentence"),
    [
        (support.done, ("jobs", "cancel"), 'the job "a" is done, so one cannot call it off. See: treppe jobs show a'),
        (support.waiting, ("jobs", "confirm"), 'the job "a" is waiting, so one cannot say that it happened'),
        (support.waiting, ("dead", "discard"), 'the job "a" is waiting, not dead. For that: treppe jobs cancel a'),
        (support.unclear, ("dead", "revive"), 'the job "a" is unclear, not dead. For that: treppe jobs revive a'),
        (support.running, ("dead", "revive"), 'the job "a" is running, so one cannot do it again'),
        (support.running, ("jobs", "revive"), 'the job "a" is running, so one cannot do it again'),
    ],
)
def test_what_the_state_does_not_allow_is_refused_with_a_sentence(
    folder: Path, treppe: Treppe, make: Callable[..., None], command: tuple[str, ...], sentence: str
) -> None:
    make(folder, "a")
    before = support.state_of(folder, "a")
    ran = treppe(*command, "a", "--yes")
    assert ran.code == 1
    assert sentence in ran.err
    assert support.state_of(folder, "a") == before


def test_one_job_that_does_not_fit_stops_the_whole_act(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a")
    support.waiting(folder, "b")
    assert treppe("dead", "discard", "a", "b", "--yes").code == 1
    assert support.state_of(folder, "a") == "dead"


def test_a_dead_job_done_by_hand_needs_a_note(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a")
    ran = treppe("jobs", "confirm", "a", "--yes")
    assert ran.code == 2
    assert "a dead job that was done by hand needs a --note that says so" in ran.err


def test_an_act_on_a_job_seen_earlier_counts_only_while_it_is_the_same(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a")
    ran = treppe("jobs", "revive", "a", "--token", "2", "--yes")
    assert (ran.code, ran.err) == (
        1,
        'treppe: the job "a" has changed since: its token is 1, not 2. Look again first\n',
    )
    assert treppe("jobs", "revive", "a", "--token", "1", "--yes").code == 0
    assert treppe("jobs", "revive", "a", "b", "--token", "1", "--yes").code == 2


def test_a_job_that_changes_while_people_think_is_left_as_it_is(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    support.dead(folder, "a", "b")

    class Slow(io.StringIO):
        """Somebody else revives job a before the answer comes."""

        def readline(self, *size: int) -> str:  # type: ignore[override]
            with support.a_store(folder) as store:
                from treppe.job import Event
                from treppe.store.protocol import Seen

                assert store.change([Seen("a", 1)], Event.REVIVE, "otto") == ()
                support.claim(store)
            return "y\n"

    monkeypatch.setattr("sys.stdin", Slow())
    ran = treppe("dead", "discard", "a", "b")
    assert ran.code == 1
    assert ran.out == "b: discarded\n"
    assert "left as they are, for they have changed meanwhile: a. Look again first" in ran.err
    assert support.state_of(folder, "a") == "running"


def test_an_id_named_twice_is_one_job(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a")
    assert treppe("jobs", "revive", "a", "a", "--yes").out == "a: will be done again\n"


def test_an_unknown_job_is_told(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, "a")
    ran = treppe("jobs", "revive", "a", "b", "--yes")
    assert (ran.code, ran.err) == (1, 'treppe: there is no job "b". Look for it: treppe jobs ls\n')
    assert support.state_of(folder, "a") == "dead"


def test_an_interrupt_at_the_question_stops(folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    support.dead(folder, "a")
    answer(monkeypatch, "")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert treppe("jobs", "revive", "a").code == 130
    assert support.state_of(folder, "a") == "dead"


def test_all_dead_letters_are_done_again_at_once(folder: Path, treppe: Treppe) -> None:
    support.dead(folder, *(f"job-{n}" for n in range(25)))
    support.unclear(folder, "other")
    ran = treppe("dead", "revive", "--all", "--yes", "--note", "fixed")
    assert ran.code == 0
    assert ran.out.count("will be done again") == 20
    assert ran.out.endswith("… and 5 more\n")
    assert support.state_of(folder, "job-24") == "waiting"
    assert support.state_of(folder, "other") == "unclear"
    assert len(audit(folder)[0]["ids"]) == 25  # type: ignore[arg-type]


def test_dead_letters_that_fit_are_discarded(folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    support.dead(folder, "a", error="422 no such customer")
    support.dead(folder, "b", error="413 too large")
    answer(monkeypatch, "y\n")
    ran = treppe("dead", "discard", "--all", "--queue", "crm", "--text", "customer")
    assert "Discard it?" in ran.err
    assert (support.state_of(folder, "a"), support.state_of(folder, "b")) == ("cancelled", "dead")
    assert treppe("dead", "discard", "--all", "--task", "mail").err == "treppe: there is no such dead letter\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("dead", "revive"), "name the jobs by their ids, or say --all"),
        (("dead", "revive", "a", "--all"), "name the jobs by their ids, or say --all"),
        (("dead", "revive", "--all", "--token", "1"), "--token belongs to one job. Name one id"),
        (("jobs", "revive"), "name the jobs by their ids"),
    ],
)
def test_an_act_needs_jobs(treppe: Treppe, arguments: tuple[str, ...], sentence: str) -> None:
    ran = treppe(*arguments, "--yes")
    assert ran.code == 2
    assert sentence in ran.err
