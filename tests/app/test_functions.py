import functools
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from treppe import ConfigError, Treppe
from treppe.testing.kit import drain


class Mailer:
    def __init__(self, sender: str) -> None:
        self.sender = sender

    def send(self, to: str) -> str:
        return f"{self.sender} to {to}"

    @classmethod
    def send_all(cls, to: str) -> str:
        return f"{cls.__name__} to {to}"

    @staticmethod
    def send_none(to: str) -> str:
        return f"none to {to}"


def plain(to: str) -> str:
    return f"plain to {to}"


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs).upper()

    return wrapper


@logged
def decorated(to: str) -> str:
    return f"decorated to {to}"


@pytest.mark.parametrize(
    ("function", "name", "result"),
    [
        (plain, "plain", "plain to ada"),
        (Mailer("shop").send, "Mailer.send", "shop to ada"),
        (Mailer.send_all, "Mailer.send_all", "Mailer to ada"),
        (Mailer.send_none, "Mailer.send_none", "none to ada"),
        (decorated, "decorated", "DECORATED TO ADA"),
        (functools.cache(plain), "plain", "plain to ada"),
    ],
)
@pytest.mark.usefixtures("clock")
def test_functions_and_bound_methods_are_tasks(app, function, name, result):
    task = app.task(function)
    assert task.name == f"{plain.__module__}.{name}"
    placed = task.enqueue("ada")
    assert drain(app).done == 1
    assert app.result(placed.id) == result


@pytest.mark.usefixtures("clock")
def test_a_lambda_needs_a_name(app):
    with pytest.raises(ConfigError, match=r"a lambda has no name of its own. Write a function with def, or give name="):
        app.task(lambda to: to)
    task = app.task(name="shop.echo")(lambda to: to)
    placed = task.enqueue("ada")
    drain(app)
    assert app.result(placed.id) == "ada"


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (functools.partial(plain, "ada"), "is no function. Write one with def"),
        (Mailer, "is no function"),
        (Mailer("shop"), "is no function"),
        ("plain", "'plain' is no function. Write one with def; settings go by name: name=\"…\""),
        (7, "7 is no function"),
        (generator, 'task "generator": a generator does nothing until somebody asks it. Write a function without'),
        (async_generator, "a generator does nothing until somebody asks it"),
        (Mailer.send, 'task "Mailer.send": it is a method, and its "self" cannot be stored. Write a function outside'),
    ],
)
def test_what_cannot_run_as_it_is_is_refused(app, function, sentence):
    with pytest.raises(ConfigError) as refused:
        app.task(function)
    assert sentence in str(refused.value)
    with pytest.raises(ConfigError):
        app.task(name="given")(function)
    assert app.tasks == {}


def test_two_tasks_of_one_name_are_refused(app):
    app.task(plain)
    with pytest.raises(ConfigError, match=r'plain": there are two of this name. Give one of them another: name='):
        app.task(plain)
    app.task(name="another")(plain)
    assert len(app.tasks) == 2


@pytest.mark.parametrize("name", ["", "two words", "line\nbreak", "x" * 256, "\ud800", 7])
def test_a_bad_name_is_refused(app, name):
    with pytest.raises(ConfigError, match=r"is not a good name. Use text of 1 to 255 characters without spaces"):
        app.task(name=name)(plain)


def test_the_names_of_destinations_are_taken(app):
    with pytest.raises(ConfigError, match=r'names that begin with "destination:" are taken. Choose another'):
        app.task(name="destination:crm")(plain)


SCRIPT = """
from treppe import Treppe
app = Treppe("sqlite:///shop.db")

@app.task
def send(to: str) -> None: ...

if __name__ == "__main__":
    print(send.name)
"""


def test_a_script_names_its_tasks_as_the_worker_that_imports_it(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tasks.py").write_text(SCRIPT)
    as_module = [sys.executable, "-m", "shop.tasks"]
    as_file = [sys.executable, "shop/tasks.py"]
    as_text = [sys.executable, "-c", SCRIPT]
    for command, name in ((as_module, "shop.tasks.send"), (as_file, "tasks.send"), (as_text, "__main__.send")):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == name
    assert Treppe().tasks == {}
