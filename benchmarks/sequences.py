"""Inference in chains beside hmmlearn's and python-crfsuite's on the same model, and how its time grows with length.

    python benchmarks/sequences.py                 # a minute or two (pip install hmmlearn python-crfsuite)
    python benchmarks/sequences.py --quick

Each peer gets the same model: hmmlearn our tables without the end, python-crfsuite trains a model whose weights are
read back and given to marginbayes. All answers are compared first. Everything is prepared outside of the time:
hmmlearn's arrays, python-crfsuite's item sequences, marginbayes's cells.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _report import Result, compare, summary
from _timing import Contestant, race

from marginbayes.sequence import ChainModel

LEVELS = 20


def observed(n_chains: int, length: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random observations and the bounds of the chains."""
    codes = np.random.default_rng(seed).integers(0, LEVELS, n_chains * length)
    return codes, np.arange(0, len(codes) + 1, length)


def beside_hmmlearn(n_labels: int, n_chains: int, length: int, rounds: int) -> list[Result]:
    """Best paths and marginals of a hidden Markov model."""
    from hmmlearn.hmm import CategoricalHMM

    rng = np.random.default_rng(1)
    codes, offsets = observed(n_chains, length)
    start, steps = rng.dirichlet(np.ones(n_labels)), rng.dirichlet(np.ones(n_labels), n_labels)
    emission = rng.dirichlet(np.ones(LEVELS), n_labels)
    peers = {}
    for how in ("log", "scaling"):
        peer = CategoricalHMM(n_labels, implementation=how)
        peer.startprob_, peer.transmat_, peer.emissionprob_, peer.n_features = start, steps, emission, LEVELS
        peers[how] = peer
    model = ChainModel(n_labels, (LEVELS,))
    # Without an end: every label ends a chain equally well.
    table = np.column_stack([np.log(steps), np.zeros(n_labels)])
    weights = model.flatten(np.log(start), table, np.log(emission.T))
    cells, lengths, column = model.cells(codes[None], offsets), np.diff(offsets), codes[:, None]
    # Of equally good paths any may be found, so their scores are compared.
    np.testing.assert_allclose(model.decode(weights, cells, offsets)[1].sum(), peers["log"].decode(column, lengths)[0])
    chances = peers["log"].predict_proba(column, lengths)
    np.testing.assert_allclose(model.marginals(weights, cells, offsets)[0], chances, atol=1e-9)
    n, what = len(codes), f"{n_chains} chains of {length}, {n_labels} labels"
    best = [
        Contestant("marginbayes, decode", lambda: model.decode(weights, cells, offsets), n),
        Contestant("hmmlearn, decode", lambda: peers["log"].decode(column, lengths), n, wanted=1.0),
    ]
    both = [Contestant("marginbayes, marginals", lambda: model.marginals(weights, cells, offsets), n)]
    for how, peer in peers.items():
        name = f"hmmlearn, score_samples, implementation={how!r}"
        both.append(Contestant(name, lambda peer=peer: peer.score_samples(column, lengths), n, wanted=1.0))
    return [
        *compare("best path", f"Best paths, {what}", what, best, rounds, 20.0),
        *compare("marginals", f"Marginals, {what}", what, both, rounds, 20.0),
    ]


