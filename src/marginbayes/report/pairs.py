"""Methods two by two: on how many sets one beats the other, and whether it does over all of them; ranks; times."""

from __future__ import annotations

from marginbayes.report.grid import Entry, Grid, Row, entry
from marginbayes.report.results import Findings
from marginbayes.study.statistics import Ranking

__all__ = ["published_wins_grid", "rank_grid", "significance_grid", "times_grid", "wins_grid"]

TEST = "at 68 % / 95 %: one-sided paired t-test over folds, one-sided binomial test on a test set."


def wins_grid(outcome: Findings) -> Grid:
    """How often the method of the row beats that of the column."""
    caption = f"Number of data sets, of all that both finished, on which the row beats the column {TEST}"
    return _wins_grid("Wins", caption, outcome, outcome.methods, {}, as_published=False)


def published_wins_grid(outcome: Findings) -> Grid:
    """The same for the methods that the paper counts, on the sets for which it has a number of both."""
    counted = outcome.experiment.extra.get("wins", {"methods": [], "rows": []})
    names = counted["methods"]
    theirs = {(a, b): tuple(counted["rows"][i][j]) for i, a in enumerate(names) for j, b in enumerate(names)}
    caption = (
        "Number of data sets, of those that both finished and for which the paper has a number of both, on which the "
        f"row beats the column {TEST}"
    )
    methods = [m for m in names if m in outcome.methods]
    return _wins_grid("Wins beside the paper", caption, outcome, methods, theirs, as_published=True)


def _wins_grid(
    title: str,
    caption: str,
    outcome: Findings,
    methods: list[str],
    theirs: dict[tuple[str, str], tuple[int, ...]],
    as_published: bool,
) -> Grid:
    rows = []
    for first in methods if len(methods) > 1 else ():
        shown = []
        for second in methods:
            if first == second:
                shown.append(Entry("—"))
                continue
            some, sure = outcome.wins(first, second, as_published)
            published = "/".join(map(str, theirs.get((first, second), ())))
            records = outcome.shared_records(first, second, as_published=as_published)
            shown.append(Entry(f"{some}/{sure}", published, records, some))
        rows.append(Row((first,), tuple(shown)))
    return Grid(title, caption, ("", *methods), tuple(rows))


def significance_grid(outcome: Findings) -> Grid:
    """P-value of each pair over the data sets, with an arrow to the better one, and as published."""
    about = outcome.experiment.extra.get("significance", {"methods": []})
    methods = [m for m in about["methods"] if m in outcome.methods]
    rows = []
    for i, first in enumerate(methods[:-1]):
        shown = [_significance(outcome, first, second) for second in methods[i + 1 :]]
        rows.append(Row((first,), (*(Entry() for _ in range(i)), *shown)))
    caption = (
        "One-sided paired t-test over data sets; the arrow points to the better method, up to the column's, left to "
        f"the row's, and is double at 0.05. {about.get('note', '')}".rstrip()
    )
    return Grid("Differences over all sets", caption, ("", *methods[1:]), tuple(rows))


def _significance(outcome: Findings, first: str, second: str) -> Entry:
    p, arrow = outcome.significance(first, second)
    theirs = outcome.experiment.extra["significance"]["rows"].get(first, {}).get(second)
    published = "" if theirs is None else str(theirs)
    return Entry(f"{arrow} {p:.2g}".strip(), published, outcome.shared_records(first, second), p)


def rank_grid(found: Ranking, outcome: Findings) -> Grid:
    """Mean ranks, the best first."""
    records = dict(zip(outcome.methods, outcome.shared_records(*outcome.methods), strict=True))
    order = sorted(found.ranks, key=lambda m: found.ranks[m])
    rows = [Row((m,), (entry(f"{found.ranks[m]:.2f}", records[m]),)) for m in order]
    caption = (
        f"Mean ranks over the {found.n_sets} sets that all methods finished (Friedman, Nemenyi; Demšar 2006). Methods "
        f"less than {found.critical:.2f} apart do not differ significantly."
    )
    return Grid("Ranks", caption, ("method", "mean rank"), tuple(rows))


def times_grid(outcome: Findings) -> Grid:
    """Seconds of structure learning in per cent of the last method's, as a paper prints them."""
    methods, published = outcome.methods, outcome.experiment.published
    rows = []
    for name, shares in outcome.relative_times().items():
        shown = []
        for method in methods:
            theirs = published.get(name, method) if published else None
            text, records = f"{shares[method]:.2f} %", outcome.timed(name, method)
            shown.append(entry(text, records, f"{theirs[0]:g} %" if theirs else "", shares[method]))
        rows.append(Row((name,), tuple(shown)))
    caption = "Seconds of structure learning, relative to the last method."
    return Grid("", caption, ("data", *methods), tuple(rows))
