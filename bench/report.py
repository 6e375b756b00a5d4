"""The report: for people as a table, for machines as JSON."""

from __future__ import annotations

import msgspec

from bench.about import About
from bench.figures import Figure, Measured, Scale

COLUMNS = ("", "median", "spread", "target", "")


def as_text(measured: Measured) -> str:
    """One measure: its figures as a table, its notes below."""
    lines = ["", measured.title]
    if measured.trouble:
        lines.append(f"  NOT MEASURED: {measured.trouble}")
    if measured.figures:
        lines += table([COLUMNS, *(row(figure) for figure in measured.figures)])
    return "\n".join([*lines, *(f"  - {note}" for note in measured.notes)])


def heading(about: About, scale: Scale) -> str:
    """What was used."""
    packages = ", ".join(f"{name} {number}" for name, number in about.packages.items())
    return "\n".join(
        [
            f"{about.python}, {about.store}, {about.system}, {about.cores} cores; {packages}",
            *([f"server: {_settings(about.settings)}"] if about.settings else []),
            f"4 KiB are on disk after {about.fsync_ms:.2f} ms; medians of {scale.runs} runs"
            + (", in small sizes (--quick)" if scale.quick else ""),
        ]
    )


def _settings(settings: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def ending(all_measured: list[Measured], seconds: float) -> str:
    """The targets, in one sentence each."""
    figures = [(one, figure) for one in all_measured for figure in one.figures if figure.target]
    missed = [f"  {one.name}: {figure.name.strip()}: {figure.verdict}" for one, figure in figures if not figure.reached]
    missed += [f"  {one.name}: not measured: {one.trouble}" for one in all_measured if one.trouble]
    reached = sum(figure.reached for _, figure in figures)
    return "\n".join(["", f"{reached} of {len(figures)} targets reached, in {seconds:.0f} s", *missed])


def as_json(about: About, scale: Scale, all_measured: list[Measured]) -> bytes:
    """Everything, with every single run."""
    measures = {
        one.name: {**msgspec.to_builtins(one), "figures": [_full(f) for f in one.figures]} for one in all_measured
    }
    document = {"about": msgspec.to_builtins(about), "scale": msgspec.to_builtins(scale), "measures": measures}
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def row(figure: Figure) -> tuple[str, ...]:
    """A figure as a line of the table."""
    spread = f"{figure.spread:.0%}".replace("%", " %") if len(figure.runs) > 1 else ""
    target = f"{figure.target} {figure.unit}" if figure.target else ""
    return (figure.name, f"{number(figure.middle)} {figure.unit}", spread, target, figure.verdict)


def number(value: float) -> str:
    """Three digits that matter.

    >>> number(61234.5), number(12.345), number(0.0123)
    ('61,234', '12.3', '0.0123')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns as wide as they must be; the first one to the left, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(_cells(row, widths)).rstrip() for row in rows]


def _cells(row: tuple[str, ...], widths: list[int]) -> list[str]:
    first, *figures, last = row
    return [
        first.ljust(widths[0]),
        *(cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=False)),
        last,
    ]


def _full(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name.strip(),
        "unit": figure.unit,
        "median": figure.middle,
        "spread": figure.spread,
        "runs": figure.runs,
        "target": str(figure.target or ""),
        "reached": figure.reached,
        "verdict": figure.verdict,
    }
