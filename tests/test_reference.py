"""The reference: every public name is on the page, found there by what it is and not by how it is spelled."""

from __future__ import annotations

import importlib
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
MODULES = ("data", "datasets", "estimators", "evaluation", "graph", "network", "parameters", "plotting", "report")
MODULES += ("scores", "sequence", "solvers", "structure", "study", "verification")


def listed() -> list[Any]:
    """What the page names, and what it shows of modules that it names."""
    paths = re.findall(r"^::: ([\w.]+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = [found(path) for path in paths]
    modules = [item for item in named if isinstance(item, ModuleType)]
    return named + [getattr(module, name) for module in modules for name in module.__all__ if shows(module, name)]


def found(path: str) -> Any:
    """The object of a full path: `marginbayes.evaluation.run` is the module, although a function hides it."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        home, _, name = path.rpartition(".")
        return getattr(found(home), name)


def shows(module: ModuleType, name: str) -> bool:
    """Whether the page of a module shows a name: not where a module hides it, nor without a description of its own."""
    value = getattr(module, name)
    hidden = find_spec(f"{module.__name__}.{name}") is not None if hasattr(module, "__path__") else False
    return not hidden and callable(value) and bool(value.__doc__)


@pytest.mark.parametrize("name", ["marginbayes", *(f"marginbayes.{part}" for part in MODULES)])
def test_every_public_name_of_a_module_is_on_the_page(name: str) -> None:
    module, page = importlib.import_module(name), listed()
    assert [n for n in module.__all__ if not any(getattr(module, n) is item for item in page)] == []
