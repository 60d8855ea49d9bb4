"""The peers: each with its best form of the same codes, conversion outside of the time.

A peer that is not installed raises `Absent` with one sentence.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from _data import Table
from numpy.typing import NDArray

from marginbayes import Network
from marginbayes.data.rows import Rows
from marginbayes.graph.tree import maximum_spanning_forest

__all__ = ["Absent", "Pgmpy", "Pyagrum", "Sklearn", "Weka"]

Floats = NDArray[np.float64]


class Absent(Exception):
    """A peer is not installed; the text says so in one sentence."""


def _module(name: str, package: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise Absent(f"{package} is not installed, so it does not take part (pip install {package}).") from error


def _evidence(rows: Rows, names: list[str]) -> list[dict[str, int]]:
    """For each row its observed features, by name."""
    cards = rows.cardinalities
    lines = rows.codes[1:].T.tolist()
    return [{n: x for n, x, c in zip(names[1:], line, cards[1:], strict=True) if x < c} for line in lines]


class Sklearn:
    """scikit-learn's CategoricalNB: naive Bayes only, which does less than TAN."""

    title = "scikit-learn CategoricalNB (naive Bayes)"

    def __init__(self) -> None:
        self._naive_bayes = _module("sklearn.naive_bayes", "scikit-learn")
        self._pipeline = importlib.import_module("sklearn.pipeline")
        self._preprocessing = importlib.import_module("sklearn.preprocessing")

    def describe(self) -> str:
        """Version and threads."""
        return f"scikit-learn {version('scikit-learn')}: 1 thread"

    def on_codes(self) -> Any:
        """Estimator for codes."""
        return self._naive_bayes.CategoricalNB(alpha=1.0)

    def on_frames(self) -> Any:
        """Estimator for frames of categories, which it encodes itself."""
        return self._pipeline.make_pipeline(self._preprocessing.OrdinalEncoder(dtype=np.int64), self.on_codes())


class Pyagrum:
    """pyAgrum's TAN classifier, its learner alone, a TAN written over its counts, and its exact inference."""

    def __init__(self) -> None:
        self._gum = _module("pyagrum", "pyagrum")
        self._skbn = _module("pyagrum.skbn", "pyagrum")

        self.threads = int(self._gum.getNumberOfThreads())

    def describe(self) -> str:
        """Version and threads."""
        return f"pyAgrum {version('pyagrum')}: {self.threads} threads"

    def use_threads(self, threads: int) -> None:
        """Set the number of threads of everything that follows."""
        self._gum.setNumberOfThreads(threads)

    def classifier(self, structure: str) -> Any:
        """Its scikit-learn style classifier ("TAN" or "NaiveBayes"), which takes codes as levels."""
        return self._skbn.createBNClassifier(
            learningMethod=structure, prior="Smoothing", priorWeight=1.0, discretizationThreshold=10**9
        )

    def loaded(self, table: Table) -> tuple[Any, Any]:
        """A graph without edges and a learner that has read the data."""
        graph = self._gum.BayesNet()
        for name, card in zip(table.names, table.rows.cardinalities, strict=True):
            graph.add(self._gum.RangeVariable(name, name, 0, card - 1))
        learner = self._gum.BNLearner(table.frame, graph)
        learner.useSmoothingPrior(1.0)
        return graph, learner

    def learn_tan(self, table: Table, loaded: tuple[Any, Any]) -> Any:
        """The classifier's own TAN rule on data that has been read."""
        rule = importlib.import_module("pyagrum.skbn._learningMethods")._fitTAN
        graph, learner = loaded
        return rule(table.features, table.labels, graph, learner, table.names[1:], "class")

    def learn_tan_by_hand(self, table: Table, loaded: tuple[Any, Any]) -> Any:
        """TAN written for this benchmark over the learner's mutual information, faster than the classifier's rule."""
        graph, learner = loaded
        names = table.names[1:]
        information = np.zeros((len(names), len(names)))
        for i, first in enumerate(names):
            for j in range(i):
                information[i, j] = learner.mutualInformation(first, names[j], ["class"])
        for i, parent in enumerate(maximum_spanning_forest(information + information.T)):
            graph.addArc("class", names[i])
            if parent >= 0:
                graph.addArc(names[parent], names[i])
        return learner.learnParameters(graph.dag())

    def posteriors(self, network: Network, rows: Rows, engine: str) -> Callable[[], Floats]:
        """P(class | observed cells) of each row by one of its engines; rows one by one, as it has nothing for many."""
        names = list(network.schema.names)
        inference = getattr(self._gum, engine)(network.to_pyagrum())
        inference.setTargets({names[0]})
        evidence = _evidence(rows, names)

        def run() -> Floats:
            answers = []
            for row in evidence:
                inference.setEvidence(row)
                inference.makeInference()
                answers.append(inference.posterior(names[0]).tolist())
            return np.array(answers)

        return run


