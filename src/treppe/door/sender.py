"""A source made ready: whose webhook is this, which event is it, and which jobs does it make?

Everything that can be wrong with the settings is found when a :class:`Sender` is made; afterwards whatever comes is
taken: where an id, a key or a filter cannot be read, the event is kept and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from treppe.config import Destination, Secret, Source, Verify
from treppe.config.parse import open_secret
from treppe.config.words import did_you_mean
from treppe.door import signature
from treppe.door.answers import HeaderPairs
from treppe.door.arrival import Arrival
from treppe.door.fields import MAX_TEXT, Field, field, first_of, fitting, joined
from treppe.door.presets import PRESETS, Preset
from treppe.door.where import condition
from treppe.errors import ConfigError
from treppe.intake import delivery_settings, new_id
from treppe.job import NewEvent, NewJob

NOTE: Final = "treppe-note"
"""The header under which our own remarks are kept beside the sender's headers."""


class Meant(NamedTuple):
    """What an arrival means. ``filtered`` says why it makes no jobs; ``notes`` what could not be read."""

    event: NewEvent
    jobs: tuple[NewJob, ...]
    filtered: str
    notes: tuple[str, ...]


class Sender:
    """One source. ``answer`` is the code for what was accepted, ``max_body`` the most bytes of a body."""

    def __init__(
        self,
        source: Source,
        destinations: Mapping[str, Destination],
        reveal: Callable[[Secret], bytes] = open_secret,
    ) -> None:
        where = f"source.{source.name}"
        preset = _preset(source, where)
        self.name = source.name
        self.answer = preset.answer
        self.max_body = source.max_body or preset.max_body
        self.fault = _verifier(source, preset, where, reveal)
        self._id = _id_field(source, preset, where)
        self._topic = field(preset.topic, where) if preset.topic else _nothing
        self._key = field(source.key, f"{where}.key") if source.key else None
        self._key_path = source.key
        self._only = _only(source, preset, where)
        self._where = condition(source.where, f"{where}.where") if source.where else None
        self._where_text = source.where
        self._jobs = tuple(_job_settings(source, _destination(source, name, destinations)) for name in source.send_to)

    def meaning(self, arrival: Arrival) -> Meant:
        """Event and jobs of what came. Never fails."""
        notes: list[str] = []
        event_id, key = self._event_id(arrival, notes), self._order_key(arrival, notes)
        topic = self._topic_of(arrival)
        filtered = self._filtered(arrival, topic)
        if arrival.trouble_seen:
            notes.append(arrival.trouble_seen)
        event = NewEvent(
            source=self.name,
            id=event_id,
            body=arrival.body,
            headers=_kept(arrival.headers.pairs, [*notes, filtered] if filtered else notes),
            content_type=_content_type(arrival),
            topic=topic,
        )
        jobs = () if filtered else tuple([self._job(event_id, key, *of) for of in self._jobs])
        return Meant(event, jobs, filtered, tuple(notes))

    def _event_id(self, arrival: Arrival, notes: list[str]) -> str:
        found = self._id(arrival)
        if found is not None:
            return fitting(found)
        if self._id is not _nothing:
            notes.append("no event id found: a repeat will not be known as one")
        return new_id()

    def _topic_of(self, arrival: Arrival) -> str:
        found = self._topic(arrival)
        return fitting(found) if found else ""

    def _order_key(self, arrival: Arrival, notes: list[str]) -> str | None:
        found = self._key(arrival) if self._key else None
        if found is not None:
            return fitting(found)
        if self._key:
            notes.append(f"key missing: {self._key_path}")
        return None

    def _filtered(self, arrival: Arrival, topic: str) -> str:
        if self._only and topic not in self._only:
            return f'filtered: the topic "{topic}" is not under only'
        if self._where and not self._where(arrival):
            return f"filtered: {self._where_text} does not hold"
        return ""

    def _job(self, event_id: str, key: str | None, destination: str, settings: dict[str, Any]) -> NewJob:
        job_id = f"{self.name}:{event_id}:{destination}"
        if len(job_id) > MAX_TEXT:
            job_id = fitting(job_id)
        return NewJob(id=job_id, event=(self.name, event_id), key=key, **settings)


_NEVER_KEPT: Final = frozenset({
    b"authorization", b"proxy-authorization", b"cookie",  # not ours to keep
    b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade",  # of the connection only
    b"content-length", NOTE.encode(),
})  # fmt: skip


def _nothing(arrival: Arrival) -> str | None:
    return None


def _preset(source: Source, where: str) -> Preset:
    if source.preset not in PRESETS:
        raise ConfigError(f"{where}.preset", f'"{source.preset}" is not known', did_you_mean(source.preset, PRESETS))
    if not _plain_name(source.name):
        raise ConfigError(where, "this is not a good name", "Use up to 64 small letters, digits and . _ -")
    return PRESETS[source.preset]


def _plain_name(name: str) -> bool:
    return 0 < len(name) <= 64 and not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")


def _verifier(source: Source, preset: Preset, where: str, reveal: Callable[[Secret], bytes]) -> signature.Verifier:
    if source.verify == "none":
        return signature.unsigned
    secrets = [reveal(secret) for secret in source.secrets]
    if isinstance(source.verify, Verify):
        return signature.Hmac(secrets, source.verify, f"{where}.verify")
    if preset.verifier is None:
        cure = 'Add verify = { header = "X-Signature" }, or verify = "none" if it cannot sign'
        raise ConfigError(f"{where}.verify", "nothing says how this sender signs", cure)
    return preset.verifier(secrets, f"{where}.secret")


def _id_field(source: Source, preset: Preset, where: str) -> Field:
    if source.id:
        return joined(source.id, f"{where}.id")
    if preset.ids:
        return first_of([joined(paths, f"{where}.id") for paths in preset.ids])
    if isinstance(source.verify, Verify) and source.verify.id_header:
        return field(f"header:{source.verify.id_header}", f"{where}.verify.id_header")
    return _nothing


def _only(source: Source, preset: Preset, where: str) -> frozenset[str]:
    if source.only and preset.topic is None:
        cure = "Use where instead, e.g. where = \"header:X-Topic == 'paid'\""
        raise ConfigError(f"{where}.only", f'preset = "{preset.name}" does not know topics', cure)
    return frozenset(source.only)


def _destination(source: Source, name: str, destinations: Mapping[str, Destination]) -> Destination:
    if name not in destinations:
        where = f"source.{source.name}.send_to"
        raise ConfigError(where, f'there is no destination "{name}"', did_you_mean(name, destinations))
    return destinations[name]


def _job_settings(source: Source, destination: Destination) -> tuple[str, dict[str, Any]]:
    """Everything about its jobs that does not depend on the event."""
    return destination.name, {**delivery_settings(destination), "keep": source.keep}


def _kept(pairs: HeaderPairs, notes: list[str]) -> tuple[tuple[str, str], ...]:
    kept = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs if name not in _NEVER_KEPT]
    return tuple(kept + [(NOTE, note) for note in notes])


def _content_type(arrival: Arrival) -> str:
    return fitting((arrival.headers.get(b"content-type") or b"application/octet-stream").decode("latin-1"))
