"""`marginbayes show`: what is inside a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbayes.cli import options
from marginbayes.cli.console import cell, counted, grid, output, printable, say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    from marginbayes.network import Network

GUIDE, NARROWEST = 4, 24  # columns of one step of indentation, and the least for a name and its numbers

Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the network there (.svg or .png).", show_default=False),
]
Tables = Annotated[bool, typer.Option("--tables", help="Print the probability tables too.")]


def show(model: options.Model, plot: Plot = None, tables: Tables = False) -> None:
    """Print a model as a tree: what depends on what, and how much.

    Behind each feature stand its number of levels and, for each parent, the information that this edge
    carries.

    Example: `marginbayes show model.json --plot network.svg`
    """
    from marginbayes.cli.models import check_writable, is_average, load_model, read_network

    if plot is not None:
        check_writable(plot, [".svg", ".png"])
    if is_average(model):
        _show_average(load_model(model), plot is not None or tables)
        return
    network = read_network(model)
    console = output()
    information = network.edge_information()
    for tree in trees(network, information):
        output(_width(console, tree)).print(tree)
    say(console, _sizes(network))
    if tables:
        for name in network.dag.names:
            _print_table(console, network, name)
    if plot is not None:
        _draw(network, information, plot)
        console.print(f"network drawn in {plot}", soft_wrap=True)


def _show_average(classifier: Any, wants_graph: bool) -> None:
    """An AODE model has no graph of its own."""
    if wants_graph:
        raise ValueError(
            "an AODE model is the average of many networks: it has no graph to draw and no tables to print"
        )
    schema = classifier.schema_
    say(
        output(),
        f"AODE: the average of {counted(len(schema.features), 'network')} in each of which one feature, besides the "
        f"class {schema.target.name!r}, is the parent of all others",
    )
    table = grid("variable", "levels", right=("levels",))
    for variable in schema.variables:
        table.add_row(cell(variable.name), str(variable.cardinality))
    output().print(table)


# -- the tree


def trees(network: Network, information: dict[tuple[str, str], float]) -> Iterator[Tree]:
    """One tree for each variable without parents; any other hangs under the parent that tells most.

    A feature with the class and another feature as parents hangs under the feature, whatever the class tells:
    so a tree-augmented network looks like its tree.
    """
    from rich.tree import Tree

    branches: dict[int, Tree] = {}
    for i in network.dag.order:
        host = _host(network, i, information)
        label = _label(network, i, host, information)
        branches[i] = Tree(label) if host is None else branches[host].add(label)
    for i in network.dag.order:
        if not network.dag.parents[i]:
            yield branches[i]


def _width(console: Console, tree: Tree) -> int:
    """Columns for a tree: those of the terminal, unless it is too deep for them or this is a file."""
    deepest, needed = _reach(tree)
    fits = console.is_terminal and deepest + NARROWEST <= console.width
    return console.width if fits else max(console.width, needed)


def _reach(tree: Tree) -> tuple[int, int]:
    """Largest indentation in a tree, and the columns it takes if no label is broken."""
    deepest, widest, todo = 0, 0, [(tree, 0)]
    while todo:
        branch, indent = todo.pop()
        deepest, widest = max(deepest, indent), max(widest, indent + len(str(branch.label)))
        todo += [(child, indent + GUIDE) for child in branch.children]
    return deepest, widest


def _host(network: Network, i: int, information: dict[tuple[str, str], float]) -> int | None:
    names = network.dag.names
    parents = network.dag.parents[i]
    return max(parents, key=lambda p: (p != 0, information[names[p], names[i]], -p), default=None)


def _label(network: Network, i: int, host: int | None, information: dict[tuple[str, str], float]) -> Text:
    """Name, number of levels, the information from the variable above, and that from each other parent."""
    names = network.dag.names
    text = cell(names[i], "bold blue" if i == 0 else "bold")
    text.append(f" ({network.schema.cardinalities[i]})", style="dim")
    if host is not None:
        text.append(f"  {information[names[host], names[i]]:.3f}", style="cyan")
    for parent in network.dag.parents[i]:
        if parent != host:
            text.append(f"  {printable(names[parent])}", style="blue" if parent == 0 else "")
            text.append(f" {information[names[parent], names[i]]:.3f}", style="cyan")
    if i and host is None and not network.dag.children[i]:
        text.append("  not used", style="dim")
    return text


def _sizes(network: Network) -> str:
    whole = "" if network.normalized else ", subnormalised"
    return (
        f"{counted(len(network.dag.names), 'variable')}, {counted(len(network.dag.edges), 'edge')}, "
        f"{counted(network.n_parameters, 'free parameter')}{whole}\n"
        "behind each name: (levels), information in nats from the variable above it, then from other parents"
    )


# -- the tables


def _print_table(console: Console, network: Network, name: str) -> None:
    """P(variable | parents), one row for each combination of the parents' levels; wide ones in parts."""
    import numpy as np

    parents = network.dag.parents_of(name)
    values = network.probabilities(name)
    levels = [_shown(level) for level in network.schema[name].levels]
    rows = [
        [_shown(network.schema[p].levels[k]) for p, k in zip(parents, index, strict=True)]
        for index in np.ndindex(values.shape[:-1])
    ]
    title = f"P({printable(name)}" + (f" | {', '.join(map(printable, parents))})" if parents else ")")
    for part in _parts([*parents], rows, levels, console.width):
        table = grid(*parents, title=title if part.start == 0 else None)
        for level in levels[part]:
            table.add_column(level, justify="right", no_wrap=True)
        for row, chances in zip(rows, values.reshape(-1, len(levels)), strict=True):
            table.add_row(*row, *(f"{p:.4f}" for p in chances[part]))
        console.print(table)


def _parts(heads: list[str], rows: list[list[str]], levels: list[str], width: int) -> list[slice]:
    """Slices of the levels that fit beside the columns of the parents."""
    taken = sum(max(len(h), *(len(row[k]) for row in rows)) + 3 for k, h in enumerate(heads))
    starts, room = [0], width - taken
    for k, level in enumerate(levels):
        room -= max(len(level), 6) + 3
        if room < 0 and k > starts[-1]:
            starts.append(k)
            room = width - taken - max(len(level), 6) - 3
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(levels)], strict=True)]


def _shown(level: Any) -> str:
    return "missing" if level is None else printable(level)


# -- the picture


def _draw(network: Network, information: dict[tuple[str, str], float], path: Path) -> None:
    if path.suffix.lower() == ".svg":
        from marginbayes.graph.svg import draw_svg
        from marginbayes.writing import write_text

        tooltips = {v.name: v.describe() for v in network.schema.variables}
        write_text(path, draw_svg(network.dag, widths=information, tooltips=tooltips))
        return
    from marginbayes.cli.pictures import save_picture
    from marginbayes.plotting.network import NetworkDisplay

    save_picture(lambda: NetworkDisplay.from_network(network), path)
