"""The reference: every public name is on the page, found there by what it is, and its parameters are as it says."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import marginbayes
from marginbayes import parameters, structure

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


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_page_is_an_attribute_of_the_package_before_anything_imports_it(name: str) -> None:
    assert marginbayes.__getattr__(name) is importlib.import_module(f"marginbayes.{name}")
    assert name in dir(marginbayes)


@pytest.mark.parametrize(
    ("section", "names", "named"),
    [
        ("Short names of structures", structure.STRUCTURE_NAMES, structure.named_structure),
        ("Short names of parameter learners", parameters.PARAMETER_NAMES, parameters.named_parameters),
    ],
)
def test_the_tables_of_short_names_have_all_of_them_and_their_learners(
    section: str, names: tuple[str, ...], named: Callable[[str], object]
) -> None:
    text = PAGE.read_text(encoding="utf-8").split(f"### {section}\n")[1].split("\n:::")[0]
    cells = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    shown = {name: learner for own, learner, _ in cells for name in re.findall(r"`([^`]+)`", own)}
    assert shown == {name: f"`{type(named(name)).__name__}`" for name in names}


# -- parameters and their defaults


class Item(NamedTuple):
    """One parameter of a docstring: what stands before the colon, what behind it, and whether any text follows."""

    name: str
    kind: str
    described: bool


def items(docstring: str | None) -> list[Item]:
    """The parameters that a numpydoc docstring lists."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    if "Parameters" not in lines:
        return []
    start = lines.index("Parameters") + 2
    rules = (i - 1 for i, line in enumerate(lines) if i > start and line and set(line) == {"-"})
    own = lines[start : next(rules, len(lines))]
    heads = [i for i, line in enumerate(own) if line and not line.startswith(" ")]
    after = ["".join(own[a + 1 : b]).strip() for a, b in pairwise([*heads, len(own)])]
    return [Item(*own[i].partition(" : ")[::2], bool(text)) for i, text in zip(heads, after, strict=True)]


def documented() -> dict[str, Any]:
    """Everything on the page that takes parameters, public methods included, by its full name."""
    found = {}
    for value in listed():
        members = inspect.getmembers(value, callable) if inspect.isclass(value) else []
        for item in [value, *(member for name, member in members if not name.startswith("_"))]:
            if getattr(item, "__module__", "").startswith("marginbayes") and items(item.__doc__):
                found[f"{item.__module__}.{item.__qualname__}"] = item
    return found


DOCUMENTED = documented()


def mistakes(item: Item, known: Mapping[str, inspect.Parameter]) -> str:
    """What is wrong with a parameter as the page shows it; nothing if all is well.

    The page takes the first of several choices in braces for the default, and one default for all names in a line.
    """
    if item.name not in known:
        return "is no parameter, or more than one"
    default = known[item.name].default
    stated = re.search(r"default=(.+)$", item.kind)
    if stated and not same(stated[1], default):
        return f"has the default {default!r}"
    if item.kind.startswith("{") and not same(item.kind[1:].split("}")[0].split(",")[0], default):
        return f"should have its default {default!r} first in braces, or no braces where it has none"
    return "" if item.described else "has no description"


def same(text: str, value: object) -> bool:
    try:
        return bool(ast.literal_eval(text) == value)
    except (SyntaxError, ValueError):  # the name of a constant or a class
        return text.rpartition(".")[2] == getattr(value, "__name__", None)


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_parameters_stand_one_to_a_line_with_their_own_defaults_and_a_description(name: str) -> None:
    value = DOCUMENTED[name]
    known = inspect.signature(value).parameters
    wrong = {item.name: mistakes(item, known) for item in items(value.__doc__)}
    assert {own: what for own, what in wrong.items() if what} == {}


def test_a_shared_line_a_wrong_default_and_a_missing_description_are_found() -> None:
    def example(a: int = 1, b: str = "x", c: float = 0.0) -> None:
        """Nothing.

        Parameters
        ----------
        a, b : int, default=1
            Text.
        b : {"y", "x"}, default="x"
            Text.
        c : float, default=0.5
            Text.
        a : int, default=1

        Returns
        -------
        nothing
        """

    known = inspect.signature(example).parameters
    found = [mistakes(item, known).split()[0:2] for item in items(example.__doc__)]
    assert found == [["is", "no"], ["should", "have"], ["has", "the"], ["has", "no"]]
