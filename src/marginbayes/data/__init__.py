"""From a data frame to encoded rows: columns, schema, discretisation, and sums over blocks of rows."""

from marginbayes.data.frame import Frame, read_frame
from marginbayes.data.rows import Block, Rows
from marginbayes.data.schema import Schema, Variable

__all__ = ["Block", "Frame", "Rows", "Schema", "Variable", "read_frame"]
