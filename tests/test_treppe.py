"""The package itself: its names, and what it costs to import."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import treppe
from treppe import errors

HEAVY = ("aiohttp", "starlette", "uvicorn", "jinja2", "rich", "click", "asyncio", "sqlite3", "treppe.app")


def test_importing_it_loads_nothing_heavy():
    program = (
        f"import sys; before = set(sys.modules); import treppe; print(*({set(HEAVY)!r} - before) & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_enqueueing_needs_none_of_the_extras():
    program = (
        "import sys, tempfile, treppe\n"
        "folder = tempfile.mkdtemp()\n"
        "app = treppe.Treppe(f'sqlite:///{folder}/jobs.db')\n"
        "app.task(name='task')(lambda: None).enqueue()\n"
        "app.close()\n"
        f"print(*[name for name in {HEAVY[:6]!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_it_knows_its_version():
    assert treppe.__version__ == version("treppe")


def test_every_error_has_a_public_name():
    kinds = {name for name, thing in vars(errors).items() if isinstance(thing, type)}
    assert kinds <= set(treppe.__all__)


def test_what_there_is_can_be_listed_and_what_there_is_not_is_told():
    assert set(treppe.__all__) <= set(dir(treppe))
    with pytest.raises(AttributeError, match="module 'treppe' has no attribute 'Celery'"):
        treppe.Celery  # noqa: B018
