"""Every example of the documentation is run, and prints what the page says it prints.

How a page is read is described in CONTRIBUTING.md, "Examples in the documentation". To put the present output
into pages: `python -m tests.test_docs docs/data.md ...`; then read the difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

import marginbayes

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

SHELL = ("bash", "console", "sh", "shell")
FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)[^`]*")
MARK = re.compile(r" *<!-- (not run|output varies) -->")
RAISED = re.compile(r"\w*(Error|Exception|Warning): ")
# How long something took differs from run to run.
TIME = re.compile(r"\d+(\.\d+)? (m?s)\b")
# Raised while others are imported; pyAgrum's importer crashes when the second one is an error.
FOREIGN: tuple[dict[str, Any], ...] = (
    {"category": FutureWarning, "module": r"pgmpy\."},
    {"category": DeprecationWarning, "message": "builtin type .* has no __module__"},
)


# -- reading


@dataclass(frozen=True)
class Block:
    """A fenced block of a page with the mark before it, and the output that follows it.

    `line` and `output_line` are the line numbers of the first line inside each; 0: there is no output.
    """

    language: str
    text: str
    line: int
    mark: str = ""
    output: str = ""
    output_line: int = 0
    indent: str = ""


def read_blocks(page: str) -> list[Block]:
    """The blocks of a page in order; a `text` block right after one that runs becomes its output."""
    found: list[Block] = []
    apart, mark = True, ""
    lines = enumerate(page.splitlines(), 1)
    for number, line in lines:
        opening = FENCE.fullmatch(line)
        if opening is None:
            apart, mark = apart or bool(line.strip()), _mark(line, mark)
            continue
        text = dedent("\n".join(_until(opening["ticks"], lines)))
        if opening["language"] == "text" and not apart:
            found[-1] = replace(found[-1], output=text, output_line=number + 1, indent=opening["indent"])
        else:
            found.append(Block(opening["language"], text, number + 1, mark))
        apart, mark = opening["language"] not in ("python", *SHELL), ""
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


def tidy(output: str) -> str:
    """Output without measured times, blanks at the ends of lines, and blank lines at its own ends."""
    return "\n".join(map(_untimed, output.splitlines())).strip("\n")


def _untimed(line: str) -> str:
    if re.search(r"\bseconds\b", line):
        return re.sub(r"\d+(\.\d+)?", "#", " ".join(line.split()))
    return TIME.sub(r"# \2", line).rstrip()


# -- running


def run_page(page: Path) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in order, in one namespace; each block that runs, with what it printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in read_blocks(page.read_text("utf-8")):
        if block.mark == "not run":
            continue
        if block.language == "python":
            yield block, _run_python(block, names, page)
        elif block.language in SHELL and (commands := list(_commands(block))):
            yield block, _run_commands(commands, block, page)


def _run_python(block: Block, names: dict[str, Any], page: Path) -> str:
    """What a block prints; an exception is its last line where the page shows one there."""
    # Blank lines in front make the line numbers of a traceback those of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    raises = block.output and RAISED.match(block.output.splitlines()[-1])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(code, names)
        except Exception as error:
            if not raises:
                raise
            printed.write(f"{type(error).__name__}: {error}\n")
    return printed.getvalue()


def _commands(block: Block) -> Iterator[list[str]]:
    """The words of each `marginbayes` command of a block; other commands are not run."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["marginbayes"]:
            yield words


def _run_commands(commands: list[list[str]], block: Block, page: Path) -> str:
    """What the commands print on stdout and stderr. They must end well unless the page shows an error."""
    from typer.testing import CliRunner

    from marginbayes.cli.app import app

    results = [CliRunner().invoke(app, words[1:], prog_name="marginbayes") for words in commands]
    printed = "".join(result.output for result in results)
    code = 2 if block.output.startswith("Error: ") else 0
    assert [r.exit_code for r in results] == [code] * len(results), f"{page.name}, line {block.line}:\n{printed}"
    return printed


