"""The command as a process: help without heavy imports, pipes, signals, and a missing extra."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import marginbayes
from marginbayes.cli.app import app
from tests.cli.conftest import Run

COMMANDS = [
    [],
    ["fit"],
    ["predict"],
    ["evaluate"],
    ["show"],
    ["explain"],
    ["convert"],
    ["data"],
    ["data", "list"],
    ["data", "where"],
    ["data", "fetch"],
    ["verify"],
    ["study"],
    ["study", "run"],
    ["study", "plan"],
    ["report"],
]
HEAVY = ("numba", "pandas", "matplotlib", "sklearn", "scipy", "numpy", "narwhals")


def process(*words: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command (or a line of Python before it) in a process of its own."""
    start = ["-m", "marginbayes"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_help_shows_an_example_that_names_the_command(words: list[str]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="marginbayes")
    assert result.exit_code == 0
    assert " ".join(["Example: marginbayes", *words]) in " ".join(result.stdout.split())


def test_saying_nothing_shows_the_help() -> None:
    result = CliRunner().invoke(app, [], prog_name="marginbayes")
    assert "Usage: marginbayes" in result.output
    assert "Error" not in result.output


def test_the_version_is_that_of_the_package() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout) == (0, f"marginbayes {marginbayes.__version__}\n")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from marginbayes.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        f"    print('loaded', [m for m in {HEAVY!r} if m in sys.modules])\n"
    )
    assert process("--help", code=code).stdout.splitlines()[-1] == "loaded []"


@pytest.mark.parametrize("name", ["typer", "rich"])
def test_without_the_extra_one_sentence_names_it(name: str) -> None:
    code = f"import sys; sys.modules[{name!r}] = None\nfrom marginbayes.cli import main\nmain()"
    done = process("--help", code=code)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f'Error: the command line needs {name}: pip install "marginbayes[cli]"\n'


def test_bad_input_is_one_line_and_exit_code_2() -> None:
    done = process("fit", "nowhere.csv", "--target", "y")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: there is no file nowhere.csv\n"


def test_fit_and_predict_work_as_processes(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    fitted = process("fit", table, "--target", "outcome", "--model", model)
    assert (fitted.returncode, fitted.stderr) == (0, "")
    done = process("predict", model, table)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 241


def test_letters_that_the_terminal_lacks_do_not_stop_a_command(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "greek.csv"
    path.write_text(table.read_text("utf-8").replace("ward", "στάθμη"), "utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    words = [sys.executable, "-m", "marginbayes", "fit", str(path), "--target", "outcome"]
    done = subprocess.run(words, capture_output=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0
    assert b"??????" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["fit", "--help"], ["data", "where", "iris"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_no_room_for_what_is_printed_is_one_sentence(words: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "marginbayes", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device: what is printed\n")


@pytest.mark.filterwarnings(r"default:\d+ of \d+ rows have a missing cell")
@pytest.mark.parametrize(
    "words",
    [
        ["fit", "TABLE", "-t", "outcome", "--model", "OUT.json"],
        ["fit", "TABLE", "-t", "outcome", "-s", "exact-mdl", "--certificate", "OUT.json"],
        ["predict", "MODEL", "TABLE", "-o", "OUT.csv"],
        ["evaluate", "TABLE", "-t", "outcome", "--json", "OUT.json"],
        ["convert", "MODEL", "OUT.bif"],
        ["show", "MODEL", "--plot", "OUT.svg"],
        ["explain", "MODEL", "TABLE", "--plot", "OUT.png"],
    ],
)
def test_no_room_for_a_file_names_it(
    run: Run, model: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    places = {"TABLE": str(table), "MODEL": str(model), "OUT": str(tmp_path / "out")}
    asked = [word.replace("OUT", places["OUT"]) if "OUT" in word else places.get(word, word) for word in words]
    told = run(*asked, code=2).stderr
    assert told == f"Error: No space left on device: {next(word for word in asked if 'out.' in word)}\n"


def test_a_reader_that_goes_away_is_no_error(model: Path, table: Path) -> None:
    words = [sys.executable, "-m", "marginbayes", "predict", str(model), str(table), "--proba"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert "Traceback" not in running.stderr.read()
        assert running.wait(60) in (0, 1)


def test_progress_stays_away_from_a_file(run: Run, table: Path) -> None:
    assert run("evaluate", table, "-t", "outcome").stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither pseudo-terminals nor SIGINT for others")
def test_control_c_in_a_terminal_keeps_the_folds_that_are_done(tmp_path: Path) -> None:
    out = tmp_path / "e.json"
    words = ["evaluate", "digits", "-s", "nb", "-s", "tan", "--repeats", "1000", "--json", str(out)]
    screen, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "marginbayes", *words], stdout=subprocess.PIPE, stderr=terminal, text=True
    ) as running:
        os.close(terminal)
        shown = _read_until(screen, b"evaluating tan")
        running.send_signal(signal.SIGINT)
        assert running.stdout is not None
        printed = running.stdout.read()
        shown += _read_until(screen, None)
        assert running.wait(60) == 130
    os.close(screen)
    assert b"Traceback" not in shown
    assert b"interrupted; the numbers are those of the" in b" ".join(shown.split())
    assert "tan against nb" in printed
    assert json.loads(out.read_text("utf-8"))["complete"] is False
    assert [path.name for path in tmp_path.iterdir()] == ["e.json"]


def _read_until(screen: int, words: bytes | None) -> bytes:
    """What appears on a pseudo-terminal until these words are among it, or until it is closed."""
    shown = b""
    while words is None or words not in shown:
        try:
            shown += os.read(screen, 4096)
        except OSError:  # the other end is closed
            assert words is None, shown
            break
    return shown
