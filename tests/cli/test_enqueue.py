import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.support import Ran

Treppe = Callable[..., Ran]
TASKS = '''
from treppe.app import Treppe

app = Treppe("sqlite:///tasks.db")

@app.task(name="shop.send_mail", queue="mail", key="to", attempts=3)
def send_mail(to: str, order: int = 0) -> None:
    """Nothing is sent here."""
'''


@pytest.fixture
def same_store(folder: Path) -> None:
    """Settings that name the app's own store."""
    settings = (folder / "treppe.toml").read_text()
    (folder / "treppe.toml").write_text(settings.replace("treppe.db", "tasks.db"))


@pytest.fixture
def module(folder: Path, request: pytest.FixtureRequest) -> str:
    """The tasks of a shop in a module of a name of its own, for Python keeps what it has imported."""
    name = f"shop_{abs(hash(request.node.nodeid))}"
    (folder / f"{name}.py").write_text(TASKS)
    return f"{name}:app"


def job(folder: Path, id: str, file: str = "treppe.db") -> dict[str, object]:
    from treppe.app import open_store

    store = open_store(f"sqlite:///{folder}/{file}")
    found = store.get(id)
    store.close()
    assert found is not None
    return {name: getattr(found, name) for name in found.__struct_fields__}


def test_a_job_does_not_go_where_the_apps_workers_never_look(folder: Path, treppe: Treppe, module: str) -> None:
    ran = treppe("-a", module, "enqueue", "shop.send_mail", "--arg", 'to="a"')
    assert ran.code == 2
    assert f"store: the app keeps its jobs in {folder}/tasks.db, the settings say {folder}/treppe.db" in ran.err
    assert treppe("jobs", "ls").err == "no such job\n"


@pytest.mark.usefixtures("same_store")
def test_a_job_for_a_task_takes_its_settings_and_the_callers(folder: Path, treppe: Treppe, module: str) -> None:
    arguments = ("--arg", 'to="ada@example.org"', "--arg", "order=42", "--id", "mail:42", "--priority", "7")
    ran = treppe("-a", module, "enqueue", "shop.send_mail", *arguments)
    assert ran == (0, "mail:42: accepted\n", "")
    found = job(folder, "mail:42", "tasks.db")
    assert (found["queue"], found["key"], found["priority"], found["attempts"]) == ("mail", "ada@example.org", 7, 3)
    assert json.loads(found["payload"]) == {"to": "ada@example.org", "order": 42}  # type: ignore[arg-type]


@pytest.mark.usefixtures("same_store")
def test_the_same_job_again_is_not_added(treppe: Treppe, module: str) -> None:
    arguments = ("enqueue", "shop.send_mail", "--json-args", '{"to": "ada"}', "--id", "m", "--app", module)
    assert treppe(*arguments, "--json").out == '{\n  "id": "m",\n  "duplicate": false\n}\n'
    assert json.loads(treppe(*arguments, "--json").out) == {"id": "m", "duplicate": True}
    assert treppe(*arguments).out == "m: there was one already, nothing was added\n"


def test_an_id_of_other_work_is_a_conflict(treppe: Treppe) -> None:
    treppe("enqueue", "destination:crm", "--id", "x", "--arg", "n=1")
    ran = treppe("enqueue", "destination:crm", "--id", "x", "--arg", "n=2")
    assert ran.code == 1
    assert 'the id "x" is taken by a job with another content' in ran.err


def test_a_job_for_a_destination_is_delivered_as_json(folder: Path, treppe: Treppe) -> None:
    treppe(
        "enqueue", "destination:invoice", "--json-args", '{"total": 9.90}', "--id", "i", "--key", "7", "--delay", "15m"
    )
    found = job(folder, "i")
    assert (found["queue"], found["key"], found["repeat"], found["payload"]) == (
        "accounting",
        "7",
        "ask",
        b'{"total":9.9}',
    )
    assert found["due_at"] - found["created_at"] == pytest.approx(900)  # type: ignore[operator]


def test_another_queue_than_the_tasks_own_can_be_named(folder: Path, treppe: Treppe) -> None:
    treppe("enqueue", "destination:crm", "--id", "i", "--queue", "slow")
    assert job(folder, "i")["queue"] == "slow"


def test_an_app_alone_brings_its_own_store(folder: Path, treppe: Treppe, module: str) -> None:
    (folder / "treppe.toml").unlink()
    assert treppe("--app", module, "enqueue", "shop.send_mail", "--arg", 'to="a"', "--id", "m").code == 0
    assert job(folder, "m", "tasks.db")["queue"] == "mail"
    assert "1 open" in treppe("status", "--app", module).out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["destination:crm", "--arg", "to=ada"], 2, "A text needs quotes of its own: --arg 'to=\"ada\"'"),
        (["destination:crm", "--arg", "to"], 2, "is not NAME=JSON, e.g. --arg order=42"),
        (["destination:crm", "--json-args", "[1]"], 2, "--json-args is a JSON object"),
        (["destination:crm", "--json-args", "{"], 2, "--json-args: this is not JSON"),
        (["destination:crm", "--delay", "soon"], 2, '--delay: "soon" is not a duration. Write a number and a unit'),
        (["destination:crm", "--priority", "101"], 2, "101 is not in the range -100<=x<=100"),
        (["destination:crm", "--queue", "No Queue"], 2, "queue is 'No Queue'"),
        (["destination:crn"], 1, 'there is no task "destination:crn". Did you mean "destination:crm"?'),
    ],
)
def test_each_mistake_has_its_sentence(treppe: Treppe, arguments: list[str], code: int, sentence: str) -> None:
    ran = treppe("enqueue", *arguments)
    assert ran.code == code
    assert sentence in ran.err


@pytest.mark.usefixtures("same_store")
def test_arguments_that_do_not_fit_the_task_are_refused(treppe: Treppe, module: str) -> None:
    for arguments, sentence in (
        (("--arg", 'order="x"', "--arg", 'to="a"'), "order"),
        (("--arg", "order=1"), "missing a required argument: 'to'"),
        (("--arg", 'to="a"', "--arg", "n=1"), "unexpected keyword argument 'n'"),
    ):
        ran = treppe("enqueue", "shop.send_mail", "--app", module, *arguments)
        assert ran.code == 2
        assert sentence in ran.err
