#!/usr/bin/env python3
"""The front door of this repository: `python3 dev.py demo | test | check | bench | nightly`.

It needs nothing but Python: what is missing is set up first, in `.venv` beside this file, and only then.
Three ways are tried in turn, so that it works without uv, with a pip that the system manages, and without ensurepip:
uv from the PATH, uv fetched by pip into `.tools`, a plain virtual environment filled by its own pip.
"""

import difflib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 (down to here an older Python reads this file, and is told)
    newer = [name for name in ("python3.14", "python3.13", "python3.12", "python3.11") if shutil.which(name)]
    cure = f"Run: {newer[0]} {' '.join(sys.argv)}" if newer else "Install a newer one and run this file with it."
    sys.exit(f"Treppe needs Python 3.11 or newer, and this is {sys.version.split()[0]}. {cure}")

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
TOOLS = ROOT / ".tools"
STATE = TOOLS / "environment.json"
LOG = TOOLS / "setup.log"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PYTHON = ENVIRONMENT / SCRIPTS / "python"

RUN = {"web", "deliver", "rich"}
POSTGRES = {"postgres", "servers"}
DEVELOP = RUN | {"dev"}
MEASURE = RUN | {"bench"}
NODE = "pyright[nodejs]"

UV_NAMES = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_INDEX", "PIP_CERT": "SSL_CERT_FILE"}


NO_WAY = """dev.py: no way of setting up worked.
If the package index cannot be reached: behind a proxy set HTTPS_PROXY, with an index of your own set PIP_INDEX_URL.
If this Python has neither pip nor ensurepip: on Debian and Ubuntu install python3-venv, elsewhere install uv."""


def demo(arguments: list[str]) -> int:
    """The promotion Friday, over real HTTP and real processes (--naive, --orders N, --store postgres, --json)."""
    prepare(RUN | POSTGRES if any("postgres" in argument for argument in arguments) else RUN)
    return run("-m", "treppe", "demo", *arguments)


def test(arguments: list[str]) -> int:
    """All tests with branch coverage; with arguments for pytest, only what they name, without coverage."""
    prepare(DEVELOP)
    return run("-m", "pytest", *(arguments or ["--cov"]))


def check(arguments: list[str]) -> int:
    """Style, format, types, import rules and the examples of the documentation."""
    prepare(DEVELOP if shutil.which("node") else DEVELOP | {NODE})
    return run_all(
        {
            "style": ["-m", "ruff", "check", *arguments],
            "format": ["-m", "ruff", "format", "--check"],
            "types": ["-m", "mypy"],
            "types of the public API": ["-m", "pyright"],
            "imports": [
                "-c",
                "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_logo=True))",
            ],
            "examples": ["-m", "pytest", "--quiet", "tests/docs"],
        }
    )


def bench(arguments: list[str]) -> int:
    """The ratios against peers and against the empty server (--json FILE)."""
    prepare(MEASURE)
    return run("-m", "bench", *arguments)


def sim(arguments: list[str]) -> int:
    """Worlds in virtual time where everything goes wrong (--seed N, --operations N, --minutes M, --store KIND)."""
    prepare(DEVELOP)
    return run("-m", "tests.sim", *arguments)


def nightly(arguments: list[str]) -> int:
    """The long checks: the contract on all servers, 20,000 orders, the simulator, its mutants, the benchmarks."""
    prepare(DEVELOP | MEASURE)
    return run_all(
        {
            "tests": ["-m", "pytest", "-m", "nightly"],
            "demo": ["-m", "treppe", "demo", "--orders", "20000"],
            "demo on PostgreSQL": ["-m", "treppe", "demo", "--store", "postgres", "--restart-store"],
            "sim": ["-m", "tests.sim", "--operations", "3000000"],
            "sim on PostgreSQL": ["-m", "tests.sim", "--operations", "30000", "--store", "postgres"],
            "mutants": ["-m", "tests.sim.mutants"],
            "bench": ["-m", "bench", *arguments],
        },
    )


COMMANDS = {command.__name__: command for command in (demo, test, check, bench, sim, nightly)}


def main(arguments: list[str]) -> int:
    """Run the named command and return its exit code."""
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        print(usage())
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        say(f"there is no command {name!r}.{hint}\n\n{usage()}")
        return 2
    return COMMANDS[name](rest)


def usage() -> str:
    """The commands, one a line."""
    lines = [f"  {name:<9}{command.__doc__}" for name, command in COMMANDS.items()]
    return "\n".join(["usage: python3 dev.py COMMAND [ARGUMENTS]", "", *lines])


# Running


def run(*arguments: str) -> int:
    """Run the environment's Python and return its exit code; asked to stop, stop once it has stopped."""
    process = subprocess.Popen([PYTHON, *arguments], cwd=ROOT)
    asked_to_stop = []

    def pass_on(number: int, _frame: object) -> None:
        asked_to_stop.append(number)
        if number == signal.SIGTERM:  # a Ctrl-C reaches the child by itself
            process.terminate()

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    code = process.wait()
    for number, handler in before.items():
        signal.signal(number, handler)
    code = code if code >= 0 else 128 - code
    return sys.exit(code) if asked_to_stop else code


