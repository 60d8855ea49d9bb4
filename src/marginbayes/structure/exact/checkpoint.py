"""A search in a file: written whole or not at all, and read again only for the problem it belongs to."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Multipliers
from marginbayes.structure.exact.incumbent import Incumbent
from marginbayes.structure.exact.instance import Instance
from marginbayes.structure.exact.node import Basis, Node, Start, Task, divided
from marginbayes.structure.exact.proof import Proof
from marginbayes.structure.exact.tree import Search
from marginbayes.writing import replacing

__all__ = ["Checkpoint", "load_search", "save_search"]

VERSION = 7


class Checkpoint:
    """A file that is brought up to date every so many seconds."""

    def __init__(self, path: str | Path | None, seconds: float) -> None:
        self.path = None if path is None else Path(path)
        self.seconds, self.last = seconds, time.perf_counter()

    def resume(self, instance: Instance, gap: float) -> Search | None:
        """The search in the file, or None where there is no file yet."""
        if self.path is None or not self.path.exists():
            return None
        search = load_search(self.path, instance)
        if search.pruned - search.incumbent.objective > search.tolerance(gap):
            raise ValueError(
                f"the checkpoint {self.path} was written with a greater gap and has cut off what gap={gap!r} asks for; "
                "name another file, or remove it to start anew"
            )
        return search

    def tick(self, search: Search) -> None:
        """Write the file if it is time."""
        if self.path is not None and time.perf_counter() - self.last >= self.seconds:
            self.write(search)

    def write(self, search: Search) -> None:
        """Write the file now; where that fails, the earlier one stays and the search goes on."""
        if self.path is None:
            return
        try:
            save_search(self.path, search)
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} was not written: {error.strerror or error}", RuntimeWarning, stacklevel=2
            )
        self.last = time.perf_counter()


def fingerprint(instance: Instance) -> str:
    """What a search depends on: data, margin, rules and seed."""
    found = hashlib.sha256()
    samples = instance.samples
    for array in (samples.codes, samples.weights, instance.allowed):
        found.update(np.ascontiguousarray(array).tobytes())
    rest = [
        VERSION,
        instance.margin,
        instance.gamma,
        instance.smoothing,
        instance.seed,
        instance.tops,
        samples.cardinalities,
    ]
    found.update(json.dumps(rest).encode())
    return found.hexdigest()


def save_search(path: Path, search: Search) -> None:
    """Write a search to a file, whole or not at all."""
    starts, own = _Pool(), _Pool()
    nodes = search.open_nodes
    places = [starts.position(node.start) for node in nodes]
    kept: list[Start] = starts.items
    known = [search.proof.known(s.multipliers) for s in kept]
    # Multipliers that are not on record yet have numbers below zero.
    by = [-1 - own.position(s.multipliers) if k < 0 else k for s, k in zip(kept, known, strict=True)]
    meta = {
        "fingerprint": fingerprint(search.instance),
        "objective": search.incumbent.objective,
        "top": search.incumbent.top,
        "nodes": search.nodes,
        "pruned": search.pruned,
        "seconds": search.elapsed,
        "tasks": [[task.cutoff, task.parts, task.climbs] for task in search.tasks],
        "trace": search.trace,
        "clusters": [[np.flatnonzero(c).tolist() for c in s.clusters] for s in kept],
    }
    arrays: dict[str, NDArray[Any]] = {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "choice": search.incumbent.choice,
        "node": np.array([[n.part, n.top, k] for n, k in zip(nodes, places, strict=True)], np.int64).reshape(-1, 3),
        "bound": np.array([n.bound for n in nodes]),
        "packed": np.array([n.packed for n in nodes], np.uint8),
        "start_multipliers": np.array(by, np.int64),
        **_ragged("own_rows", [m.rows for m in own.items], np.int32),
        **_ragged("own_shares", [m.shares for m in own.items], np.int32),
        **_ragged("slots", [s.slots for s in kept], np.int32),
        **_ragged("values", [s.values for s in kept], np.float32),
        **_ragged("tight", [s.basis.tight for s in kept], np.int32),
        **_ragged("free", [s.basis.free for s in kept], np.int32),
        **_ragged("references", [s.basis.references for s in kept], np.int32),
        **{f"proof_{name}": array for name, array in search.proof.arrays().items()},
    }
    _write(path, arrays)


class _Pool:
    """Things that several parts share, each once."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._known: dict[int, int] = {}

    def position(self, item: Any) -> int:
        if id(item) not in self._known:
            self._known[id(item)] = len(self.items)
            self.items.append(item)
        return self._known[id(item)]


