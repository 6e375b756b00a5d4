from pathlib import Path

import pytest

from treppe.app import Treppe
from treppe.cli.house import House, load_app
from treppe.errors import ConfigError, StoreError


@pytest.fixture
def module(folder: Path, request: pytest.FixtureRequest) -> str:
    """A name of its own for each test, for Python keeps what it has imported."""
    return f"house_{abs(hash(request.node.nodeid))}"


def write(folder: Path, module: str, text: str) -> None:
    (folder / f"{module}.py").write_text(text)


def refusal(path: str, folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_app(path, [folder])
    return str(caught.value)


def test_an_app_is_found_in_the_folder(folder: Path, module: str) -> None:
    write(folder, module, "from treppe.app import Treppe\napp = Treppe()")
    assert isinstance(load_app(f"{module}:app", [folder]), Treppe)


@pytest.mark.parametrize("path", ["shop", "shop:", ":app", ""])
def test_a_path_names_a_module_and_a_variable(folder: Path, path: str) -> None:
    assert f'app: "{path}" names no app. Write "module:variable", e.g. "shop.tasks:app"' in refusal(path, folder)


def test_a_module_that_is_not_there_is_named_with_the_place(folder: Path) -> None:
    sentence = refusal("no_such_module.tasks:app", folder)
    assert f'there is no module "no_such_module" in {folder}. Start treppe in the folder that holds it' in sentence


def test_a_variable_that_is_not_there_is_answered_with_the_nearest_app(folder: Path, module: str) -> None:
    write(folder, module, "from treppe.app import Treppe\ntasks_app = Treppe()\nother = 3")
    assert f'{module} has no "task_app". Did you mean "tasks_app"?' in refusal(f"{module}:task_app", folder)
    assert f'"other" in {module} is no Treppe app. Known are: tasks_app' in refusal(f"{module}:other", folder)


def test_a_module_without_an_app_is_told_how_to_make_one(folder: Path, module: str) -> None:
    write(folder, module, "")
    assert f'{module} has no "app". Make one: app = Treppe(…)' in refusal(f"{module}:app", folder)


def test_a_module_that_cannot_be_imported_is_told_with_its_own_line(folder: Path, module: str) -> None:
    write(folder, module, "x = 1\nx.y.z\n")
    sentence = refusal(f"{module}:app", folder)
    assert f"importing {module} failed: AttributeError: 'int' object has no attribute 'y'" in sentence
    assert f"({folder}/{module}.py, line 2). Correct the module" in sentence


def test_a_module_that_misses_another_one_is_told_to_install_it(folder: Path, module: str) -> None:
    write(folder, module, "import no_such_library\n")
    sentence = refusal(f"{module}:app", folder)
    assert "No module named 'no_such_library'" in sentence
    assert "Install what it needs, in the same environment" in sentence


def test_the_settings_name_the_app(folder: Path, module: str) -> None:
    write(folder, module, "from treppe.app import Treppe\napp = Treppe()")
    house = House()
    assert house.app is None
    (folder / "treppe.toml").write_text(f'app = "{module}:app"')
    house = House()
    assert isinstance(house.app, Treppe)
    assert not house.without_file


def test_an_app_that_was_named_wins_over_the_settings(folder: Path, module: str) -> None:
    (folder / "treppe.toml").write_text('app = "other:app"\n[queue.q]\nrate = "2/s"')
    house = House()
    house.app_path = f"{module}:app"
    assert house.settings.app == f"{module}:app"
    assert "q" in house.settings.queues


def test_a_look_makes_no_store(folder: Path) -> None:
    with pytest.raises(StoreError, match=r"treppe.db: there is no store yet"), House().store():
        pass
    assert not (folder / "treppe.db").exists()
    with House().store(make=True) as store:
        assert store.backlog().open == 0
    assert (folder / "treppe.db").exists()
