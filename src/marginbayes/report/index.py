"""Numbers that open: every number of a page refers to the records it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from marginbayes.study.records import Record

__all__ = ["Index"]


class Index:
    """The records behind the numbers of a page, each embedded once, as each group of them is."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._records: list[dict[str, Any]] = []
        self._groups: dict[tuple[int, ...], int] = {}

    def opens(self, number: str, *groups: Iterable[Record]) -> str:
        """A number as a button that shows its records."""
        found = [tuple(self._number(r) for r in group) for group in groups]
        names = " ".join(str(self._groups.setdefault(g, len(self._groups))) for g in found if g)
        return f'<button data-groups="{names}">{number}</button>' if names else number

    def embedded(self) -> dict[str, Any]:
        """What the page's script looks up."""
        return {"records": self._records, "groups": [*self._groups]}

    def _number(self, record: Record) -> int:
        if record.key not in self._place:
            self._place[record.key] = len(self._records)
            shown = asdict(record)
            shown["result"] = {k: v for k, v in record.result.items() if k != "correct"}
            self._records.append(shown)
        return self._place[record.key]
