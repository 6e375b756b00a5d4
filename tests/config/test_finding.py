import pytest

from treppe.config.finding import Finding, line_of, lines_of


def test_a_finding_is_one_sentence_for_people() -> None:
    assert str(Finding("hint", "alert", "nobody is told")) == "alert: nobody is told"
    assert (
        str(Finding("error", "web.port", "it is taken", "Take another", 4))
        == "line 4, web.port: it is taken. Take another"
    )


@pytest.mark.parametrize(
    ("toml", "where", "line"),
    [
        ("a = 1\n\n[web] # here\nport = 1", "web.port", 4),
        ("[ destination . crm ]\n'url' = 1", "destination.crm.url", 2),
        ('destination.crm.url = "x"', "destination.crm.url", 1),
        ("[source.shop]\nverify = { header = 1 }", "source.shop.verify.header", 2),
        ("[source.shop]\n", "source.shop.preset", 1),
        ('[queue."a.b"]\nrate = 1', "queue.a.b.rate", 2),
        ("[web]", "user", None),
        ("", "", None),
    ],
)
def test_a_place_is_found_in_the_file(toml: str, where: str, line: int | None) -> None:
    assert line_of(lines_of(toml), where) == line