def beside_crfsuite(n_labels: int, n_chains: int, length: int, rounds: int) -> list[Result]:
    """Best paths and marginals of a conditional random field with one feature for each level."""
    import pycrfsuite

    codes, offsets = observed(n_chains, length)
    rng = np.random.default_rng(2)
    labels = np.where(rng.random(len(codes)) < 0.6, codes % n_labels, rng.integers(0, n_labels, len(codes)))
    chains = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    items = [[[f"x={c}"] for c in codes[chain].tolist()] for chain in chains]
    tagger, _content = _trained(pycrfsuite, items, [labels[c].astype(str).tolist() for c in chains])
    model = ChainModel(n_labels, (LEVELS,))
    weights = _weights_of(tagger, model)
    cells, sequences = model.cells(codes[None], offsets), [pycrfsuite.ItemSequence(own) for own in items]
    names = [str(k) for k in range(n_labels)]

    def tag() -> list[list[str]]:
        return [tagger.tag(own) for own in sequences]

    def marginals() -> list[list[list[float]]]:
        found = []
        for own in sequences:
            tagger.set(own)
            found.append([[tagger.marginal(name, t) for name in names] for t in range(length)])
        return found

    chances = np.array(marginals()).reshape(-1, n_labels)
    np.testing.assert_allclose(model.marginals(weights, cells, offsets)[0], chances, atol=1e-5)
    agree = (model.decode(weights, cells, offsets)[0].astype(str) == np.concatenate(tag())).mean()
    assert agree > 0.999, f"best paths agree in {agree:.4f} of the positions only"
    n, what = len(codes), f"{n_chains} chains of {length}, {n_labels} labels"
    best = [
        Contestant("marginbayes, decode", lambda: model.decode(weights, cells, offsets), n),
        Contestant("python-crfsuite, tag", tag, n, wanted=1.0),
    ]
    both = [
        Contestant("marginbayes, marginals", lambda: model.marginals(weights, cells, offsets), n),
        Contestant("python-crfsuite, marginal", marginals, n, wanted=1.0),
        Contestant("python-crfsuite, set alone (reads the items)", lambda: [tagger.set(s) for s in sequences], n),
    ]
    return [
        *compare("best path", f"Best paths, {what}", what, best, rounds, 20.0),
        *compare("marginals", f"Marginals, {what}", what, both, rounds, 20.0),
    ]


def _trained(pycrfsuite: Any, items: list[Any], labels: list[list[str]]) -> tuple[Any, bytes]:
    """A tagger, and the bytes that it reads."""
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"max_iterations": 30, "feature.possible_transitions": True, "feature.possible_states": True})
    for own, marks in zip(items, labels, strict=True):
        trainer.append(own, marks)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        content = Path(path).read_bytes()
    tagger = pycrfsuite.Tagger()
    tagger.open_inmemory(content)
    return tagger, content


def _weights_of(tagger: Any, model: ChainModel) -> np.ndarray:
    """The weights of a crfsuite model as a weight vector; it has neither start nor end."""
    info = tagger.info()
    steps, emission = np.zeros((model.n_labels, model.n_labels + 1)), np.zeros((LEVELS, model.n_labels))
    for (a, b), weight in info.transitions.items():
        steps[int(a), int(b)] = weight
    for (attribute, label), weight in info.state_features.items():
        emission[int(attribute.removeprefix("x=")), int(label)] = weight
    return model.flatten(np.zeros(model.n_labels), steps, emission)


def growth(total: int, rounds: int) -> list[dict[str, float]]:
    """Nanoseconds a position, of chains of growing length; printed."""
    rng, model = np.random.default_rng(3), ChainModel(5, (LEVELS,))
    weights = model.rows.normalised(rng.normal(size=model.n_weights))
    print(f"\nTime by length, {total} positions in all, 5 labels")
    print(f"  {'length':>9}{'best path, ns a position':>28}{'marginals, ns a position':>28}")
    found = []
    for length in (1, 10, 100, 1000, 10_000, 100_000):
        if length > total:
            break
        codes, offsets = observed(total // length, length)
        cells = model.cells(codes[None], offsets)
        jobs = [
            Contestant("best path", lambda c=cells, o=offsets: model.decode(weights, c, o), len(codes)),
            Contestant("marginals", lambda c=cells, o=offsets: model.marginals(weights, c, o), len(codes)),
        ]
        best, both = (1e9 * t.cpu / len(codes) for t in race(jobs, rounds, 20.0))
        print(f"  {length:>9}{best:>28.0f}{both:>28.0f}", flush=True)
        found.append({"length": length, "best path": best, "marginals": both})
    return found


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer positions and runs")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    chosen = parser.parse_args()
    size, rounds = (20, 3) if chosen.quick else (100, 7)
    results: list[Result] = []
    for n_labels, length in ((3, 150), (10, 150), (3, 5)):
        for beside in (beside_hmmlearn, beside_crfsuite):
            try:
                results += beside(n_labels, size * 150 // length, length, rounds)
            except ImportError as error:
                print(f"{error.name} is not installed and left out")
    summary(results)
    lengths = growth(100_000 if chosen.quick else 1_000_000, rounds)
    if chosen.json:
        chosen.json.write_text(json.dumps({"peers": [asdict(r) for r in results], "growth": lengths}, indent=1) + "\n")


if __name__ == "__main__":
    main()
