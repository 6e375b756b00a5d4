"""The picture shows every figure that names a chart."""

import xml.etree.ElementTree as ET

from bench.figures import Figure, Measured
from bench.plot import as_svg

SPEED = Measured(
    "speed",
    "Speed",
    [
        Figure("Treppe", (40.0, 60.0, 50.0), "/s", chart="end to end", who="Treppe <threads>"),
        Figure("peer", (25.0,), "/s", chart="end to end", who="peer"),
        Figure("slow peer", (0.05,), "/s", chart="pick-up", who="slow peer"),
        Figure("quick peer", (50.0,), "/s", chart="pick-up", who="quick peer"),
        Figure("not drawn", (1.0,), "/s"),
    ],
)


def bars_and_texts():
    root = ET.fromstring(as_svg([SPEED], "the machine"))
    kind = "{http://www.w3.org/2000/svg}"
    bars = [float(bar.get("width")) for bar in root.iter(f"{kind}rect")]
    return bars, [text.text for text in root.iter(f"{kind}text")]


def test_the_longest_bar_comes_first_and_the_others_are_in_proportion():
    bars, texts = bars_and_texts()
    assert bars[1] / bars[0] == 0.5
    assert texts[:4] == ["the machine", "end to end (/s)", "Treppe <threads>", "50"]


def test_figures_far_apart_are_drawn_by_powers_of_ten():
    bars, texts = bars_and_texts()
    assert "pick-up (/s, by powers of ten)" in texts
    assert 0 < bars[3] < 0.1 * bars[2]


def test_a_figure_without_a_chart_is_not_drawn():
    bars, texts = bars_and_texts()
    assert len(bars) == 4
    assert "not drawn" not in texts
