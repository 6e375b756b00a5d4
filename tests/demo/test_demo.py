import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.demo.support import changed, good_friday, within
from treppe.demo import Play, main, naively, queued_on, run
from treppe.demo.friday import Friday, friday
from treppe.demo.processes import Failed
from treppe.demo.reconcile import Evidence, Figures, Result, reconcile
from treppe.demo.screen import Screen

SHORT = Friday(
    orders=60,
    seed=2,
    hold=1.0,
    restart_after=0.5,
    healthy=0.5,
    outage=3.0,
    allowed=30,
    window=2.0,
    most_penalty=2.0,
    shop_tries=3,
    shop_wait=0.1,
    naive_patience=0.5,
    patience=1.0,
    naive_trickle=0.5,
)

KEPT = good_friday()
BROKEN = changed(KEPT, posted=[msgspec.structs.replace(KEPT.posted[0], status=503), *KEPT.posted[1:]])


def carried_out(day: Friday, folder: Path, play: Play) -> Result:
    results = []

    async def story() -> None:
        results.append(await run(day, folder, Screen(), play))

    within(120, story)
    return results[0]


def test_without_a_queue_orders_are_lost_and_doubled(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    result = carried_out(SHORT, tmp_path, naively)
    assert result.figures.lost > 0
    assert result.figures.duplicates_at_remote > 0
    assert result.figures.promises_broken >= 4
    printed = capsys.readouterr().out
    assert "accounting is shut with 429" in printed
    assert "the CRM is down: its port refuses connections" in printed
    assert "the CRM is well again" in printed


def test_on_postgres_every_promise_is_kept_although_the_server_is_restarted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    result = carried_out(SHORT, tmp_path, queued_on("postgres", tmp_path, restart_store=True))
    assert [promise for promise in result.promises if not promise.kept] == []
    assert result.figures.delivered["mail"] == result.figures.accepted >= SHORT.orders
    assert "the store was stopped and is back" in capsys.readouterr().out


def test_with_treppe_every_promise_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    result = carried_out(SHORT, tmp_path, queued_on("sqlite", tmp_path))
    assert [promise for promise in result.promises if not promise.kept] == []
    assert result.figures.accepted >= SHORT.orders
    assert result.figures.delivered["mail"] == result.figures.accepted
    assert result.figures.restart_after_kill_s is not None
    printed = capsys.readouterr().out
    assert "is killed with kill -9, inside 2 accounting calls" in printed
    assert "unclear jobs settled by hand" in printed
    assert all(word not in (tmp_path / "up.log").read_text() for word in ("Traceback", "ERROR"))


def test_asked_to_stop_it_ends_all_its_processes_and_leaves_nothing_behind(tmp_path: Path):
    program = "import sys; from treppe.demo import main; sys.exit(main(['--naive', '--orders', '20']))"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        text=True,
    )
    with process:
        assert process.stdout is not None
        while "accepted" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("evidence", "arguments", "code"), [(KEPT, [], 0), (BROKEN, [], 1), (BROKEN, ["--naive"], 0)])
def test_the_exit_code_tells_whether_a_promise_was_broken(
    evidence: Evidence,
    arguments: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    async def no_run(day: Friday, folder: Path, screen: Screen, play: Play) -> Result:
        return reconcile(evidence)

    monkeypatch.setattr("treppe.demo.run", no_run)
    assert main([*arguments, "--json"]) == code
    printed = capsys.readouterr().out
    assert json.loads(printed.splitlines()[-1])["promises_broken"] == (evidence is BROKEN)
    assert ("BROKEN  every order is accepted" in printed) == (evidence is BROKEN)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--store", "mysql"], "Write sqlite, postgres, or a URL"),
        (["--restart-store"], "Add --store postgres"),
        (["--restart-store", "--store", "postgresql://x@127.0.0.1/x"], "Add --store postgres"),
    ],
)
def test_a_store_that_cannot_be_is_told_with_the_cure(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_database_that_lets_nobody_in_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]):
    assert main(["--orders", "20", "--store", "postgresql://nobody@127.0.0.1:1/nothing"]) == 1
    assert "the database does not let us in" in capsys.readouterr().err


def test_a_run_that_hangs_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    async def hangs(day: Friday, folder: Path, screen: Screen, play: Play) -> Result:
        raise Failed("after 9 s the shop had not ended")

    monkeypatch.setattr("treppe.demo.run", hangs)
    assert main([]) == 1
    assert "could not be brought to its end: after 9 s the shop had not ended" in capsys.readouterr().err


def test_the_folder_is_kept_when_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    async def writes(day: Friday, folder: Path, screen: Screen, play: Play) -> Result:
        (folder / "a").touch()
        return reconcile(KEPT)

    monkeypatch.setattr("treppe.demo.run", writes)
    assert main(["--keep"]) == 0
    kept = Path(re.search(r"Kept: (.*)", capsys.readouterr().out)[1])
    assert [path.name for path in kept.iterdir()] == ["a"]
    shutil.rmtree(kept)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--orders", "3"], "3 is not in the range"),
        (["--order", "30"], "No such option"),
        (["--naiv"], "No such option"),
    ],
)
def test_a_mistake_on_the_command_line_is_told(arguments, complaint, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == 2
    assert complaint in capsys.readouterr().err


def test_help_says_what_the_exit_codes_mean(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    assert "a promise was broken" in " ".join(capsys.readouterr().out.split())


def test_more_orders_come_with_a_larger_world():
    assert friday(1000, 1) == Friday()
    large = friday(20_000, 1)
    assert (large.rate, large.crm_desks) == ("1500/15s", 32)


def test_the_figures_for_machines_have_exactly_these_names():
    assert list(json.loads(msgspec.json.encode(dict.fromkeys(Figures.__struct_fields__)))) == [
        "accepted",
        "accept_p99_ms",
        "delivered",
        "duplicates_at_remote",
        "order_violations",
        "dead",
        "unclear_on_the_way",
        "unclear",
        "attempts_charged_by_outage",
        "lost",
        "peak_backlog",
        "peak_age_s",
        "restart_after_kill_s",
        "promises_broken",
    ]
