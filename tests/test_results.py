"""Pages of results: their tables are what the benchmarks print from the lines behind them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {
    "docs/results/exact-margin.md": ("exact_margin.py", "table", "--json", "docs/results/exact-margin.jsonl"),
    "docs/margin-hybrid.md": ("hybrid.py", "table", "--file", "docs/results/margin-hybrid.jsonl"),
}


def rows(text: str) -> list[str]:
    """The lines of all tables of a page."""
    return [line for line in text.splitlines() if line.startswith("|")]


def printed(page: str) -> list[str]:
    """The tables that the benchmark of a page prints."""
    script, *arguments = PAGES[page]
    command = [sys.executable, f"benchmarks/{script}", *arguments]
    return rows(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("page", PAGES)
def test_every_table_that_the_benchmark_prints_is_on_the_page(page: str) -> None:
    found, wanted = rows((ROOT / page).read_text(encoding="utf-8")), printed(page)
    assert len(wanted) > 30
    assert any(found[k : k + len(wanted)] == wanted for k in range(len(found)))


def test_the_column_to_be_read_is_among_those_that_a_narrow_screen_shows() -> None:
    header = next(line for line in rows((ROOT / "docs/results/exact-margin.md").read_text(encoding="utf-8")))
    assert {"cpu s", "limit"} <= set(header.strip("| ").split(" | ")[:6])


def test_no_table_says_of_one_set_what_the_process_used_for_all_before_it() -> None:
    assert not any("MB" in line for line in printed("docs/margin-hybrid.md"))
