"""Files written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from marginbayes.solvers import Certificate
from marginbayes.verification.document import write_document
from marginbayes.writing import replacing, write_text


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"half of the new" * (1 // 0))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="links and modes are those of other systems")
def test_a_certificate_keeps_the_link_and_the_mode_of_the_file_it_replaces(tmp_path: Path) -> None:
    secret, link = tmp_path / "secret.json", tmp_path / "link.json"
    secret.write_text("old")
    secret.chmod(0o600)
    link.symlink_to(secret)
    document = Certificate("sum", "max", 1.0, 2.0, "time limit", 0.0, evidence={}).to_document()
    write_document(document, link)
    assert link.is_symlink()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert '"sum"' in secret.read_text()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        write_text(tmp_path / "nowhere" / "a.txt", "text")


def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    """255 bytes in most systems; a letter can take three."""
    path = tmp_path / ("\u6587" * 80 + ".json")
    write_text(path, "text")
    assert path.read_text() == "text"
