"""Networks as XMLBIF 0.3, the XML format of Weka, pgmpy and pyAgrum."""

from __future__ import annotations

import math
import os
import re
from typing import Any, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from marginbayes.network.interop import KEY, MOST_PARENTS, Node, assemble, numbers, to_nodes
from marginbayes.network.json import read_source
from marginbayes.network.network import Network
from marginbayes.writing import write_text

__all__ = ["read_xmlbif", "write_xmlbif"]

DEEPEST = 50
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_xmlbif(network: Network, path: str | os.PathLike[str] | None = None) -> str:
    """XMLBIF text of a network; also written to `path` if one is given, whole or not at all."""
    nodes = to_nodes(network, _clean, _clean)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<BIF VERSION="0.3">',
        "<NETWORK>",
        "<NAME>marginbayes</NAME>",
    ]
    lines += [line for node in nodes for line in _variable_lines(node)]
    lines += [line for node in nodes for line in _definition_lines(node)]
    text = "\n".join([*lines, "</NETWORK>", "</BIF>", ""])
    if path is not None:
        write_text(path, text)
    return text


def read_xmlbif(source: str | os.PathLike[str], target: str | None = None) -> Network:
    """Network of an XMLBIF file, or of XML text (a str that starts with an angle bracket).

    The class is `target` if given, else the variable that was the class when marginbayes wrote the file, else
    the first.
    """
    # Text in memory has lost the encoding that its first line may speak of.
    encoding = "utf-8" if isinstance(source, str) and _is_xml(source) else None
    return read_source(source, _is_xml, lambda xml: _network(xml, encoding, target))


def _is_xml(text: str) -> bool:
    return text.lstrip().startswith("<")


# -- out


def _clean(text: str) -> str:
    """Readers drop outer blanks, merge inner ones, and XML has no control characters."""
    return " ".join(NOT_XML.sub("_", text).split()) or "_"


def _variable_lines(node: Node) -> list[str]:
    outcomes = [f"  <OUTCOME>{escape(str(level))}</OUTCOME>" for level in node.levels]
    properties = [] if node.carried is None else [f"  <PROPERTY>{KEY} = {node.carried}</PROPERTY>"]
    return [
        '<VARIABLE TYPE="nature">',
        f"  <NAME>{escape(node.name)}</NAME>",
        *outcomes,
        *properties,
        "</VARIABLE>",
    ]


def _definition_lines(node: Node) -> list[str]:
    given = [f"  <GIVEN>{escape(parent)}</GIVEN>" for parent in node.parents]
    rows = [" ".join(map(repr, row)) for row in node.probabilities.reshape(-1, len(node.levels)).tolist()]
    return [
        "<DEFINITION>",
        f"  <FOR>{escape(node.name)}</FOR>",
        *given,
        "  <TABLE>",
        *rows,
        "  </TABLE>",
        "</DEFINITION>",
    ]


# -- in


def _network(xml: bytes, encoding: str | None, target: str | None) -> Network:
    root = _parse(xml.lstrip(), encoding)
    network = root if root.tag == "NETWORK" else root.find("NETWORK")
    if network is None:
        raise ValueError(f"not XMLBIF: no NETWORK inside the outermost element {root.tag!r}")
    variables = {_text(v, "NAME"): v for v in network.iterfind("VARIABLE")}
    definitions = {_text(d, "FOR"): d for d in network.iterfind("DEFINITION")}
    if len(variables) < len(network.findall("VARIABLE")) or len(definitions) < len(network.findall("DEFINITION")):
        raise ValueError("two variables, or two definitions, have the same name")
    for name in variables.keys() ^ definitions.keys():
        raise ValueError(f"{name!r} has no {'DEFINITION' if name in variables else 'VARIABLE'}")
    levels = {name: tuple((o.text or "").strip() for o in v.iterfind("OUTCOME")) for name, v in variables.items()}
    nodes = [_node(name, variables[name], definitions[name], levels) for name in variables]
    return assemble(nodes, target, _clean, _clean)


def _node(name: str, variable: Element, definition: Element, levels: dict[str, tuple[str, ...]]) -> Node:
    if variable.get("TYPE", "nature") != "nature":
        raise ValueError(f"{name!r} is a {variable.get('TYPE')} variable; only those of type nature have probabilities")
    parents = tuple((given.text or "").strip() for given in definition.iterfind("GIVEN"))
    for parent in parents:
        if parent not in levels:
            raise ValueError(f"{name!r} has the parent {parent!r}, which is not a variable")
    shape = (*(len(levels[p]) for p in parents), len(levels[name]))
    if len(parents) > MOST_PARENTS:
        raise ValueError(f"{name!r} has {len(parents)} parents; the most is {MOST_PARENTS}")
    values = numbers(_text(definition, "TABLE").split(), f"the TABLE of {name!r}")
    if len(values) != math.prod(shape) or not values:
        raise ValueError(f"the TABLE of {name!r} has {len(values)} numbers, but its family needs {math.prod(shape)}")
    return Node(name, levels[name], parents, np.array(values).reshape(shape), _carried(variable))


def _carried(variable: Element) -> str | None:
    for entry in variable.iterfind("PROPERTY"):
        key, _, value = (entry.text or "").partition("=")
        if key.strip() == KEY:
            return value.strip()
    return None


def _text(element: Element, tag: str) -> str:
    child = element.find(tag)
    if child is None:
        raise ValueError(f"a {element.tag} has no {tag}")
    return (child.text or "").strip()


def _parse(xml: bytes, encoding: str | None) -> Element:
    """Tree of XML that may declare elements (Weka's does) but no entities: nothing expands or is loaded."""
    parser, builder = expat.ParserCreate(encoding), TreeBuilder()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise ValueError("the XML is nested too deeply")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = parser.SkippedEntityHandler = _refuse_entity
    try:
        parser.Parse(xml, True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: an encoding that nobody knows
        raise ValueError(f"not valid XML, or cut short ({error})") from None
    return builder.close()


def _refuse_entity(*_: Any) -> NoReturn:
    raise ValueError("the XML declares or uses entities of its own, which is refused: they can expand without end")
