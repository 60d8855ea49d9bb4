"""Records of exact searches, number by number: out of their texts, into texts, and as the lists of earlier versions."""

from __future__ import annotations

import base64
import zlib
from itertools import accumulate
from typing import Any

NUMBERS = ("parent", "feature", "closed", "listed", "fix_part", "fix_feature", "fix_by")
OPTIONS = ("inside", "fix_options")
SETS, WHOLE = 256, 1 << 24


def text_of(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


def _raw(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def _entries(raw: bytes, width: int) -> list[int]:
    count = len(raw) // width
    return [int.from_bytes(raw[k::count], "little") for k in range(count)]


def _planes(numbers: list[int], width: int) -> bytes:
    lines = [number.to_bytes(width, "little") for number in numbers]
    return b"".join(bytes(line[k] for line in lines) for k in range(width))


def unpacked(proof: dict[str, Any], n_options: int) -> dict[str, Any]:
    """Columns as lists of numbers, options with a bit each; multipliers as pairs of lists, rows and shares."""
    found: dict[str, Any] = {}
    for name in NUMBERS:
        signs = [[u >> 1 if u % 2 == 0 else -(u >> 1) - 1 for u in _entries(_raw(t), 4)] for t in proof[name]]
        found[name] = [number for part in signs for number in accumulate(part)]
    for name, width in (("taken", 1), *((name, -(-n_options // 8)) for name in OPTIONS)):
        found[name] = [number for t in proof[name] for number in _entries(_raw(t), width)]
    found["multipliers"] = []
    for block, text in enumerate(proof["multipliers"]):
        found["multipliers"] += _sets(_raw(text), min(SETS, proof["sets"] - SETS * block))
    return found


def _sets(raw: bytes, count: int) -> list[tuple[list[int], list[int]]]:
    sizes, raw = _entries(raw[: 4 * count], 4), raw[4 * count :]
    total = sum(sizes)
    gaps, raw = _entries(raw[: 4 * total], 4), raw[4 * total :]
    flags, rest = int.from_bytes(raw[: -(-total // 8)], "little"), iter(_entries(raw[-(-total // 8) :], 4))
    shares = [WHOLE if flags >> k & 1 else next(rest) for k in range(total)]
    found = []
    for size in sizes:
        found.append((list(accumulate(gaps[:size])), shares[:size]))
        gaps, shares = gaps[size:], shares[size:]
    return found


def packed(columns: dict[str, Any], n_options: int) -> dict[str, Any]:
    """The record as texts."""
    proof: dict[str, Any] = {"format": "packed-1", "sets": len(columns["multipliers"])}
    for name in NUMBERS:
        changes = [b - a for a, b in zip([0, *columns[name]], columns[name], strict=False)]
        proof[name] = [text_of(_planes([2 * c if c >= 0 else -2 * c - 1 for c in changes], 4))]
    for name, width in (("taken", 1), *((name, -(-n_options // 8)) for name in OPTIONS)):
        proof[name] = [text_of(_planes(columns[name], width))]
    blocks = [columns["multipliers"][k : k + SETS] for k in range(0, len(columns["multipliers"]), SETS)]
    proof["multipliers"] = [text_of(_block(block)) for block in blocks]
    return proof


def _block(sets: list[tuple[list[int], list[int]]]) -> bytes:
    gaps = [b - a for rows, _ in sets for a, b in zip([0, *rows], rows, strict=False)]
    shares = [share for _, own in sets for share in own]
    flags = sum(1 << k for k, share in enumerate(shares) if share == WHOLE)
    return b"".join(
        [
            _planes([len(rows) for rows, _ in sets], 4),
            _planes([gap % 2**32 for gap in gaps], 4),
            flags.to_bytes(-(-len(shares) // 8), "little"),
            _planes([share % 2**32 for share in shares if share != WHOLE], 4),
        ]
    )


def listed(columns: dict[str, Any], n_options: int) -> dict[str, Any]:
    """The record as lists, as it was before there were texts."""
    slots = [
        [feature] if above < 0 else [feature * n_options + o for o in range(n_options) if inside >> o & 1]
        for above, feature, inside in zip(columns["parent"], columns["feature"], columns["inside"], strict=True)
    ]
    fixes: list[list[Any]] = [[] for _ in slots]
    of_fixes = (columns[name] for name in ("fix_part", "fix_feature", "fix_options", "fix_by"))
    for part, feature, options, by in zip(*of_fixes, strict=True):
        fixes[part].append([feature, hex(options), by])
    return {
        "parent": columns["parent"],
        "slots": slots,
        "taken": [bool(taken) for taken in columns["taken"]],
        "fixes": fixes,
        "closed": columns["closed"],
        "listed": columns["listed"],
        "multipliers": [one_text(*pair) for pair in columns["multipliers"]],
    }


def one_text(rows: list[int], shares: list[int]) -> str:
    """Multipliers in a text of their own."""
    gaps = [b - a for a, b in zip([0, *rows], rows, strict=False)]
    return text_of(b"".join(number.to_bytes(4, "little", signed=True) for number in (*gaps, *shares)))


def with_lists(document: dict[str, Any]) -> dict[str, Any]:
    """A certificate with its record as lists, not sealed."""
    evidence = document["evidence"]
    n_options = len(evidence["names"]) + 1
    rest = {key: value for key, value in document.items() if key != "digest"}
    return {**rest, "evidence": {**evidence, "proof": listed(unpacked(evidence["proof"], n_options), n_options)}}
