"""`marginbayes verify`: check a certificate against the data it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbayes.cli import options
from marginbayes.cli.console import output, printable, working

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from marginbayes.cli.tables import Table
    from marginbayes.verification import Report

REFUSED = 1

CertificateFile = Annotated[
    Path,
    typer.Argument(
        metavar="CERTIFICATE", help="A file that 'marginbayes fit --certificate' wrote (.json).", show_default=False
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COL",
        help="The column of the class, if it is called differently in the certificate.",
        show_default=False,
    ),
]


def verify(
    certificate: CertificateFile,
    data: options.Data,
    target: Target = None,
    weight: options.Weight = None,
    class_weight: options.ClassWeightOption = None,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
) -> None:
    """Check a certificate: objective and bound are computed anew from the data, by code that shares nothing with the
    solver. Exit code 1, and the reason, for a certificate that does not hold.

    Example: `marginbayes verify proof.json patients.csv`
    """
    from marginbayes.cli.tables import Reading, read_data
    from marginbayes.verification import CertificateError
    from marginbayes.verification.document import check_document

    document = _read(certificate)
    try:
        check_document(document)
        schema = _schema(document, certificate)
        table = read_data(data, Reading(separator, encoding, decimal), _texts(schema))
        columns, weights = _columns(schema, table, target, weight, class_weight)
        with working(f"verifying {certificate}") as tell:
            report = _verified(document, columns, weights, lambda done, of: tell(f"{done} of {of} parts"))
    except CertificateError as error:
        output().print(f"refused: {printable(error)}", soft_wrap=True)
        raise typer.Exit(REFUSED) from None
    output().print(
        f"holds: {report.kind}, objective {report.objective:.10g}, bound {report.bound:.10g}, gap {report.gap:.2g}; "
        f"the solver's status was {printable(document['status'])!r}",
        soft_wrap=True,
    )


def _verified(
    document: Mapping[str, Any],
    columns: dict[str, list[Any]],
    weights: NDArray[np.float64] | None,
    progress: Callable[[int, int], None],
) -> Report:
    """What a certificate proves about a table; a refusal asks the question that comes first."""
    from marginbayes.verification import CertificateError, verify_table

    try:
        return verify_table(document, columns, weights, progress=progress)
    except CertificateError as error:
        raise CertificateError(f"{error} (is this the table that it was made from?)") from None


def _read(path: Path) -> dict[str, Any]:
    """The document in a file; what does not call itself a certificate is bad input, not one that fails."""
    from marginbayes.verification import CertificateError, read_document
    from marginbayes.verification.document import FORMAT

    if path.is_dir() or not path.exists():
        raise FileNotFoundError(f"{path} is a folder" if path.is_dir() else f"there is no file {path}")
    try:
        document = read_document(path)
    except CertificateError as error:
        raise ValueError(str(error)) from None
    if document.get("format") != FORMAT:
        raise ValueError(f"{path} is no certificate; 'marginbayes fit --certificate FILE' writes one")
    return document


def _schema(document: Mapping[str, Any], path: Path) -> Sequence[Mapping[str, Any]]:
    schema = document["schema"]
    if not schema:
        raise ValueError(f"{path} does not say how cells become codes; check it in Python with the encoded rows")
    return list(schema)


def _texts(schema: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns whose levels are strings: to be read as such, so that "007" does not become 7."""
    known = {v["name"]: [level for level in v["levels"] if level is not None] for v in schema[1:] if v["cuts"] is None}
    return [name for name, levels in known.items() if levels and all(isinstance(level, str) for level in levels)]


def _columns(
    schema: Sequence[Mapping[str, Any]],
    table: Table,
    target: str | None,
    weight: str | None,
    class_weight: options.ClassWeight | None,
) -> tuple[dict[str, list[Any]], NDArray[np.float64] | None]:
    """Cells by the names of the certificate, and weights; rows without a label are left out, as they are at fit."""
    from marginbayes.cli.tables import check_column, training

    label = schema[0]["name"]
    if target in {variable["name"] for variable in schema[1:]}:
        raise ValueError(f"{target!r} is a feature of this certificate; its class is {label!r}")
    own = target or (label if label in table.frame.columns else table.target or label)
    rows = training(table, own, (), weight)
    for variable in schema[1:]:
        check_column(variable["name"], table)
    columns = {v["name"]: _cells(rows.X[v["name"]]) for v in schema[1:]}
    columns[label] = rows.y.tolist()
    if class_weight is None:
        return columns, rows.weights
    from marginbayes.estimators.weights import check_weights  # all estimators come with it

    return columns, check_weights(rows.weights, class_weight.value, rows.y)


def _cells(column: Any) -> list[Any]:
    """Cells of a pandas column, None where one is missing."""
    return [None if gone else cell for cell, gone in zip(column.tolist(), column.isna(), strict=True)]
