"""Parameters of learners that are given by a short name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator

__all__ = ["NamedLearners"]


class NamedLearners(BaseEstimator):  # type: ignore[misc]
    """An estimator with learners among its parameters, which a short name may stand for."""

    @abstractmethod
    def _makers(self) -> Mapping[str, Callable[[], Any]]:
        """For each such parameter what makes the learner of the name it has now."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a learner that has a short name (``parameters__B``) make it that learner."""
        nested = {key: value for key, value in params.items() if "__" in key}
        # First what the learners are made of, such as the smoothing.
        super().set_params(**{key: value for key, value in params.items() if key not in nested})
        made = {}
        for name, make in self._makers().items():
            own = [key for key in nested if key.startswith(f"{name}__")]
            if own and isinstance(getattr(self, name), str):
                made[name] = make().set_params(**{key.removeprefix(f"{name}__"): nested.pop(key) for key in own})
        super().set_params(**nested)
        for name, learner in made.items():  # all of whose parameters were right
            setattr(self, name, learner)
        return self
