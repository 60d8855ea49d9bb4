"""Every example of the documentation is run, and prints what the page says it prints.

How a page is read is described in CONTRIBUTING.md, "Examples in the documentation".
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import marginbayes

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

SHELL = ("bash", "console", "sh", "shell")
FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)[^`]*")
MARK = re.compile(r" *<!-- (not run|output varies) -->")
RAISED = re.compile(r"\w*(Error|Exception|Warning): ")
# How long something took differs from run to run.
SECONDS = re.compile(r"\d+(\.\d+)? (m?s)\b")
# Raised while others are imported; pyAgrum's importer crashes when the second one is an error.
FOREIGN = (
    {"category": FutureWarning, "module": r"pgmpy\."},
    {"category": DeprecationWarning, "message": "builtin type .* has no __module__"},
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its text, its first line there, and the mark before it."""

    language: str
    text: str
    line: int
    mark: str = ""
    output: str = ""


def read_blocks(page: str) -> list[Block]:
    """The blocks of a page in order; a `text` block right after one that runs becomes its output."""
    found: list[Block] = []
    between, mark = True, ""
    lines = enumerate(page.splitlines(), 1)
    for number, line in lines:
        opening = FENCE.fullmatch(line)
        if opening is None:
            between, mark = between or bool(line.strip()), _mark(line, mark)
            continue
        text = "\n".join(_until(opening["ticks"], lines))
        if opening["language"] == "text" and not between:
            previous = found.pop()
            block = Block(previous.language, previous.text, previous.line, previous.mark, _tidy(dedent(text)))
        else:
            block = Block(opening["language"], dedent(text), number + 1, mark)
        found.append(block)
        between, mark = False, ""
    return found


def _mark(line: str, mark: str) -> str:
    """The mark that stands directly above a block, blank lines aside."""
    marked = MARK.fullmatch(line)
    if marked:
        return str(marked[1])
    return "" if line.strip() else mark


def _until(ticks: str, lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == ticks:
            return
        yield line


def _tidy(output: str) -> str:
    """Output without blanks at the ends of lines, blank lines at the ends, and measured times."""
    lines = [SECONDS.sub(r"# \2", line.rstrip()) for line in output.splitlines()]
    return "\n".join(lines).strip("\n")


# -- running


def run_page(page: Path) -> None:
    """Run the blocks of a page one after the other; the first that does not do as it says fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in read_blocks(page.read_text("utf-8")):
        if block.mark == "not run" or block.language not in ("python", *SHELL):
            continue
        printed = _run_python(block, names, page) if block.language == "python" else _run_shell(block, page)
        if printed is not None and block.mark != "output varies":
            assert _tidy(printed) == block.output, f"{page.name}, line {block.line}"


def _run_python(block: Block, names: dict[str, Any], page: Path) -> str:
    """What a block prints; an exception is the last line where the page shows one there."""
    # Blank lines in front make the line numbers of a traceback those of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    expects_error = RAISED.match(block.output.splitlines()[-1]) if block.output else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(code, names)
        except Exception as error:
            if not expects_error:
                raise
            printed.write(f"{type(error).__name__}: {error}\n")
    return printed.getvalue()


def _run_shell(block: Block, page: Path) -> str | None:
    """What the `marginbayes` commands of a block print, on stdout or stderr; None if it has none."""
    from marginbayes.cli.app import app
    from typer.testing import CliRunner

    printed = None
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] != ["marginbayes"]:
            continue
        result = CliRunner().invoke(app, words[1:], prog_name="marginbayes")
        printed = (printed or "") + result.output
        refused = block.output.startswith("Error: ")
        assert result.exit_code == (2 if refused else 0), f"{page.name}, line {block.line}: {line}\n{result.output}"
    return printed


@pytest.fixture
def quiet_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty working directory, no data home, an empty cache, a terminal of fixed width, warnings as errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARGINBAYES_DATA", raising=False)
    monkeypatch.setenv("MARGINBAYES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for name, value in (("COLUMNS", "92"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings(), np.printoptions():
        warnings.simplefilter("error")
        for choice in FOREIGN:
            warnings.filterwarnings("ignore", **choice)
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("quiet_place")
def test_every_example_runs_and_prints_what_the_page_says(page: Path) -> None:
    run_page(page)


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "api.md").read_text("utf-8")
    missing = [name for name in marginbayes.__all__ if not re.search(rf"marginbayes\.(\w+\.)*{name}\b", reference)]
    assert not missing


# -- the reader itself


def check(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(dedent(text), "utf-8")
    run_page(page)


def test_a_number_that_went_stale_is_noticed(tmp_path: Path) -> None:
    check("```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n", tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md, line 2"):
        check("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", tmp_path)


def test_an_output_that_the_page_does_not_show_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check("```python\nprint(1)\n```\n\nProse in between.\n\n```text\n1\n```\n", tmp_path)
    check("<!-- output varies -->\n```python\nprint(1)\n```\n", tmp_path)
    check("<!-- not run -->\n```python\nprint(never_defined)\n```\n", tmp_path)


def test_an_error_must_be_the_one_that_the_page_shows(tmp_path: Path) -> None:
    raising = "```python\nint('x')\n```\n"
    shown = "```text\nValueError: invalid literal for int() with base 10: 'x'\n```\n"
    check(raising + shown, tmp_path)
    with pytest.raises(AssertionError):
        check("```python\nint('1')\n```\n" + shown, tmp_path)
    with pytest.raises(ValueError, match="invalid literal"):
        check(raising, tmp_path)


def test_the_blocks_of_a_page_share_their_names_and_indented_ones_are_run_too(tmp_path: Path) -> None:
    check("```python\na = 1\n```\n\n1. Then:\n\n    ```python\n    print(a)\n    ```\n    ```text\n    1\n    ```\n", tmp_path)


@pytest.mark.usefixtures("quiet_place")
def test_a_command_must_end_well_unless_the_page_shows_its_error(tmp_path: Path) -> None:
    check("```bash\npip install marginbayes\nmarginbayes data where iris\n```\n```text\n"
          "scikit-learn, sklearn.datasets.load_iris()\n```\n", tmp_path)  # fmt: skip
    wrong = "```bash\n$ marginbayes data where irisch\n```\n"
    check(wrong + "```text\nError: there is no data set 'irisch'; did you mean 'iris' or 'digits'?\n```\n", tmp_path)
    with pytest.raises(AssertionError, match="line 2: "):
        check(wrong, tmp_path)