class Pgmpy:
    """pgmpy's exact inference, and a leaf-to-root pass written over its factors; its TAN."""

    def __init__(self) -> None:
        logging.disable(logging.WARNING)
        self._inference = _module("pgmpy.inference", "pgmpy")

    def describe(self) -> str:
        """Version and threads."""
        return f"pgmpy {version('pgmpy')}: 1 thread for inference, all processors for structure"

    def learn_tan(self, table: Table) -> Any:
        """Structure and smoothed tables."""
        estimators = _module("pgmpy.estimators", "pgmpy")
        models = _module("pgmpy.models", "pgmpy")
        found = estimators.TreeSearch(table.frame).estimate("tan", class_node="class", show_progress=False)
        model = models.DiscreteBayesianNetwork(found.edges())
        model.fit(table.frame, estimator=estimators.BayesianEstimator, prior_type="dirichlet", pseudo_counts=1)
        return model

    def posteriors(self, network: Network, rows: Rows) -> Callable[[], Floats]:
        """P(class | observed cells) of each row by its variable elimination, rows one by one."""
        names = list(network.schema.names)
        inference = self._inference.VariableElimination(network.to_pgmpy())
        evidence = _evidence(rows, names)
        return lambda: np.array(
            [inference.query(names[:1], evidence=row, show_progress=False).values for row in evidence]
        )

    def posteriors_by_hand(self, network: Network, rows: Rows) -> Callable[[], Floats]:
        """The same for a TAN by a pass from the leaves to the root, written for this benchmark over pgmpy's factors."""
        names, dag = list(network.schema.names), network.dag
        model = network.to_pgmpy()
        factors = [model.get_cpds(name).to_factor() for name in names]
        parents = [next((p for p in family if p), 0) for family in dag.parents]
        upwards = [i for i in reversed(dag.order) if i]
        evidence = _evidence(rows, names)

        def one(row: dict[str, int]) -> Floats:
            result = factors[0]
            messages: dict[int, list[Any]] = {i: [] for i in range(len(names))}
            for i in upwards:
                seen = [(names[m], row[names[m]]) for m in (parents[i], i) if names[m] in row]
                factor = factors[i].reduce(seen, inplace=False) if seen else factors[i]
                for message in messages[i]:
                    factor = factor * message
                if names[i] not in row:
                    factor = factor.marginalize([names[i]], inplace=False)
                if parents[i] and names[parents[i]] not in row:
                    messages[parents[i]].append(factor)
                else:
                    result = result * factor
            values: Floats = result.values / result.values.sum()
            return values

        return lambda: np.array([one(row) for row in evidence])


class Weka:
    """Weka's BayesNet with its TAN search, called inside this process: the virtual machine's start is not counted."""

    def __init__(self) -> None:
        package = "python-weka-wrapper3"
        spec = importlib.util.find_spec("weka")
        if spec is None or not spec.submodule_search_locations:
            raise Absent(f"{package} is not installed, so Weka does not take part (pip install {package}).")
        self._jpype = _module("jpype", package)
        jars = Path(spec.submodule_search_locations[0]) / "lib" / "*"
        if not self._jpype.isJVMStarted():
            try:
                self._jpype.startJVM("-Xmx4g", classpath=[str(jars)])
            except (OSError, RuntimeError, self._jpype.JVMNotFoundException) as error:
                raise Absent(f"Java does not start, so Weka does not take part: {error}") from error
        self._folder = tempfile.TemporaryDirectory()
        # Weka looks for native linear algebra and tells the terminal that there is none.
        self._class("java.util.logging.LogManager").getLogManager().reset()

    def _class(self, name: str) -> Any:
        return self._jpype.JClass(name)

    def describe(self) -> str:
        """Version and threads."""
        java = self._class("java.lang.System").getProperty("java.version")
        weka = self._class("weka.core.Version").VERSION
        processors = self._class("java.lang.Runtime").getRuntime().availableProcessors()
        return f"Weka {weka} on Java {java}: 1 thread, and {processors} processors for the virtual machine's own work"

    def write(self, table: Table) -> Path:
        """ARFF file of a table, in a folder that goes when the run ends."""
        lines = ["@relation codes"]
        for name, card in zip(table.names, table.rows.cardinalities, strict=True):
            lines.append(f"@attribute {name} {{{','.join(map(str, range(card)))}}}")
        path = Path(self._folder.name) / f"{table.name}.arff"
        with path.open("w") as file:
            file.write("\n".join([*lines, "@data", ""]))
            np.savetxt(file, table.rows.codes.T, fmt="%d", delimiter=",")
        return path

    def read(self, path: Path) -> Any:
        """Weka's own form of the data in an ARFF file."""
        data = self._class("weka.core.converters.ConverterUtils$DataSource").read(str(path))
        data.setClassIndex(0)
        return data

    def fit(self, data: Any) -> Any:
        """Fitted TAN with smoothing 1."""
        estimator = self._class("weka.classifiers.bayes.net.estimate.SimpleEstimator")()
        estimator.setAlpha(1.0)
        classifier = self._class("weka.classifiers.bayes.BayesNet")()
        classifier.setSearchAlgorithm(self._class("weka.classifiers.bayes.net.search.local.TAN")())
        classifier.setEstimator(estimator)
        classifier.buildClassifier(data)
        return classifier

    def load(self, table: Table) -> Any:
        """Weka's own form of a table, after a warm-up on it."""
        data = self.read(self.write(table))
        self._warm_up(data)
        return data

    def _warm_up(self, data: Any, seconds: float = 4.0) -> None:
        """Fit and predict on some rows for a while, so that the virtual machine has compiled what it will run."""
        some = self._class("weka.core.Instances")(data, 0, min(1000, data.numInstances()))
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.fit(some).distributionsForInstances(some)
