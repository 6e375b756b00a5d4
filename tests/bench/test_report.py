"""The report for people and for machines says the same."""

import json

from bench.about import About
from bench.figures import Figure, Measured, Scale, Target
from bench.report import as_json, as_text, ending, heading

ABOUT = About("CPython 3.11", "Linux", 2, "SQLite 3.40", 0.25, {"huey": "3.0"})
GOOD = Measured("idle", "Idle", [Figure("at rest", (0.1, 0.2, 0.3), "%", Target("<", 0.5))], ["a note"])
POOR = Measured(
    "speed", "Speed", [Figure("Treppe ÷ huey", (2.0,), "×", Target("≥", 2.5)), Figure("  rate", (61234.5,), "/s")]
)
BROKEN = Measured("door", "Door", trouble="the server did not start")


def test_a_line_holds_median_spread_target_and_verdict():
    assert as_text(GOOD).splitlines()[3].split() == ["at", "rest", "0.2", "%", "100", "%", "<", "0.5", "%", "reached"]
    assert as_text(GOOD).endswith("  - a note")


def test_figures_stand_in_columns():
    head, first, second = as_text(POOR).splitlines()[2:]
    assert first.index("2 ×") + 2 == second.index("61,234 /s") + 8 == head.index("median") + 6 - 1


def test_what_was_not_measured_is_said():
    assert "NOT MEASURED: the server did not start" in as_text(BROKEN)


def test_the_end_counts_targets_and_names_the_missed_ones():
    assert ending([GOOD, POOR, BROKEN], 7.4).splitlines() == [
        "",
        "1 of 2 targets reached, in 7 s",
        "  speed: Treppe ÷ huey: missed by 20 %",
        "  door: not measured: the server did not start",
    ]


def test_the_heading_names_versions_cores_and_runs():
    said = heading(ABOUT, Scale(5, quick=True))
    for part in ("CPython 3.11", "SQLite 3.40", "2 cores", "huey 3.0", "medians of 5 runs", "--quick"):
        assert part in said


def test_json_keeps_every_run():
    document = json.loads(as_json(ABOUT, Scale(3), [GOOD, BROKEN]))
    assert document["about"]["packages"] == {"huey": "3.0"}
    assert document["scale"] == {"runs": 3, "quick": False, "peers": []}
    figure = document["measures"]["idle"]["figures"][0]
    assert figure["runs"] == [0.1, 0.2, 0.3]
    assert (figure["median"], figure["target"], figure["reached"]) == (0.2, "< 0.5", True)
    assert document["measures"]["door"]["trouble"] == "the server did not start"
