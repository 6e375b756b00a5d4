"""What holds for every test: nothing is left running, nothing is skipped quietly, nobody is hurried."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.servers import pgbouncer, postgres15, postgres18, postgres_url, treppe_url

__all__ = ["pgbouncer", "postgres15", "postgres18", "postgres_url", "treppe_url"]  # fixtures for all tests

EXPECTED_SKIPS: dict[str, str] = {}
"""Tests that may be skipped where CI is set: the test's id, and why it cannot run there."""

EXPECTED_REASONS = (
    "there is no PostgreSQL 15",
    "there is no PgBouncer",
    "there is no Node",
    "npm could not fetch",
    "only root",
)
"""How the reasons begin of skips on machines that have less: PostgreSQL 18 comes with the tests, these do not."""

MANY = 20
"""More tests than this that are skipped for one reason are told in one line."""

PATIENCE = 5.0
"""Seconds that a thread or a process may take to end after its test."""

collect_ignore = ["typing"]  # read by the type checkers, never run

hypothesis.settings.register_profile("treppe", deadline=None, print_blob=True, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("treppe")


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """Fail a test that leaves a thread or a child process behind."""
    before = running()
    yield
    give_up = time.monotonic() + PATIENCE
    while (left := running() - before) and time.monotonic() < give_up:
        time.sleep(0.01)
    assert not left, f"the test left running: {', '.join(sorted(left))}"


def running() -> set[str]:
    threads = {f"thread {thread.name} ({thread.ident})" for thread in threading.enumerate() if not thread.daemon}
    return threads | child_processes()


def child_processes() -> set[str]:
    """The children of this process, where the system tells them (Linux)."""
    found = set()
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread may end between the two looks
            found |= {f"process {pid}: {command_of(pid)}" for pid in children.read_text().split()}
    return {process for process in found if "multiprocessing.resource_tracker" not in process}


def command_of(pid: str) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where CI is set, a skip that nobody expected fails the run."""
    if "CI" in os.environ and unexpected_skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say every skip aloud, with its reason."""
    skips = skips_of(config)
    if not skips:
        return
    unexpected = unexpected_skips(config)
    terminalreporter.section(f"{len(skips)} SKIPPED, {len(unexpected)} of them unexpected", red=True, bold=True)
    for reason, tests in sorted(by_reason(skips).items()):
        if len(tests) > MANY:
            terminalreporter.line(f"{len(tests)} tests, of which the first is {min(tests)}: {reason}", yellow=True)
            continue
        for test in sorted(tests):
            expected = f" (expected: {EXPECTED_SKIPS[test]})" if test in EXPECTED_SKIPS else ""
            terminalreporter.line(f"{test}: {reason}{expected}", yellow=True)
    if unexpected and "CI" in os.environ:
        terminalreporter.line("CI is set: an unexpected skip counts as a failure", red=True)


def unexpected_skips(config: pytest.Config) -> set[str]:
    return {test for test, reason in skips_of(config).items() if not is_expected(test, reason)}


def is_expected(test: str, reason: str) -> bool:
    return test in EXPECTED_SKIPS or reason.removeprefix("Skipped: ").startswith(EXPECTED_REASONS)


def by_reason(skips: dict[str, str]) -> dict[str, list[str]]:
    return {reason: [test for test, why in skips.items() if why == reason] for reason in set(skips.values())}


def skips_of(config: pytest.Config) -> dict[str, str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return {report.nodeid: reason_of(report) for report in reporter.stats.get("skipped", [])}


def reason_of(report: pytest.TestReport) -> str:
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
