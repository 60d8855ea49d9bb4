"""OpenML sets, fetched from a server on this machine that answers as OpenML does."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas", reason="data sets are pandas frames")

from marginbayes import datasets
from marginbayes.datasets import openml

ROWS = (
    "@relation zoo\n@attribute animal string\n@attribute legs integer\n@attribute hair {false,true}\n"
    "@attribute type {mammal,bird}\n@attribute tame {0,1}\n@data\n"
    "bear,4,true,mammal,0\ndove,2,false,bird,1\nmouse,4,?,mammal,1\n"
)


class FakeOpenML:
    """Answers by path, and the paths that were asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.url = ""

    def add(self, number: int, rows: str, **changes: Any) -> None:
        """Serve a data set; an entry of its description can be changed, or removed by None."""
        description = {
            "id": str(number),
            "name": "zoo",
            "format": "ARFF",
            "url": f"{self.url}/download/{number}/zoo.arff",
            "default_target_attribute": "type",
            "description": "Animals.",
            "md5_checksum": hashlib.md5(rows.encode(), usedforsecurity=False).hexdigest(),
        }
        description = {key: value for key, value in {**description, **changes}.items() if value is not None}
        self.answers[f"/data/{number}"] = 200, json.dumps({"data_set_description": description}).encode()
        self.answers[f"/download/{number}/zoo.arff"] = 200, rows.encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenML]:
    fake = FakeOpenML()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.asked.append(self.path)
            # OpenML says 412 for a number that it does not know.
            status, body = fake.answers.get(self.path, (412, b'{"error":{"code":"111"}}'))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        fake.url = f"http://127.0.0.1:{http.server_address[1]}"
        monkeypatch.setattr(openml, "SERVER", fake.url)
        yield fake
        http.shutdown()
        thread.join()


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_set_is_fetched_once_and_then_read_from_the_cache(server: FakeOpenML, tmp_path: Path) -> None:
    server.add(62, ROWS)
    first = datasets.load("openml:62")
    assert first.X.shape == (3, 4)
    assert first.y.tolist() == ["mammal", "bird", "mammal"]
    assert first.kinds == {
        "animal": "categorical",
        "legs": "numeric",
        "hair": "categorical",
        "tame": "categorical",
    }
    assert first.description == "Animals."
    assert "openml.org/d/62" in first.source
    assert files_in(tmp_path / "cache") == ["data.arff", "description.json"]
    server.answers.clear()
    assert datasets.load("openml:62").X.equals(first.X)
    assert server.asked == ["/data/62", "/download/62/zoo.arff"]


def test_ignored_columns_and_further_targets_are_kept_apart(server: FakeOpenML) -> None:
    server.add(62, ROWS, ignore_attribute=["animal"], default_target_attribute="type,tame")
    data = datasets.load("openml:62")
    assert list(data.X) == ["legs", "hair"]
    assert data.ids is not None
    assert data.ids["animal"].tolist() == ["bear", "dove", "mouse"]
    assert data.targets is not None
    assert data.targets["tame"].tolist() == ["0", "1", "1"]
    assert datasets.load("openml:62", complete=True, keep_ids=True).X["animal"].tolist() == ["bear", "dove"]


def test_a_row_id_and_an_ignored_column_may_be_the_same(server: FakeOpenML) -> None:
    server.add(62, ROWS, ignore_attribute="animal", row_id_attribute="animal", default_target_attribute="tame")
    data = datasets.load("openml:62")
    assert list(data.X) == ["legs", "hair", "type"]
    assert data.y.tolist() == [0, 1, 1]


def test_where_and_fetch_say_where_it_lies(server: FakeOpenML, tmp_path: Path) -> None:
    server.add(62, ROWS)
    assert datasets.where("openml:62") == "https://www.openml.org/d/62 (not fetched yet)"
    folder = str(tmp_path / "cache" / "openml" / "62")
    assert datasets.fetch("openml:62") == folder
    assert datasets.where("openml:62") == folder
    datasets.fetch("openml:62")
    assert len(server.asked) == 2
    datasets.fetch("openml:62", refresh=True)
    assert len(server.asked) == 4


def test_the_cache_folder_can_be_given(server: FakeOpenML, tmp_path: Path) -> None:
    server.add(62, ROWS)
    datasets.load("openml:62", cache=tmp_path / "other")
    assert files_in(tmp_path / "other") == ["data.arff", "description.json"]


def test_a_catalogued_name_is_fetched_by_its_number_and_checked_by_its_title(server: FakeOpenML) -> None:
    server.add(40, ROWS)
    with pytest.raises(ValueError, match="OpenML data set 40 should be 'sonar', but it is called 'zoo'"):
        datasets.load("sonar")
    server.add(40, ROWS, name="sonar")
    assert datasets.load("sonar").name == "sonar"


