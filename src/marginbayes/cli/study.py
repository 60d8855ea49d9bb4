"""`marginbayes study` and `marginbayes report`: published tables, run again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marginbayes.cli.console import cell, errors, grid, output, say

if TYPE_CHECKING:
    from marginbayes.study import Record, Records, Study
    from marginbayes.study.plan import Plan

__all__ = ["report", "study"]

INCOMPLETE = 1  # the exit code of a run in which tasks failed

study = typer.Typer(
    no_args_is_help=True,
    help="Published tables and figures, run again.\n\nExample: `marginbayes study run studies/peharz2012.toml --quick`",
)

File = Annotated[Path, typer.Argument(metavar="STUDY", help="A study (.toml).", show_default=False)]
Folder = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Folder of the records [default: runs/STUDY].", show_default=False),
]
Quick = Annotated[bool, typer.Option("--quick", help="Only the part that ends in minutes.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="Tasks at a time; -1 for all cores.")]
Longest = Annotated[
    float | None,
    typer.Option("--longest", metavar="SECONDS", help="Leave out tasks expected to take longer.", show_default=False),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget", metavar="SECONDS", help="Give a task up after so long.", show_default=False),
]
Retry = Annotated[bool, typer.Option("--retry", help="Once more what failed or was given up.")]
Experiments = Annotated[
    list[str] | None,
    typer.Option("--experiment", "-e", metavar="NAME", help="Only these experiments.", show_default=False),
]
Sets = Annotated[
    list[str] | None, typer.Option("--data", metavar="NAME", help="Only these data sets.", show_default=False)
]
Methods = Annotated[
    list[str] | None, typer.Option("--method", metavar="NAME", help="Only these methods.", show_default=False)
]


@study.command()
def run(
    file: File,
    out: Folder = None,
    quick: Quick = False,
    jobs: Jobs = 1,
    longest: Longest = None,
    budget: Budget = None,
    retry: Retry = False,
    experiment: Experiments = None,
    set_: Sets = None,
    method: Methods = None,
) -> None:
    """Run what is left of a study; every finished task is kept, whatever happens. Data sets that are not here are
    skipped.

    Example: `marginbayes study run studies/peharz2012.toml --quick`
    """
    from marginbayes.study import Records, load_study
    from marginbayes.study import run as perform
    from marginbayes.study.plan import plan

    _check_amounts(jobs, longest, budget)
    chosen = _chosen(load_study(file), quick, experiment, set_, method)
    records = Records(_folder(file, out))
    _keep(file, records.path.parent)
    _announce(chosen, plan(chosen, records.by_key(), longest, retry), jobs, 0 if retry else _lost(chosen, records))
    left = perform(chosen, records, n_jobs=jobs, longest=longest, budget=budget, retry=retry, progress=_show)
    lost = _lost(chosen, records)
    output().print(
        f"{left.done - lost} tasks done{_told(lost)}, {len(left.left)} left; records in {records.path}", soft_wrap=True
    )
    if lost:
        raise typer.Exit(INCOMPLETE)


@study.command("plan")
def show_plan(
    file: File,
    out: Folder = None,
    quick: Quick = False,
    longest: Longest = None,
    experiment: Experiments = None,
    set_: Sets = None,
    method: Methods = None,
) -> None:
    """Show what is left of a study and how long it may take.

    Example: `marginbayes study plan studies/peharz2012.toml`
    """
    from marginbayes.study import Records, load_study
    from marginbayes.study.plan import plan

    _check_amounts(1, longest, None)
    chosen = _chosen(load_study(file), quick, experiment, set_, method)
    work = plan(chosen, Records(_folder(file, out)).by_key(), longest)
    table = grid("experiment", "method", "tasks", "expected", right=("tasks", "expected"))
    for (name, which), (count, seconds) in _by_method(work).items():
        table.add_row(cell(name), cell(which), str(count), _duration(seconds))
    output().print(table)
    _announce(chosen, work, 1, _lost(chosen, Records(_folder(file, out))))


def _check_amounts(jobs: int, longest: float | None, budget: float | None) -> None:
    """Refuse numbers with which nothing would be run, or nothing limited."""
    if jobs == 0:
        raise ValueError("--jobs 0 leaves nobody to do the work; say 1 or more, or -1 for all cores")
    for option, seconds in (("--longest", longest), ("--budget", budget)):
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"{option} {seconds:g} is no time to wait; say a number of seconds above zero")


def _lost(chosen: Study, records: Records) -> int:
    """Number of tasks that failed or were given up."""
    known = records.by_key()
    return sum(known[task.key].status != "done" for task in chosen.tasks() if task.key in known)


def _told(lost: int) -> str:
    return f", {lost} failed or given up (--retry runs them once more)" if lost else ""


def _chosen(
    whole: Study, quick: bool, experiments: list[str] | None, sets: list[str] | None, methods: list[str] | None
) -> Study:
    from marginbayes.study.doubts import doubts, present

    asked = whole.only(experiments or ())
    part, absent = present((asked.shortened() if quick else asked).only((), sets or (), methods or ()))
    if absent:
        lacking = f"{', '.join(map(repr, absent))}; MARGINBAYES_DATA names the folder for them"
        if not part.experiments:
            raise ValueError(f"none of the data sets asked for is here: {lacking}")
        say(errors(), f"Note: skipped, data sets that are not here: {lacking}")
    for doubt in doubts(part):
        say(errors(), f"Note: these tasks will fail: {doubt}")
    return part


def _keep(file: Path, folder: Path) -> None:
    """Leave a copy of the study beside its records, for reports."""
    from marginbayes.writing import write_text

    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / file.name, file.read_text("utf-8"))


def _check_own(chosen: Study, records: Records, file: Path) -> None:
    """Refuse records none of which is of a task of the study: they are those of another."""
    known = records.by_key()
    if known and not any(task.key in known for task in chosen.tasks()):
        raise ValueError(
            f"none of the {len(known)} records in {records.path.parent} is of a task of {file}; name the folder of its "
            "own run by --run"
        )


def _kept(folder: Path) -> Path:
    """The study of a run."""
    found = sorted(folder.glob("*.toml"))
    if len(found) != 1:
        raise ValueError(
            f"{folder} holds {len(found)} studies (.toml), not one; name the study, and the folder by --run"
        )
    return found[0]


def _folder(file: Path, out: Path | None) -> Path:
    return out or Path("runs") / file.stem


def _announce(chosen: Study, work: Plan, jobs: int, lost: int = 0) -> None:
    from joblib import effective_n_jobs

    text = (
        f"{chosen.title}: {work.done - lost} tasks done{_told(lost)}, {len(work.left)} to run, "
        f"about {_duration(work.seconds)} on one core"
    )
    at_once = effective_n_jobs(jobs)
    say(errors(), text if at_once == 1 else f"{text}, {at_once} at a time")


def _by_method(work: Plan) -> dict[tuple[str, str], tuple[int, float]]:
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for task, seconds in work.left:
        count, total = found.get((task.experiment, task.method.name), (0, 0.0))
        found[task.experiment, task.method.name] = count + 1, total + seconds
    return found


def _show(record: Record, finished: int, total: int, rest: float) -> None:
    said = record.status
    if record.status == "done" and "accuracy" in record.result:
        said = f"{100 * record.result['accuracy']:.2f} %"
    elif record.status == "failed":
        said = record.result["error"]
    place = f"{record.experiment} {record.dataset} {record.method} {record.split}"
    say(errors(), f"{finished}/{total}, {_duration(rest)} left: {place}: {said} in {record.seconds:.1f} s")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def report(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="Folder of a run, or a study (.toml) whose run is in runs/STUDY.", show_default=False
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="Folder of the records of a study, if another.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page (.html), or a summary (.md).")
    ] = Path("report.html"),
    quick: Quick = False,
) -> None:
    """Write the report of a study: a page for the browser, or a summary in Markdown.

    Example: `marginbayes report runs/peharz2012 -o report.html`
    """
    from marginbayes.cli.models import check_writable
    from marginbayes.report import summary, write_report
    from marginbayes.study import Records, load_study
    from marginbayes.writing import write_text

    check_writable(out, [".html", ".htm", ".md"])
    if file.is_dir():
        file, run = _kept(file), run or file
    whole = load_study(file)
    chosen = whole.shortened() if quick else whole
    records = Records(_folder(file, run))
    if not records.path.exists():
        raise ValueError(
            f"there are no records in {records.path.parent}; run the study first, or name its folder by --run"
        )
    _check_own(chosen, records, file)
    if out.suffix.lower() == ".md":
        write_text(out, summary(chosen, records))
    else:
        write_report(chosen, records, out)
    output().print(f"{out} written", soft_wrap=True)
