"""Tables of seconds and ratios: the first contestant is the one that the others are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from _timing import Contestant, race

__all__ = ["Result", "compare", "summary"]

WIDTH = 60


@dataclass(frozen=True)
class Result:
    """One line of a table; a ratio is the time a row takes, divided by what it takes the first contestant."""

    part: str
    data: str
    contestant: str
    seconds: float
    cpu: float
    runs: int
    rows: int
    ratio: float
    cpu_ratio: float
    wanted: float | None

    @property
    def missed(self) -> bool:
        """Whether there is a ratio that is wanted and not reached."""
        return self.wanted is not None and self.ratio < self.wanted

    @property
    def line(self) -> str:
        """Text of the line."""
        verdict = "" if self.wanted is None else f"{self.wanted:8g}  {'MISSED' if self.missed else 'reached'}"
        return (
            f"  {self.contestant:<{WIDTH}}{self.seconds:10.4f}{self.cpu:10.4f}{self.runs:6d}"
            f"{self.rows / self.seconds:12,.0f}{self.ratio:9.1f}{self.cpu_ratio:11.1f}{verdict}"
        )


def compare(
    part: str, title: str, data: str, contestants: Sequence[Contestant], rounds: int, seconds: float
) -> list[Result]:
    """Results of a race, printed as a table."""
    print(f"\n{title}")
    print(
        f"  {'':<{WIDTH}}{'seconds':>10}{'cpu':>10}{'runs':>6}{'rows/s':>12}{'ratio':>9}{'cpu ratio':>11}{'wanted':>8}"
    )
    timings = race(contestants, rounds, seconds)
    ours, unit = timings[0], contestants[0].rows
    results = []
    for who, time in zip(contestants, timings, strict=True):
        share = unit / who.rows
        ratios = share * time.seconds / ours.seconds, share * time.cpu / max(ours.cpu, 1e-9)
        results.append(
            Result(part, data, who.name, time.seconds, time.cpu, time.runs, who.rows, *ratios, wanted=who.wanted)
        )
        print(results[-1].line, flush=True)
    return results


def summary(results: Sequence[Result]) -> None:
    """Print how many of the wanted ratios were reached, and which were not."""
    wanted = [r for r in results if r.wanted is not None]
    missed = [r for r in wanted if r.missed]
    print(f"\n{len(wanted) - len(missed)} of {len(wanted)} wanted ratios reached.")
    for r in missed:
        print(f"  missed: {r.part}, {r.data}, {r.contestant}: {r.ratio:.1f} of {r.wanted:g}")
