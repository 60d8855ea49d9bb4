"""The main job from end to end, on data that comes with scikit-learn: compare, fit, read, explain, save.

Run it with `make demo`, or `python examples/demo.py --out some-folder`.
"""

from __future__ import annotations

import argparse
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.naive_bayes import GaussianNB

from marginbayes import AODEClassifier, BayesNetClassifier, Network, datasets
from marginbayes.evaluation import run, stratified_tasks, summarise
from marginbayes.plotting import BoundDisplay, EvidenceDisplay, NetworkDisplay
from marginbayes.structure import ExactMargin
from marginbayes.verification import read_document, verify_table

console = Console()


def cross_validate(X, y) -> None:
    """Same folds for all; with a tenth of the cells gone for those who can do without them."""
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    contestants = {
        "naive Bayes": BayesNetClassifier("nb"),
        "TAN": BayesNetClassifier("tan"),
        "TAN by rate": BayesNetClassifier("tan-cr"),
        "TAN by CL": BayesNetClassifier("tan", "cl"),
        "TAN by margin": BayesNetClassifier("tan", "mm-hybrid"),
        "AODE": AODEClassifier(),
    }
    tasks = list(stratified_tasks(X, y, n_folds=5))
    with_holes = list(stratified_tasks(holes, y, n_folds=5))
    outcomes = list(run({**contestants, "scikit-learn GaussianNB": GaussianNB()}, tasks, np.unique(y)))
    outcomes_holes = list(run(contestants, with_holes, np.unique(y)))
    table = Table(title="Breast cancer, 569 rows, 30 features: 5-fold cross-validation")
    for heading in ("classifier", "accuracy [95 %]", "log loss", "AUC", "accuracy, 10 % of cells missing", "seconds"):
        table.add_column(heading, justify="left" if heading == "classifier" else "right")
    for name in [*contestants, "scikit-learn GaussianNB"]:
        own = summarise([o for o in outcomes if o.name == name], np.unique(y))
        gaps = [o for o in outcomes_holes if o.name == name]
        table.add_row(
            name,
            f"{own.accuracy.value:.3f} [{own.accuracy.low:.3f}, {own.accuracy.high:.3f}]",
            f"{own.log_loss:.3f}",
            f"{own.auc:.3f}",
            f"{summarise(gaps, np.unique(y)).accuracy.value:.3f}" if gaps else "cannot",
            f"{own.fit_seconds + own.predict_seconds:.2f}",
        )
    console.print(table)


def largest_margin(data) -> BayesNetClassifier:
    """The structure of greatest soft margin."""
    return BayesNetClassifier(ExactMargin("sm", p=0.99, time_limit=20.0)).fit(data.X, data.y)


def prepare() -> None:
    """Have compiled what exact structures need: a minute, once on a machine, while the other core compares others."""
    largest_margin(datasets.load("wine"))


def prove(data, out: Path) -> None:
    """The network of greatest margin on a small set, its proof, and the check of the proof by other code."""
    clf = largest_margin(data)
    certificate = clf.structure_result_.certificate
    clf.save_certificates(out / "proof.json")
    table = {name: data.X[name].tolist() for name in data.X} | {clf.schema_.names[0]: data.y.tolist()}
    report = verify_table(read_document(out / "proof.json"), table)
    console.print(
        f"\nWine, structure of greatest soft margin: {certificate.objective:.3f}, and no other has more than "
        f"{certificate.bound:.3f} ({certificate.status}); the proof, read back and checked by other code: "
        f"{report.objective:.3f}, {report.bound:.3f}"
    )
    BoundDisplay.from_certificate(certificate).plot().figure_.savefig(out / "bound.png", dpi=110)


def main() -> None:
    """Everything, into one folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    preparing = get_context("spawn").Process(target=prepare)
    preparing.start()
    data = datasets.load("breast-cancer")
    cross_validate(data.X, data.y)
    clf = BayesNetClassifier("tan").fit(data.X, data.y)
    console.print(f"\nTAN on all rows: {clf.network_}; three of its columns:")
    for variable in clf.schema_.features[:3]:
        console.print("  " + variable.describe(), highlight=False)
    row = data.X.iloc[[0]]
    explanation = clf.explain(row)
    console.print(f"\nWhy the first row is called {clf.predict(row)[0]!r}: log-odds {explanation.log_odds[0]:+.2f}")
    for feature, level, weight in explanation.row(0)[:5]:
        console.print(f"  {weight:+6.2f}  {feature} in {level}", highlight=False)
    NetworkDisplay.from_estimator(clf).plot().figure_.savefig(out / "network.svg")
    NetworkDisplay.from_estimator(clf).plot().figure_.savefig(out / "network.png", dpi=110)
    EvidenceDisplay.from_explanation(explanation).plot().figure_.savefig(out / "evidence.png", dpi=110)
    clf.network_.to_json(out / "model.json")
    again = BayesNetClassifier.from_network(Network.from_json(out / "model.json"))
    assert np.array_equal(again.predict_proba(data.X), clf.predict_proba(data.X))
    preparing.join()
    prove(datasets.load("wine"), out)
    names = ", ".join(sorted(path.name for path in out.iterdir()))
    console.print(f"\nWritten to {out}/: {names} (the model was read back and gives the same answers)")
    console.print(f"{time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
