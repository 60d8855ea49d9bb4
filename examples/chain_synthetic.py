"""The synthetic chain of Guo, Wilkinson & Schuurmans (2005), section 9 and Figure 9: error by training size.

Sequences of five binary labels with four binary children each; the favoured value of every table entry has the
probability beta = 0.85. Every repetition draws tables, training and test sequences anew; all contestants get the same.

Run it with `python examples/chain_synthetic.py` (20 repetitions) or, to try it, `--repetitions 3`.
"""

from __future__ import annotations

import argparse

from _labelers import Outcome, choose, contestants, measure, table

from marginbayes.datasets import synthetic


def draw(n_train: int, n_test: int, beta: float, seed: int):
    """Training and test sequences from one chain, the id in front."""
    data = synthetic.skewed_chain(n_train, n_test, length=5, n_children=4, beta=beta, random_state=seed)
    X = data.X.assign(id=data.ids["seq_id"].to_numpy())[["id", *data.X]]
    return (X.iloc[data.train], data.y.iloc[data.train]), (X.iloc[data.test], data.y.iloc[data.test])


def main() -> None:
    """Print one table for each training size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="training sequences")
    parser.add_argument("--test", type=int, default=1000, help="test sequences")
    parser.add_argument("--beta", type=float, default=0.85)
    chosen = parser.parse_args()
    for size in chosen.sizes:
        found: dict[str, list[Outcome]] = {}
        for who in contestants("id", 1, literal=True):
            # As in the paper, strengths are chosen on one split and then fixed.
            make = choose(who, *draw(size, 1, chosen.beta, 1000)[0], "id")
            found[who.name] = [
                measure(make, *draw(size, chosen.test, chosen.beta, seed), "id") for seed in range(chosen.repetitions)
            ]
        table(f"{size} training sequences, beta = {chosen.beta:g}, {chosen.repetitions} repetitions, % right", found)


if __name__ == "__main__":
    main()