def load_search(path: Path, instance: Instance) -> Search:
    """The search in a file; refuses one of another problem."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays["meta"].tobytes())
        found = meta["fingerprint"]
    except OSError as error:
        raise ValueError(f"the checkpoint {path} cannot be read ({error.strerror or error})") from None
    except (ValueError, TypeError, AttributeError, KeyError, EOFError, BadZipFile):
        raise ValueError(
            f"the checkpoint {path} cannot be read: it is no checkpoint of this program, or a damaged one; "
            "name another file"
        ) from None
    if found != fingerprint(instance):
        raise ValueError(
            f"the checkpoint {path} belongs to other data, margin, constraints or seed; "
            "name another file, or remove it to start anew"
        )
    return _search(instance, arrays, meta)


def _search(instance: Instance, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Search:
    proof = Proof.from_arrays({name.removeprefix("proof_"): a for name, a in arrays.items() if "proof_" in name})
    own = [Multipliers(*pair) for pair in zip(_parts(arrays, "own_rows"), _parts(arrays, "own_shares"), strict=True)]
    by = arrays["start_multipliers"].tolist()
    shared = {k: proof.at(k) if k >= 0 else own[-1 - k] for k in sorted(set(by))}
    starts = [
        Start(places, values, shared[k], _members(clusters, instance.n_features), Basis(*basis))
        for places, values, k, clusters, *basis in zip(
            _parts(arrays, "slots"),
            _parts(arrays, "values"),
            by,
            meta["clusters"],
            *(_parts(arrays, name) for name in ("tight", "free", "references")),
            strict=True,
        )
    ]
    search = Search(instance, Incumbent(meta["top"], arrays["choice"], meta["objective"]), proof)
    nodes = [
        Node(part, top, packed, bound, starts[start])
        for (part, top, start), bound, packed in zip(
            arrays["node"].tolist(), arrays["bound"].tolist(), arrays["packed"], strict=True
        )
    ]
    search.tasks.extend(Task(node, *how) for node, how in zip(nodes, meta["tasks"], strict=False))
    for node in nodes[len(search.tasks) :]:
        search.push(node)
    search.nodes, search.pruned, search.seconds = meta["nodes"], meta["pruned"], meta["seconds"]
    search.trace = [tuple(point) for point in meta["trace"]]
    return search


def _members(clusters: Sequence[Sequence[int]], n: int) -> NDArray[np.bool_]:
    """Clusters of features as lines of flags."""
    lines = np.zeros((len(clusters), n), bool)
    for line, cluster in zip(lines, clusters, strict=True):
        line[cluster] = True
    return lines


def _ragged(name: str, parts: Sequence[NDArray[Any]], dtype: type) -> dict[str, NDArray[Any]]:
    """Arrays of different lengths as one, and where each ends."""
    joined: NDArray[Any] = np.concatenate([*parts, np.empty(0, dtype)]).astype(dtype)
    return {name: joined, f"{name}_end": np.cumsum([len(p) for p in parts], dtype=np.int64)}


def _parts(arrays: dict[str, NDArray[Any]], name: str) -> list[NDArray[Any]]:
    return divided(arrays[name], arrays[f"{name}_end"])


def _write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
