"""The figures as a picture: plain SVG, one chart of bars below the other, by powers of ten where it helps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from html import escape

from bench.figures import Figure, Measured
from bench.report import number

WIDTH, LEFT, RIGHT = 860, 250, 110
BAR, GAP, HEAD = 16, 6, 44
WIDE = 20.0
"""A chart whose largest figure is so many times its smallest is drawn by powers of ten."""

STYLE = """text { font: 12px system-ui, sans-serif; fill: #222 } .head { font-weight: 600; font-size: 14px }
.bar { fill: #9aa7b5 } .ours { fill: #1f7a5a } .note { fill: #666 }"""


def as_svg(all_measured: Sequence[Measured], caption: str) -> str:
    """All charts that the figures name, in the order in which they come."""
    charts: dict[str, list[Figure]] = defaultdict(list)
    for figure in (figure for one in all_measured for figure in one.figures if figure.chart):
        charts[figure.chart].append(figure)
    parts, top = [_text(10, 24, caption, "note")], 40
    for name, figures in charts.items():
        parts.append(_chart(name, sorted(figures, key=lambda one: -one.middle), top))
        top += HEAD + len(figures) * (BAR + GAP)
    style = f"<style>{STYLE}</style>"
    size = f'width="{WIDTH}" height="{top + 10}" viewBox="0 0 {WIDTH} {top + 10}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}\n' + "\n".join(parts) + "\n</svg>\n"


def _chart(name: str, figures: Sequence[Figure], top: int) -> str:
    largest = max(figure.middle for figure in figures) or 1.0
    smallest = min((figure.middle for figure in figures if figure.middle > 0), default=largest)
    by_powers = largest / smallest > WIDE
    unit = figures[0].unit + (", by powers of ten" if by_powers else "")
    parts = [_text(10, top + 28, f"{name} ({unit})", "head")]
    for line, figure in enumerate(figures):
        y = top + HEAD + line * (BAR + GAP)
        length = (WIDTH - LEFT - RIGHT) * _share(figure.middle, smallest, largest, by_powers)
        look = "bar ours" if figure.who.startswith("Treppe") else "bar"
        parts.append(_text(LEFT - 8, y + 12, figure.who, anchor="end"))
        parts.append(f'<rect class="{look}" x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}"/>')
        parts.append(_text(LEFT + length + 6, y + 12, number(figure.middle)))
    return "\n".join(parts)


def _share(value: float, smallest: float, largest: float, by_powers: bool) -> float:
    """How long a bar is; by powers of ten the smallest one has a tenth of the decade before it."""
    if value <= 0:
        return 0.0
    if not by_powers:
        return value / largest
    start = math.log10(smallest) - 0.1
    return (math.log10(value) - start) / (math.log10(largest) - start)


def _text(x: float, y: float, text: str, look: str = "", anchor: str = "start") -> str:
    return f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
