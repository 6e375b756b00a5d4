"""The command, as people call it."""

import json
import subprocess
import sys

import pytest

from bench.processes import PROC, ROOT


def bench(*arguments):
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)


def test_an_unknown_measure_is_refused_with_the_nearest_one():
    done = bench("--only", "dor")
    assert done.returncode == 2
    assert "there is no measure 'dor'. Did you mean door?" in done.stderr


def test_an_unknown_peer_is_refused_with_the_nearest_one():
    done = bench("--store", "postgres", "--peer", "graphil_postgres")
    assert done.returncode == 2
    assert "there is no peer 'graphil_postgres'. Did you mean graphile_postgres?" in done.stderr


def test_what_is_not_measured_on_a_store_is_refused():
    done = bench("--only", "snapshot")
    assert done.returncode == 2
    assert "snapshot is not measured on sqlite" in done.stderr


def test_no_runs_are_refused():
    assert bench("--runs", "0").returncode == 2


@pytest.mark.skipif(not (PROC / "self" / "status").exists(), reason="the system has no /proc")
def test_a_quick_run_prints_its_figures_and_keeps_them(tmp_path):
    done = bench("--quick", "--runs", "1", "--only", "memory", "--json", str(tmp_path / "bench.json"))
    assert done.returncode in (0, 1), done.stderr
    assert "late ÷ early" in done.stdout
    assert " of 1 targets reached" in done.stdout
    figures = json.loads((tmp_path / "bench.json").read_text())["measures"]["memory"]["figures"]
    assert [len(figure["runs"]) for figure in figures] == [1, 1, 1]
    assert figures[0]["median"] > 1