def test_mnist_from_openml_has_its_split_by_row_order(server: FakeOpenML) -> None:
    pixels = "".join(f"@attribute pixel{i} integer\n" for i in range(1, 5))
    rows = f"@relation m\n{pixels}@attribute class {{0,1}}\n@data\n" + "0,1,2,3,1\n" * 60_002
    server.add(554, rows, name="mnist_784", default_target_attribute="class")
    whole, small = datasets.load("mnist"), datasets.load("mnist-14x14")
    assert [len(part) for part in whole.split()] == [60_000, 60_000, 2, 2]
    assert small.X["pixel_0_0"].eq(1.5).all()
    assert len(small.split()[2]) == 2


def test_a_damaged_download_leaves_nothing_behind(server: FakeOpenML, tmp_path: Path) -> None:
    server.add(62, ROWS, md5_checksum="0" * 32)
    with pytest.raises(ValueError, match=r"data set 62 arrived damaged \(md5 \w{32} instead of 0{32}\)"):
        datasets.load("openml:62")
    assert files_in(tmp_path) == []


def test_a_failed_refresh_leaves_the_old_copy(server: FakeOpenML) -> None:
    server.add(62, ROWS)
    datasets.fetch("openml:62")
    server.add(62, ROWS, md5_checksum="0" * 32)
    with pytest.raises(ValueError, match="arrived damaged"):
        datasets.fetch("openml:62", refresh=True)
    assert len(datasets.load("openml:62").X) == 3


def test_a_file_damaged_in_the_cache_is_noticed(server: FakeOpenML) -> None:
    server.add(62, ROWS)
    folder = Path(datasets.fetch("openml:62"))
    (folder / "data.arff").write_text(ROWS.replace("bear", "boar"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"data\.arff is damaged .* delete the folder"):
        datasets.load("openml:62")
    (folder / "data.arff").unlink()
    with pytest.raises(ValueError, match=r"data\.arff is missing: delete the folder"):
        datasets.load("openml:62")
    (folder / "description.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"description\.json is damaged: delete the folder"):
        datasets.load("openml:62")


def test_an_unknown_number_is_one_sentence(server: FakeOpenML) -> None:
    with pytest.raises(ValueError, match=r"^OpenML has no data set 99999999$"):
        datasets.load("openml:99999999")
    assert server.asked == ["/data/99999999"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"format": "Sparse_ARFF"}, "has the format 'Sparse_ARFF'; only dense ARFF is read"),
        ({"md5_checksum": None}, "lacks 'md5_checksum', so it cannot be verified"),
        ({"url": "file:///etc/passwd"}, "which is not a web address"),
        ({"default_target_attribute": None}, "names no target for data set 62"),
        (
            {"default_target_attribute": "kind"},
            "default_target_attribute is 'kind', but .* has no such column",
        ),
        ({"default_target_attribute": "hair"}, r"row 3 has no class \('hair'\)"),
    ],
)
def test_a_description_that_cannot_be_used_is_one_sentence(
    server: FakeOpenML, changes: dict[str, Any], match: str
) -> None:
    server.add(62, ROWS, **changes)
    with pytest.raises(ValueError, match=match):
        datasets.load("openml:62")


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"[]", b'{"error": 1}', b"\xff"])
def test_an_answer_that_is_no_description_is_one_sentence(server: FakeOpenML, body: bytes) -> None:
    server.answers["/data/62"] = 200, body
    with pytest.raises(ValueError, match="OpenML's description of data set 62 cannot be read"):
        datasets.load("openml:62")


def test_a_failing_server_is_one_sentence_with_a_remedy(server: FakeOpenML) -> None:
    server.answers["/data/62"] = 503, b"busy"
    with pytest.raises(ConnectionError, match=r"could not be fetched from OpenML .*MARGINBAYES_DATA") as caught:
        datasets.load("openml:62")
    assert "\n" not in str(caught.value)


def test_no_network_is_one_sentence_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        # Bound but not listening: connections are refused.
        monkeypatch.setattr(openml, "SERVER", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ConnectionError, match=r"data set 40 could not be fetched from OpenML .*check the network"):
            datasets.load("sonar")
    assert files_in(tmp_path) == []


def test_the_cache_is_the_argument_else_the_variable_else_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert openml.cache_home() == tmp_path / "cache"
    assert openml.cache_home(tmp_path / "x") == tmp_path / "x"
    monkeypatch.delenv("MARGINBAYES_CACHE")
    assert openml.cache_home().name == "marginbayes"
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert openml.cache_home() == tmp_path / "xdg" / "marginbayes"
