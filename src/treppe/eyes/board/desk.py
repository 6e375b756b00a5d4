"""What every page needs: the store and its figures, and one visitor's request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from treppe.config import Settings
from treppe.errors import StoreError
from treppe.eyes.alert import troubles
from treppe.eyes.board.gate import Gate, Session
from treppe.eyes.board.reasons import cause
from treppe.eyes.board.throttle import Throttle
from treppe.eyes.measure import Figures
from treppe.eyes.plain import line, plain
from treppe.eyes.words import Words, iso
from treppe.job import Event
from treppe.store.protocol import Store

PACKAGE: Final = "treppe.eyes.board"
LANGUAGE_COOKIE: Final = "treppe_language"
YEAR: Final = 365 * 86400
_SAID: Final = frozenset({"said", "n", "refused"})


EVENTS: Final = (Event.CONFIRM, Event.REVIVE, Event.BURY, Event.CANCEL, Event.ASK_CANCEL)
"""What a human may do to a job."""


class Trouble(Exception):
    """A visitor's request cannot be carried out; *key* names the text under ``trouble``."""

    def __init__(self, status: int, key: str, headers: dict[str, str] | None = None, **values: object) -> None:
        super().__init__(key)
        self.status, self.key, self.values, self.headers = status, key, values, headers or {}


@dataclass(frozen=True)
class Desk:
    """One board."""

    store: Store
    settings: Settings
    figures: Figures
    language: str
    clock: Callable[[], float]
    gate: Gate = field(init=False)
    throttle: Throttle = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", Gate(self.store, self.settings.web, self.clock))
        object.__setattr__(self, "throttle", Throttle(self.clock))


@dataclass(frozen=True)
class Visit:
    """One request: who asks, in which language, and what the form says."""

    desk: Desk
    request: Request
    words: Words
    session: Session | None
    form: dict[str, list[str]]

    def ask(self, name: str) -> str:
        """One parameter of the address, or an empty text."""
        return self.request.query_params.get(name, "")

    def said(self, name: str) -> str:
        """One field of the form, or an empty text."""
        return self.form.get(name, [""])[0].strip()

    @property
    def name(self) -> str:
        """The page's own name, as links to it say."""
        return self.request.url.path.rpartition("/")[2]

    @property
    def who(self) -> Session:
        """The session; only for pages behind the login."""
        if self.session is None:
            raise AssertionError("this page was served without a login")
        return self.session

    @property
    def address(self) -> str:
        """Where the visitor comes from, as the server tells it."""
        return self.request.client.host if self.request.client else "unix"

    @property
    def root(self) -> str:
        """The path that cookies are for."""
        return f"{self.request.scope.get('root_path', '')}/"

    def link(self, page: str, **parameters: object) -> str:
        """A relative address, which holds wherever the board is mounted."""
        given = {name: value for name, value in parameters.items() if value not in (None, "")}
        return f"{page or './'}?{urlencode(given)}" if given else page or "./"

    def here(self, **parameters: object) -> str:
        """This page with some parameters changed, and without what it had to say."""
        kept = {name: value for name, value in self.request.query_params.items() if name not in _SAID}
        return self.link("" if self.request.method == "POST" else self.name, **(kept | parameters))

    def page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """A page from a template."""
        html = _templates().get_template(template).render(visit=self, t=self.words, **values)
        return HTMLResponse(html, status)

    def go(self, page: str, **parameters: object) -> Response:
        """On to another page after an act."""
        return RedirectResponse(self.link(page, **parameters), 303)

    def counts(self) -> dict[str, int]:
        """What needs a human, for the navigation; nothing while the store does not answer."""
        try:
            summary = self.desk.figures.summary()
        except StoreError:
            return {}
        return {"dead": summary.dead, "unclear": summary.unclear}

    def told(self) -> list[str]:
        """What became of the act that led here."""
        said, n, refused = self.ask("said"), self.ask("n"), self.ask("refused")
        if said in ("pause", "resume", "unchanged"):
            return [self.words(f"said.{said}")]
        if said not in EVENTS or not (_is_count(n) and _is_count(refused)):
            return []
        lines = [self.words(f"said.{said}", n=int(n))] if int(n) else []
        return [*lines, self.words("said.refused", n=int(refused))] if int(refused) else lines

    def banners(self) -> list[str]:
        """Alerts that do not get through."""
        return [
            self.words(
                "overview.alerts_fail",
                alert=trouble.alert,
                target=trouble.target,
                since=self.words.moment(trouble.since),
                error=trouble.error,
            )
            for trouble in troubles(self.desk.store, self.desk.settings)
        ]


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5


@cache
def static(name: str) -> tuple[bytes, str]:
    """A file that is handed out as it is, and the mark of its version."""
    content = files(PACKAGE).joinpath("static", name).read_bytes()
    return content, sha256(content).hexdigest()[:12]


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    own: dict[str, Any] = {"plain": plain, "line": line, "iso": iso}
    environment.filters.update(own)
    environment.globals.update(version=lambda name: static(name)[1], cause=cause)
    return environment
