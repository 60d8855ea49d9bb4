from __future__ import annotations

import pytest

from marginbayes import BayesNetClassifier
from marginbayes.cli.options import Parameters
from marginbayes.parameters import ParameterLearner
from marginbayes.parameters.names import PARAMETER_NAMES, named_parameters


@pytest.mark.parametrize("name", PARAMETER_NAMES)
def test_every_name_is_a_learner_with_the_shared_parameters(name: str) -> None:
    learner = named_parameters(name, smoothing=0.25, n_jobs=2, random_state=7)
    assert isinstance(learner, ParameterLearner)
    own = learner.get_params(deep=False)
    assert own.get("smoothing", 0.25) == 0.25
    assert own.get("n_jobs", 2) == 2
    assert own.get("random_state", 7) == 7


def test_the_command_line_knows_the_same_names() -> None:
    assert tuple(choice.value for choice in Parameters) == PARAMETER_NAMES


def test_another_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"parameters='svm' is not known; choose one of 'ml', 'cl', 'mm'"):
        BayesNetClassifier("nb", "svm").fit([[0], [1]], [0, 1])
