"""Protein secondary structure, as in Guo, Wilkinson & Schuurmans (2005), section 9 and Figure 10.

Each residue has one of three labels (helix, strand, coil), predicted from a window of 7 residues and the neighbouring
labels; Q3 is the share of residues whose label is right. The data sets `protein-qs` (Qian & Sejnowski 1988) and `cb513`
(of which the residues of the CB513 mask are used: one stretch of each protein) have to be in the data home.

- By size: a repetition takes sequences at random until they have enough residues to train on, and tests on all others.
- Whole: once on all residues of the training sequences, those of the set's own split or else a random half, tested on
  the others.

Run it with `python examples/protein.py` (20 repetitions; an hour) or, to try it,
`python examples/protein.py --sets protein-qs --sizes 1000 --repetitions 2 --no-whole`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _labelers import Outcome, choose, contestants, measure, table

from marginbayes import datasets


def is_here(name: str) -> bool:
    """Whether the set can be loaded."""
    try:
        datasets.where(name)
    except ValueError:
        return False
    return True


def load(name: str) -> tuple[Any, Any, np.ndarray]:
    """Residues with the id of their sequence in front, labels, and which rows a whole run trains on."""
    data = datasets.load(name)
    X = data.X[["residue"]].assign(seq_id=data.ids["seq_id"].astype(str).to_numpy())[["seq_id", "residue"]]
    kept = np.ones(len(X), bool)
    if "in_cb513" in data.ids:
        kept = data.ids["in_cb513"].astype(str).to_numpy() == "1"
    if data.train is None:
        names = np.random.default_rng(0).permutation(X["seq_id"].unique())
        train = X["seq_id"].isin(names[::2]).to_numpy()
    else:
        train = np.isin(np.arange(len(X)), data.train)
    return X[kept].reset_index(drop=True), data.y[kept].reset_index(drop=True), train[kept]


def drawn(X: Any, residues: int, seed: int) -> np.ndarray:
    """Rows of random sequences with at least so many residues."""
    names = np.random.default_rng(seed).permutation(X["seq_id"].unique())
    sizes = X["seq_id"].value_counts()[names].cumsum().to_numpy()
    return X["seq_id"].isin(names[: int(np.searchsorted(sizes, residues)) + 1]).to_numpy()


def compete(window: int, X: Any, y: Any, tune: np.ndarray, parts: list[np.ndarray]) -> dict[str, list[Outcome]]:
    """Outcomes of all contestants; as in the paper, strengths are chosen on one training set and then fixed."""
    found = {}
    for who in contestants("seq_id", window, literal=False):
        make = choose(who, X[tune], y[tune], "seq_id")
        found[who.name] = [measure(make, (X[own], y[own]), (X[~own], y[~own]), "seq_id") for own in parts]
    return found


def main() -> None:
    """Print the tables of each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 3000, 10_000], help="residues to train on")
    parser.add_argument("--window", type=int, default=7)
    parser.add_argument("--sets", nargs="*", default=["protein-qs", "cb513"])
    parser.add_argument("--no-whole", action="store_true", help="leave out the runs on whole sets")
    chosen = parser.parse_args()
    absent = [name for name in chosen.sets if not is_here(name)]
    if absent:
        raise SystemExit(f"not in the data home: {', '.join(absent)}; MARGINBAYES_DATA names the folder that has them")
    for name in chosen.sets:
        X, y, train = load(name)
        title = f"{name}: {len(y)} residues, {X['seq_id'].nunique()} sequences, window {chosen.window}, Q3 in %"
        for size in chosen.sizes:
            parts = [drawn(X, size, seed) for seed in range(chosen.repetitions)]
            found = compete(chosen.window, X, y, drawn(X, size, 1000), parts)
            table(f"{title}; trained on {size} or more, {chosen.repetitions} repetitions", found)
        if not chosen.no_whole:
            found = compete(chosen.window, X, y, train, [train])
            table(f"{title}; trained on {train.sum()}, tested on {(~train).sum()}", found)


if __name__ == "__main__":
    main()
