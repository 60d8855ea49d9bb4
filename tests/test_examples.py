"""Examples that need data say so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_example_of_proteins_without_its_data_ends_in_one_sentence() -> None:
    outside = {name: value for name, value in os.environ.items() if name != "MARGINBAYES_DATA"}
    command = [sys.executable, "examples/protein.py"]
    ended = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == (
        "not in the data home: protein-qs, cb513; MARGINBAYES_DATA names the folder that has them\n"
    )
