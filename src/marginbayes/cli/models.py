"""Models: made from options, read from files, written to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from marginbayes.cli.settings import apply_settings

if TYPE_CHECKING:
    from marginbayes.cli.options import ClassWeight, Discretizer, Missing, Parameters
    from marginbayes.estimators.base import BaseClassifier
    from marginbayes.network import Network
    from marginbayes.parameters import ParameterLearner
    from marginbayes.structure import StructureLearner

__all__ = [
    "Choices",
    "build",
    "check_folder",
    "check_writable",
    "is_average",
    "load_model",
    "read_network",
    "save_model",
    "watch",
    "write_network",
]

FORMATS = ".json, .bif, .xmlbif or .xml"


@dataclass(frozen=True)
class Choices:
    """How to learn: the options of `fit` and `evaluate`."""

    parameters: str = "ml"
    smoothing: float = 1.0
    missing: str = "available"
    discretizer: str = "mdlp"
    categorical: tuple[str, ...] = ()
    class_weight: str | None = None
    n_jobs: int | None = None
    tune: bool = False
    settings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        parameters: Parameters,
        smoothing: float,
        missing: Missing,
        discretizer: Discretizer,
        categorical: list[str] | None,
        class_weight: ClassWeight | None,
        n_jobs: int | None,
        tune: bool,
        settings: list[str] | None,
    ) -> Choices:
        """The choices as the command line gives them."""
        if n_jobs == 0:
            raise ValueError("--jobs 0 leaves nobody to do the work; say 1 or more, or -1 for all cores")
        weight = class_weight.value if class_weight else None
        names = parameters.value, smoothing, missing.value, discretizer.value
        return cls(*names, tuple(categorical or ()), weight, n_jobs, tune, tuple(settings or ()))


def build(structure: str, choices: Choices) -> BaseClassifier:
    """The classifier, not yet fitted, that the options describe."""
    from marginbayes.estimators import AODEClassifier, BayesNetClassifier

    shared: dict[str, Any] = {
        "smoothing": choices.smoothing,
        "discretizer": None if choices.discretizer == "none" else choices.discretizer,
        "categorical_features": list(choices.categorical) or "from_dtype",
        "class_weight": choices.class_weight,
        "n_jobs": choices.n_jobs,
    }
    classifier: BaseClassifier
    if structure == "aode":
        if choices.missing != "available":
            raise ValueError(f"--missing {choices.missing} is not for aode, which knows 'available' only")
        if choices.parameters != "ml":
            raise ValueError(f"--parameters {choices.parameters} is not for aode, which knows 'ml' only")
        classifier = AODEClassifier(**shared)
    else:
        learners = _structure(structure, choices), _parameters(choices)
        # Expectation maximisation is a matter of the tables' learner.
        missing = "available" if choices.missing == "em" else choices.missing
        classifier = BayesNetClassifier(*learners, missing=missing, random_state=0, **shared)
    asked = structure if structure == "aode" else f"--structure {structure} --parameters {choices.parameters}"
    apply_settings(classifier, asked, choices.settings, choices.tune)
    return classifier


def _parameters(choices: Choices) -> ParameterLearner:
    from marginbayes.parameters.names import named_parameters

    learner = named_parameters(choices.parameters, choices.smoothing, choices.n_jobs, random_state=0)
    if choices.missing == "em":
        if choices.parameters != "ml":
            raise ValueError(
                f"--missing em is not for --parameters {choices.parameters}; choose 'available' or 'level'"
            )
        learner.set_params(missing="em")
    return learner


def _structure(name: str, choices: Choices) -> StructureLearner:
    from marginbayes.structure import named_structure

    try:
        return named_structure(name, 0, choices.smoothing, choices.n_jobs)
    except ValueError:
        raise ValueError(f"--structure {name!r} is not known; say nb, tan, aode, tan-cr, 2tree-omi-cr ...") from None


def watch(classifier: Any, tell: Callable[[str], None]) -> None:
    """Have a search tell its steps while it runs."""
    for name in ("structure", "parameters"):
        learner: Any = getattr(classifier, name, None)
        if hasattr(learner, "get_params") and "callback" in learner.get_params():
            learner.set_params(callback=lambda step: tell(f"{step.seconds:.0f} s: {step}"))


def check_writable(path: Path, suffixes: Sequence[str] = ()) -> None:
    """Raise unless a file of one of these kinds can be written there: before the work, not after it."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"the name of {path} should end in {' or '.join(suffixes)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"nothing can be written to the folder {folder}; name another file than {path}")


def check_folder(path: Path) -> None:
    """Raise unless files can be written to this folder, which need not be there yet."""
    there = path.resolve()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is a file, not a folder")
    check_writable(there / path.name)


def save_model(classifier: Any, path: Path) -> None:
    """Write a fitted classifier as JSON, whole or not at all."""
    writer = classifier if hasattr(classifier, "to_json") else classifier.network_
    writer.to_json(path)


def load_model(path: Path) -> BaseClassifier:
    """The fitted classifier in a file."""
    from marginbayes.estimators import AODEClassifier, BayesNetClassifier

    if is_average(path):
        return AODEClassifier.from_json(path)
    if _holds(path, "sequence"):
        from marginbayes.sequence import SequenceLabeler

        return cast("BaseClassifier", SequenceLabeler.from_json(path))
    if _holds(path, "multilabel"):
        raise ValueError(
            f"{path} predicts several targets, which this command cannot; read it in Python with "
            "MultiLabelClassifier.from_json"
        )
    return BayesNetClassifier.from_network(read_network(path))


def read_network(path: Path, target: str | None = None) -> Network:
    """The network in a .json, .bif, .xmlbif or .xml file; `target` names the class of a foreign one."""
    from marginbayes.network import Network

    _check_there(path)
    suffix = path.suffix.lower()
    if suffix == ".bif":
        return Network.from_bif(path, target)
    if suffix in (".xmlbif", ".xml"):
        return Network.from_xmlbif(path, target)
    if suffix != ".json":
        raise ValueError(f"cannot tell the format of {path}: its name should end in {FORMATS}")
    if is_average(path):
        raise ValueError(f"{path} is an AODE model, which is an average of many networks and not one")
    if _holds(path, "sequence"):
        from marginbayes.sequence import SequenceLabeler

        return SequenceLabeler.from_json(path).network_
    if _holds(path, "multilabel"):
        from marginbayes.sequence import MultiLabelClassifier

        return MultiLabelClassifier.from_json(path).network_
    network = Network.from_json(path)
    if target not in (None, network.schema.target.name):
        raise ValueError(f"the class of {path} is {network.schema.target.name!r}; --target is for .bif and .xmlbif")
    return network


def write_network(network: Network, path: Path) -> None:
    """Write a network in the format that the file's name tells."""
    suffix = path.suffix.lower()
    write = {".json": network.to_json, ".bif": network.to_bif}.get(suffix, network.to_xmlbif)
    write(path)


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")


def is_average(path: Path) -> bool:
    """Whether a file holds an AODE model, which has no network of its own."""
    _check_there(path)
    return _holds(path, "aode")


def _holds(path: Path, kind: str) -> bool:
    """Whether a file says that it holds such a model; those with networks of other makes never do."""
    if path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        return f'"marginbayes.{kind}"'.encode() in file.read(4096)