def run_all(steps: dict[str, list[str]]) -> int:
    """Run every step, also after one has failed, and name the failed ones at the end."""
    failed = []
    for name, arguments in steps.items():
        start = time.monotonic()
        say(f"{name} …")
        code = run(*arguments)
        say(f"{name}: {'passed' if code == 0 else f'FAILED with {code}'} ({time.monotonic() - start:.1f} s)")
        if code:
            failed.append(name)
    say(f"{len(failed)} of {len(steps)} failed: {', '.join(failed)}" if failed else f"all {len(steps)} passed")
    return 1 if failed else 0


def say(sentence: str) -> None:
    """Tell the human, on standard error, so that standard output is the command's own."""
    print(f"dev.py: {sentence}", file=sys.stderr, flush=True)


# Setting up


def prepare(needs: set[str]) -> None:
    """See to it that the environment holds these extras; a stale or half-built one is built anew."""
    made_for, holds = read_state()
    if made_for != fingerprint() or not needs <= holds or not PYTHON.exists():
        set_aside_a_foreign_environment()
        build(needs | holds)


def build(holds: set[str]) -> None:
    """Build the environment in the first way that works."""
    start = time.monotonic()
    LOG.unlink(missing_ok=True)
    for name, way in ways().items():
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        write_state("", holds)
        try:
            way(holds)
        except NotThisWay as why:
            say(f"{name}: {why}")
        else:
            write_state(fingerprint(), holds)
            return say(f"set up by {name} in {time.monotonic() - start:.0f} s")
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    sys.exit(NO_WAY)


def ways() -> Mapping[str, Callable[[set[str]], None]]:
    """The ways of setting up that this machine has the means for, quickest first."""
    known = {
        "uv": (uv_from_path, shutil.which("uv")),
        "uv from pip": (uv_from_pip, importlib.util.find_spec("pip")),
        "venv and pip": (venv_and_pip, importlib.util.find_spec("ensurepip")),
    }
    return {name: way for name, (way, is_there) in known.items() if is_there}


class NotThisWay(Exception):
    """This way of setting up does not work here; the text says why."""


def uv_from_path(holds: set[str]) -> None:
    install_with("uv", holds)


def uv_from_pip(holds: set[str]) -> None:
    uv = TOOLS / "bin" / ("uv.exe" if os.name == "nt" else "uv")
    if not uv.exists():
        step("fetching uv into .tools", sys.executable, "-m", "pip", "install", "--target", TOOLS, "--upgrade", "uv")
    install_with(uv, holds)


def venv_and_pip(holds: set[str]) -> None:
    step("making .venv", sys.executable, "-m", "venv", ENVIRONMENT)
    step(f"installing {names(holds)}", PYTHON, "-m", "pip", "install", *requirements(holds))


def install_with(uv: str | Path, holds: set[str]) -> None:
    step("making .venv", uv, "venv", "--python", sys.executable, ENVIRONMENT)
    step(f"installing {names(holds)}", uv, "pip", "install", "--python", PYTHON, *requirements(holds))


def requirements(holds: set[str]) -> list[str]:
    return ["--editable", f".[{','.join(sorted(holds - {NODE}))}]", *(holds & {NODE})]


def names(holds: set[str]) -> str:
    return f"treppe with {', '.join(sorted(holds))}"


def step(name: str, *command: str | Path) -> None:
    """Run one command of the set-up; what it prints is kept in a file, and its end is shown when it fails."""
    say(name)
    code, printed = output_of(command)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(map(str, command))}\n{printed}\n")
    if code:
        told = [line for line in printed.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise NotThisWay("\n".join([f"{name} failed; all of its output is in {LOG}", *told[-8:]]))


def output_of(command: Sequence[str | Path]) -> tuple[int, str]:
    """The command's exit code and all that it printed; one that cannot even be started has failed like any other."""
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=with_uv_names(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def with_uv_names(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables as they are, and those meant for pip also under the names that uv reads."""
    return {uv: variables[pip] for pip, uv in UV_NAMES.items() if pip in variables} | dict(variables)


def set_aside_a_foreign_environment() -> None:
    if ENVIRONMENT.exists() and not STATE.exists():
        aside = ROOT / f".venv-{time.time():.0f}"
        ENVIRONMENT.rename(aside)
        say(f"the .venv here was not made by dev.py: moved to {aside.name}")


def fingerprint() -> str:
    """Changes with whatever makes an environment stale: the settings, the Python, the place."""
    python = sys.version_info[:2]
    return hashlib.sha256(f"{python}\n{ROOT}\n{(ROOT / 'pyproject.toml').read_text('utf-8')}".encode()).hexdigest()


def read_state() -> tuple[str, set[str]]:
    """What the environment was made for, and the extras it holds; a half-built one was made for nothing."""
    try:
        state = json.loads(STATE.read_text("utf-8"))
        return state["made_for"], set(state["holds"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return "", set()


def write_state(made_for: str, holds: set[str]) -> None:
    TOOLS.mkdir(exist_ok=True)
    STATE.write_text(json.dumps({"made_for": made_for, "holds": sorted(holds)}), "utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
