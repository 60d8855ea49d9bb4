"""`data`: what the library knows of data sets, on the screen."""

from __future__ import annotations

from marginbayes import datasets
from tests.cli.conftest import Run


def test_the_list_has_every_data_set_with_its_size(run: Run) -> None:
    rows = [line.split() for line in run("data", "list").stdout.splitlines()]
    listed = {row[0]: row[1:] for row in rows if len(row) == 5}
    for record in datasets.available():
        sizes = ["?" if n is None else str(n) for n in (record.rows, record.features, record.classes)]
        assert listed[record.name] == [*sizes, record.source]


def test_where_says_what_the_library_says(run: Run) -> None:
    assert run("data", "where", "iris").stdout.strip() == datasets.where("iris")


def test_fetch_needs_nothing_for_what_is_here(run: Run) -> None:
    lines = run("data", "fetch", "iris", "monks-1").stdout.splitlines()
    assert lines == [f"{name}: {datasets.where(name)}" for name in ("iris", "monks-1")]


def test_an_unknown_name_is_refused_before_anything_is_fetched(fails: Run) -> None:
    assert "did you mean 'iris'" in fails("data", "where", "irs")
    assert "there is no data set 'zzzz'" in fails("data", "fetch", "iris", "zzzz")


def test_an_unusable_set_in_the_data_home_is_noted(run: Run, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "home" / "broken"
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text("{")
    monkeypatch.setenv("MARGINBAYES_DATA", str(tmp_path / "home"))
    result = run("data", "list")
    assert "broken" in result.stdout
    assert result.stderr.startswith("Note: broken cannot be used: ")
