"""Protein secondary structure, as in Guo, Wilkinson & Schuurmans (2005), section 9 and Figure 10.

Each residue has one of three labels (helix, strand, coil), predicted from a window of 7 residues and the neighbouring
labels. A repetition takes sequences at random until they have enough residues to train on, and tests on all others;
Q3 is the share of residues whose label is right. The data sets `protein-qs` (Qian & Sejnowski 1988) and `cb513` (the
residues of the CB513 mask) have to be in the data home.

Run it with `python examples/protein.py` (20 repetitions) or, to try it, `--sets protein-qs --repetitions 2`.
"""

from __future__ import annotations

import argparse

import numpy as np
from _labelers import Outcome, choose, contestants, measure, table

from marginbayes import datasets


def load(name: str):
    """Residues with the id of their sequence in front, and labels; of cb513 the residues of its mask."""
    data = datasets.load(name)
    X = data.X[["residue"]].assign(seq_id=data.ids["seq_id"].astype(str).to_numpy())[["seq_id", "residue"]]
    kept = np.ones(len(X), bool)
    if "in_cb513" in data.X:
        kept = data.X["in_cb513"].astype(str).to_numpy() == "1"
    return X[kept].reset_index(drop=True), data.y[kept].reset_index(drop=True)


def split(X, y, residues: int, seed: int):
    """Random sequences with at least so many residues, and all others."""
    names = np.random.default_rng(seed).permutation(X["seq_id"].unique())
    sizes = X["seq_id"].value_counts()[names].cumsum().to_numpy()
    train = X["seq_id"].isin(names[: int(np.searchsorted(sizes, residues)) + 1]).to_numpy()
    return (X[train], y[train]), (X[~train], y[~train])


def main() -> None:
    """Print one table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--residues", type=int, default=10_000, help="to train on, at least")
    parser.add_argument("--window", type=int, default=7)
    parser.add_argument("--sets", nargs="*", default=["protein-qs", "cb513"])
    chosen = parser.parse_args()
    for name in chosen.sets:
        X, y = load(name)
        found: dict[str, list[Outcome]] = {}
        for who in contestants("seq_id", chosen.window, literal=False):
            # As in the paper, strengths are chosen on one split and then fixed.
            make = choose(who, *split(X, y, chosen.residues, 1000)[0], "seq_id")
            found[who.name] = [
                measure(make, *split(X, y, chosen.residues, seed), "seq_id") for seed in range(chosen.repetitions)
            ]
        title = f"{name}: {len(y)} residues, {X['seq_id'].nunique()} sequences, window {chosen.window}"
        table(f"{title}, trained on {chosen.residues} or more, {chosen.repetitions} repetitions, Q3 in %", found)


if __name__ == "__main__":
    main()
