import asyncio
import os
from pathlib import Path

import pytest

from tests.demo.support import until, within
from treppe.demo.processes import Child, Children, Failed

STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)\n"
)
OBEDIENT = "import sys\nprint('{\"door\": 4711}', flush=True)\nsys.stdin.read()\n"
FAILING = "import sys\nsys.exit('the port is taken')\n"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def start(children: Children, folder: Path, source: str, own: bool = False) -> Child:
    """A process that runs this source as its module."""
    name = f"program_{abs(hash(source))}"
    (folder / f"{name}.py").write_text(source)
    return await children.start("it", name, own=own)


def test_it_announces_its_ports_and_ends_with_its_stdin(tmp_path: Path):
    async def story() -> None:
        async with Children(tmp_path, {}) as children:
            child = await start(children, tmp_path, OBEDIENT, own=True)
            assert await child.announced() == {"door": 4711}
            await child.stop()
            assert child.ended
            children.check()

    within(20, story)


def test_one_that_ends_on_its_own_is_told_with_its_last_words(tmp_path: Path):
    async def story() -> None:
        async with Children(tmp_path, {}) as children:
            child = await start(children, tmp_path, FAILING, own=True)
            with pytest.raises(Failed, match=r"(?s)it ended with code 1.*the port is taken"):
                await child.announced()

    within(20, story)


def test_one_that_does_not_end_is_killed(tmp_path: Path):
    async def story() -> None:
        async with Children(tmp_path, {}) as children:
            child = await start(children, tmp_path, STUBBORN)
            await until(lambda: "deaf" in child.last_words())
            await child.stop(patience=0.1)
            assert child.ended

    within(20, story)


def test_all_of_them_end_with_the_block_also_after_an_error(tmp_path: Path):
    pids: list[int] = []

    async def story() -> None:
        async with Children(tmp_path, {}) as children:
            for source, own in ((OBEDIENT, True), ("import time\ntime.sleep(60)\n", False)):
                pids.append((await start(children, tmp_path, source, own)).pid)
            raise Failed("enough")

    with pytest.raises(Failed, match="enough"):
        within(20, story)
    assert not any(alive(pid) for pid in pids)


def test_they_end_too_when_the_cleaning_up_is_broken_off(tmp_path: Path):
    pids: list[int] = []

    async def story() -> None:
        async with Children(tmp_path, {}) as children:
            child = await start(children, tmp_path, STUBBORN)
            pids.append(child.pid)
            await until(lambda: "deaf" in child.last_words())
            asyncio.get_running_loop().call_later(0.2, asyncio.current_task().cancel)

    with pytest.raises(asyncio.CancelledError):
        within(20, story)
    assert not alive(pids[0])
