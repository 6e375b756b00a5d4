"""Small wrongs in the product, each of which breaks a promise: every one must be noticed, or the tests are blind.

A mutant is applied to a copy of the package, never to the working tree. A text that is not there any more (or is there
twice) is a failure: the mutant has to be written anew.

``python -m tests.sim.mutants [NAME …]``: all of them, or those named.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "treppe"
SIM = ("-m", "tests.sim", "--processes", "1", "--operations")
OPERATIONS = 150_000
PATIENCE = 3600.0

SETTLING, SQL = "store/sqlite/settling.py", "store/sqlite/sql"
PG_SETTLING = "store/postgres/settling.py"


class Change(NamedTuple):
    file: str
    old: str
    new: str


class Mutant(NamedTuple):
    """``promises``: the simulator must see one of them broken. ``tests``: what notices it instead, for pytest."""

    name: str
    promises: tuple[str, ...]
    changes: tuple[Change, ...]
    tests: tuple[str, ...] = ()
    quick: bool = False  # noticed within seconds: part of the gate


def contract(theme: str) -> tuple[str, ...]:
    return ("tests/contract/test_sqlite.py", "-k", theme)


def contract_on_postgres(theme: str) -> tuple[str, ...]:
    return ("tests/contract/test_postgres.py", "-k", f"TestOnPostgres18 and ({theme})")


MUTANTS = (
    Mutant(
        "the token is not checked when a claim is settled",
        ("I6", "I7"),
        (
            Change(
                SETTLING,
                "(live.token, live.worker) != (s.claim.token, s.claim.worker)",
                "live.worker != s.claim.worker",
            ),
            Change(f"{SQL}/running_of.sql", "WHERE l.token = json_extract(f.value, '$[1]') AND", "WHERE"),
        ),
        tests=("tests/sim/test_exhaustive.py", "-k", "model"),
        quick=True,
    ),
    Mutant(
        "the token is not checked at the end that most jobs come to",
        ("I6", "I7"),
        (Change(f"{SQL}/running_of.sql", "WHERE l.token = json_extract(f.value, '$[1]') AND", "WHERE"),),
        tests=contract("token"),
    ),
    Mutant(
        "the worker is not checked when a claim is settled",
        ("I6",),
        (
            Change(
                SETTLING, "(live.token, live.worker) != (s.claim.token, s.claim.worker)", "live.token != s.claim.token"
            ),
            Change(f"{SQL}/running_of.sql", " AND l.worker = json_extract(f.value, '$[2]')", ""),
        ),
        tests=contract("worker"),
    ),
    Mutant(
        "budgets are checked at claims only",
        ("I13",),
        (Change("settle.py", "    if reason:\n", "    if settlement.kind is Kind.EXPIRED:\n"),),
        quick=True,
    ),
    Mutant(
        "budgets are not checked at claims",
        ("I13",),
        (Change(f"{SQL}/due_select.sql", " AND l.charged < l.attempts AND l.crashes < l.max_crashes", ""),),
        tests=contract("budget or attempts or crashes"),
    ),
    Mutant(
        "commits do not wait for the disk",
        ("I2",),
        (Change("store/sqlite/database.py", "'FULL' if self.durable", "'NORMAL' if self.durable"),),
        tests=("tests/app/test_app.py",),
        quick=True,
    ),
    Mutant(
        "an unclear head lets its key go on",
        ("I17",),
        (
            Change(f"{SQL}/key_head.sql", "due_at <= ?3", "due_at <= ?3 AND parked <> 2"),
            Change(
                f"{SQL}/key_holder.sql",
                "AND n = 0",
                "AND n = 0 AND seq NOT IN (SELECT seq FROM treppe_live WHERE parked = 2)",
            ),
        ),
    ),
    Mutant(
        "repeat is lost when a dead job is revived",
        ("I16",),
        (Change(f"{SQL}/revive_insert.sql", "?3, repeat, attempts", "?3, 0, attempts"),),
        quick=True,
    ),
    Mutant(
        "a human's act does not look whether the job is still as it was seen",
        ("I7",),
        (Change("store/sqlite/acts.py", "if live.token != one.token or not may_act", "if not may_act"),),
    ),
    Mutant(
        "failures are charged during an outage",
        ("I14",),
        (
            Change(
                "policy/charge.py",
                "return 0 <= 4 * tried <= 5 * ok and (ok >= PROVING or now - seen[2] >= QUIET)",
                "return True",
            ),
        ),
        quick=True,
    ),
    Mutant(
        "the first failure is charged",
        ("I14",),
        (
            Change(
                "policy/charge.py", "return charging is Charging.ALWAYS\n", "return charging is not Charging.NEVER\n"
            ),
        ),
    ),
    Mutant(
        "a cancel that was asked for is ignored",
        ("I8", "I1"),
        (Change(SETTLING, "if target is State.WAITING and live.cancel:", "if False:"),),
    ),
    Mutant(
        "the same id with other content is swallowed",
        ("I18",),
        (Change("store/sqlite/putting.py", "duplicate=True, conflict=differs)", "duplicate=True)"),),
        quick=True,
    ),
    Mutant(
        "ids are forgotten before their time",
        ("I18", "I26", "I2"),
        (Change(f"{SQL}/forget_select.sql", "a.keep_until <= ?1", "a.keep_until <= ?1 + 10000000"),),
        quick=True,
    ),
    Mutant(
        "the rate is a little too high",
        ("I19",),
        (Change("policy/pace/grant.py", "tat = max(tat, start) + step", "tat = max(tat, start) + step * 0.9"),),
    ),
    Mutant(
        "one too many may be in flight",
        ("I19",),
        (
            Change("policy/pace/grant.py", "max(0, most - asked.running)", "max(0, most + 1 - asked.running)"),
            Change("store/sqlite/claiming.py", "grant.slots - len(known.slots)", "grant.slots + 1 - len(known.slots)"),
        ),
        quick=True,
    ),
    Mutant(
        "a lapse leaves its slot taken",
        ("I19", "I22"),
        (
            Change(
                "store/sqlite/keeping.py",
                'int(suspected)))\n        db.execute(SQL["slot_free"], (seq,))',
                "int(suspected)))",
            ),
        ),
    ),
    Mutant(
        "a dead head lets its key go on",
        ("I17",),
        (
            Change(
                SETTLING,
                "    if live.skip_dead:\n        release_key(db, seq, live.queue, live.okey, now)",
                "    release_key(db, seq, live.queue, live.okey, now)",
            ),
        ),
    ),
    Mutant(
        "a late settle is refused",
        ("I7",),
        (Change(SETTLING, "not (open_to_all or live.lapsed)", "not open_to_all"),),
    ),
    Mutant(
        "what has expired is claimed all the same",
        ("I13",),
        (Change(f"{SQL}/due_select.sql", " AND l.expires_at > ?3", ""),),
        quick=True,
    ),
    Mutant(
        "jobs expire while they run",
        ("I7", "I13", "I19"),
        (
            Change(f"{SQL}/expired_select.sql", "parked IN (0, 1)", "parked IN (0, 1, 4)"),
            Change(f"{SQL}/expired_facts.sql", "parked IN (0, 1)", "parked IN (0, 1, 4)"),
        ),
    ),
    Mutant(
        "upkeep does not look again before it lapses",
        ("I7", "I9", "I6"),
        (
            Change(f"{SQL}/lapse_facts.sql", "l.token = ?2 AND l.worker = ?3 AND l.parked = 4", "?2 + ?3 IS NOT NULL"),
            Change(
                f"{SQL}/lapse_facts.sql",
                "NOT EXISTS (SELECT 1 FROM treppe_worker w WHERE w.id = l.worker AND w.gone = 0)",
                "1",
            ),
        ),
        tests=("tests/sim/test_gaps.py", "-k", "TestOnSQLite"),
        quick=True,
    ),
    Mutant(
        "upkeep lapses at once after a start",
        ("I9",),
        (Change("upkeep.py", "None if self.patience else AFTER_LAPSE", "AFTER_LAPSE"),),
        quick=True,
    ),
    Mutant(
        "what must not be repeated is repeated after a lapse",
        ("I16",),
        (Change("policy/lapse.py", "if looking or repeat is not Repeat.SAFE:", "if looking:"),),
        quick=True,
    ),
    Mutant(
        "what may have acted is simply tried again",
        ("I16",),
        (Change("settle.py", "return known is not False and claim.repeat is not Repeat.SAFE", "return False"),),
    ),
    Mutant(
        "a retry does not wait",
        ("I15",),
        (Change(SETTLING, "(seq, now + s.delay, int(s.charged)", "(seq, now, int(s.charged)"),),
        quick=True,
    ),
    Mutant(
        "a claim that was not answered is never given back",
        ("I22", "I11"),
        (Change("worker/engine.py", "if self._unseen.looks:", "if False:"),),
    ),
    Mutant(
        "a look for claims that were not answered is not made again when it fails",
        ("I22", "I11"),
        (
            Change(
                "worker/unseen.py",
                "        held = self._store.held(",
                '        self._next_look = float("inf")\n        held = self._store.held(',
            ),
        ),
        tests=("tests/worker/test_unseen.py", "-k", "look_that_fails"),
    ),
    Mutant(
        "what is handed over after its lapse is not counted for the limit",
        ("I19",),
        (Change(SETTLING, "if slotted and not live.slotted:", "if False:"),),
        tests=("tests/store/sqlite/test_settling.py",),
    ),
    Mutant(
        "trouble while winding down is not told to upkeep",
        ("I9",),
        (
            Change(
                "worker/engine.py",
                '            self._on_trouble()\n            log.warning("could not settle yet: %s", error)',
                '            log.warning("could not settle yet: %s", error)',
            ),
        ),
        tests=("tests/worker/test_trouble.py", "-k", "winding_down"),
    ),
    Mutant(
        "an act is not audited",
        ("I8",),
        (Change("store/sqlite/acts.py", "    if done:\n", "    if len(done) > 1:\n"),),
        quick=True,
    ),
    Mutant(
        "on PostgreSQL neither token nor worker are checked when a claim is settled",
        ("I6", "I7"),
        (Change(PG_SETTLING, "(live.token, live.worker) != (s.claim.token, s.claim.worker) or s.event", "s.event"),),
        tests=contract_on_postgres("token or worker"),
    ),
    Mutant(
        "on PostgreSQL a late settle is refused",
        ("I7",),
        (Change(PG_SETTLING, "not (open_to_all or live.lapsed)", "not open_to_all"),),
        tests=contract_on_postgres("late_settle"),
    ),
    Mutant(
        "on PostgreSQL a human's act does not look whether the job is still as it was seen",
        ("I7",),
        (Change("store/postgres/acts.py", "if live.token != token or not may_act", "if not may_act"),),
        tests=contract_on_postgres("seen"),
    ),
    Mutant(
        "on PostgreSQL repeat is lost when a dead job is revived",
        ("I16",),
        (Change("store/postgres/sql/revive_dead.sql", "r.token, j.repeat,", "r.token, 0,"),),
        tests=contract_on_postgres("revived"),
    ),
    Mutant(
        "on PostgreSQL upkeep does not look again before it lapses",
        ("I9",),
        (Change("store/postgres/keeping.py", "if live.worker not in alive]", "if live.worker is not None]"),),
        tests=("tests/sim/test_gaps.py", "-k", "TestOnPostgres"),
    ),
    Mutant(
        "on PostgreSQL a dead head lets its key go on",
        ("I17",),
        (Change("store/postgres/writing.py", "if live.skip_dead or live.okey is None:", "if live is not None:"),),
        tests=contract_on_postgres("dead"),
    ),
)


class Verdict(NamedTuple):
    mutant: Mutant
    caught: bool
    by: str
    seconds: float


class OutOfDateError(Exception):
    """The text that a mutant replaces is not in the package exactly once."""


@contextmanager
def mutated(mutant: Mutant | None) -> Iterator[Path]:
    """A folder with a copy of the package in which the mutant was applied; None copies it as it is."""
    with tempfile.TemporaryDirectory(prefix="treppe-mutant-") as folder:
        copy = Path(folder) / "treppe"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for change in mutant.changes if mutant else ():
            apply(copy, change)
        yield Path(folder)


def apply(package: Path, change: Change) -> None:
    """Replace the text in the file of this package."""
    file = package / change.file
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if text.count(change.old) != 1:
        raise OutOfDateError(f"{change.file} holds {text.count(change.old)} times: {change.old!r}")
    file.write_text(text.replace(change.old, change.new), encoding="utf-8")


def judge(mutant: Mutant, operations: int = OPERATIONS) -> Verdict:
    """Run what must notice the mutant."""
    began = time.monotonic()
    with mutated(mutant) as folder:
        if mutant.tests:
            done = run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests)
            caught, by = done.returncode == 1, " ".join(mutant.tests)
        else:
            done = run(folder, *SIM, str(operations))
            named = re.findall(r"^seed \d+: (I\d+) is broken", done.stdout, re.MULTILINE)
            caught, by = (
                bool(set(named) & set(mutant.promises)),
                f"the simulator: {', '.join(dict.fromkeys(named)) or 'nothing'}",
            )
    return Verdict(mutant, caught, by, time.monotonic() - began)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the package of that folder in place of the installed one."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def main(names: list[str]) -> int:
    """0 when all are caught."""
    chosen = [mutant for mutant in MUTANTS if not names or any(name in mutant.name for name in names)]
    verdicts = []
    for mutant in chosen:
        verdicts.append(judge(mutant))
        caught = "caught  " if verdicts[-1].caught else "SURVIVED"
        say(f"{caught} {verdicts[-1].seconds:5.0f} s  {mutant.name} ({verdicts[-1].by})")
    survived = sum(not verdict.caught for verdict in verdicts)
    say(f"{len(chosen) - survived} of {len(chosen)} mutants were caught")
    return 1 if survived else 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