@contextlib.contextmanager
def quiet_place(folder: Path) -> Iterator[None]:
    """A working directory, no data home, an empty cache, a terminal of fixed width, warnings as errors."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), np.printoptions():
        patch.chdir(folder)
        patch.delenv("MARGINBAYES_DATA", raising=False)
        patch.setenv("MARGINBAYES_CACHE", str(folder / "cache"))
        for name, value in (("MPLBACKEND", "Agg"), ("COLUMNS", "92"), ("NO_COLOR", "1"), ("TERM", "dumb")):
            patch.setenv(name, value)
        warnings.simplefilter("error")
        for choice in FOREIGN:
            warnings.filterwarnings("ignore", **choice)
        yield


def check_page(page: Path, folder: Path) -> None:
    """Fail at the first block that does not print what the page says."""
    with quiet_place(folder):
        for block, printed in run_page(page):
            if block.mark != "output varies":
                assert tidy(printed) == tidy(block.output), f"{page.name}, line {block.line}"


def rewrite_page(page: Path) -> None:
    """Put what the blocks print now into a page, where it has a place for it."""
    with tempfile.TemporaryDirectory() as folder, quiet_place(Path(folder)):
        runs = list(run_page(page))
    lines = page.read_text("utf-8").splitlines()
    for block, printed in reversed(runs):
        if block.output_line and tidy(printed) != tidy(block.output):
            start = block.output_line - 1
            new = [line.rstrip() for line in printed.strip("\n").splitlines()]
            lines[start : start + len(block.output.splitlines())] = indent("\n".join(new), block.indent).split("\n")
    page.write_text("\n".join(lines) + "\n", "utf-8")


# -- the pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    check_page(page, tmp_path)
    for picture in tmp_path.glob("*.svg"):
        shown = DOCS / "img" / picture.name
        if shown.is_file():
            assert _texts(shown) == _texts(picture), f"docs/img/{picture.name} is out of date; copy it from {picture}"


def _texts(picture: Path) -> list[str]:
    """All that an SVG picture says in words and numbers; where it says it is a matter of taste."""
    return sorted(re.findall(r"<(?:title|text)[^>]*>([^<]*)<", picture.read_text("utf-8")))


def test_every_picture_on_a_page_is_made_on_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    for picture in (DOCS / "img").glob("*"):
        assert f'"{picture.name}"' in text, f"no example writes docs/img/{picture.name}"


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {marginbayes.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_public_name_is_in_the_reference() -> None:
    reference = (DOCS / "api.md").read_text("utf-8")
    missing = [name for name in marginbayes.__all__ if not re.search(rf"marginbayes\.(\w+\.)*{name}\b", reference)]
    assert not missing


def test_the_command_line_page_names_exactly_the_options_there_are() -> None:
    import typer

    from marginbayes.cli.app import app

    page = (DOCS / "command-line.md").read_text("utf-8")
    group: Any = typer.main.get_command(app)
    inner = [command for name in ("data", "study") for command in group.commands[name].commands.values()]
    commands = [group, *group.commands.values(), *inner]
    known = {word for command in commands for option in command.params for word in option.opts if word[:2] == "--"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page))
    assert named - known <= {"--help"}
    assert known - named <= {"--help", "--version", "--install-completion", "--show-completion"}


# -- the reader itself


def check(text: str, folder: Path) -> None:
    (folder / "page.md").write_text(text, "utf-8")
    check_page(folder / "page.md", folder)


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


def test_a_warning_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserWarning, match="careful"):
        check("```python\nimport warnings\nwarnings.warn('careful', stacklevel=1)\n```\n", tmp_path)


def test_the_blocks_of_a_page_share_their_names_and_indented_ones_are_run_too(tmp_path: Path) -> None:
    inner = "    ```python\n    print(a)\n    ```\n    ```text\n    1\n    ```\n"
    check(f"```python\na = 1\n```\n\n1. Then:\n\n{inner}", tmp_path)


def test_times_are_not_compared_but_all_else_is(tmp_path: Path) -> None:
    shown = "```text\ndone 5 times in 9.99 s\nfit, seconds   0.1    23.4\n```\n"
    check("```python\nprint('done 5 times in 0.01 s\\nfit, seconds  12.0     0.4')\n```\n" + shown, tmp_path)
    with pytest.raises(AssertionError):
        check("```python\nprint('done 6 times in 0.01 s\\nfit, seconds  12.0     0.4')\n```\n" + shown, tmp_path)


def test_a_command_must_end_well_unless_the_page_shows_its_error(tmp_path: Path) -> None:
    where = "```bash\npip install marginbayes\nmarginbayes data where iris\n```\n"
    check(f"{where}```text\nscikit-learn, sklearn.datasets.load_iris()\n```\n", tmp_path)
    wrong = "```bash\n$ marginbayes data where irisch\n```\n"
    check(f"{wrong}```text\nError: there is no data set 'irisch'; did you mean 'iris' or 'digits'?\n```\n", tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md, line 2:\s+Error: there is no data set"):
        check(wrong, tmp_path)


def test_rewriting_puts_in_what_is_printed_now_and_changes_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "```python\nprint('1\\n2')\n```\n\n```text\n{}\n```\nB\n\n ```python\n print(3)\n ```\n ```text\n{}\n ```\n"
    page.write_text(text.format("old", " old\n lines"), "utf-8")
    rewrite_page(page)
    assert page.read_text("utf-8") == text.format("1\n2", " 3")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        rewrite_page(Path(os.path.abspath(argument)))
