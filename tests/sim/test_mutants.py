"""Mutants of the promises are noticed. Here those that are noticed fast; all of them with ``dev.py nightly``."""

from pathlib import Path

import pytest

from tests.sim.mutants import MUTANTS, PACKAGE, SIM, Change, OutOfDateError, apply, judge, mutated, run

QUICK = [mutant for mutant in MUTANTS if mutant.quick]


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.name)
def test_it_is_noticed(mutant):
    verdict = judge(mutant)
    assert verdict.caught, f"{mutant.name}: {verdict.by}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_text_is_in_the_package(mutant):
    with mutated(mutant) as folder:
        for change in mutant.changes:
            assert (folder / "treppe" / change.file).read_text() != (PACKAGE / change.file).read_text()


def test_the_package_as_it_is_passes():
    with mutated(None) as folder:
        done = run(folder, *SIM, "2000")
        used = run(folder, "-c", "import treppe; print(treppe.__file__)").stdout.strip()
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(used) == folder / "treppe" / "__init__.py", "it is the copy that is tried"


@pytest.mark.parametrize("old", ["not there", "import"], ids=["never", "twice"])
def test_a_text_that_is_not_there_once_is_told(old):
    with mutated(None) as folder, pytest.raises(OutOfDateError, match=r"upkeep\.py holds"):
        apply(folder / "treppe", Change("upkeep.py", old, "new"))
