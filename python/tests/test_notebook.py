"""``vramscope.show`` of the installed package, in a real kernel.

nbclient runs the notebook. The test then asks for pieces as the browser does. ``web/e2e`` tests
what the browser makes of them.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import nbclient
import nbformat
import pytest

import vramscope

DATA = pathlib.Path(__file__).parents[2] / "test_data"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")
PACKED = DATA / "recorded" / "gpt_leak.pickle.gz"
SCENARIO = DATA / "scenarios" / "f01.pickle"


class Browser:
    """A front end of a widget: sends its messages to the kernel, and takes the answers."""

    def __init__(self, client: nbclient.NotebookClient, output: Any) -> None:
        self.client = client
        [view] = [value for key, value in output["data"].items() if "widget-view" in key]
        self.model = view["model_id"]

    @property
    def state(self) -> dict[str, Any]:
        """The traits that a browser gets when the widget is shown."""
        return self.client.widget_state[self.model]

    def send(self, data: dict[str, Any]) -> None:
        content = {"comm_id": self.model, "data": data}
        session = self.client.kc.session
        self.client.kc.shell_channel.send(session.msg("comm_msg", content))

    async def answer(self) -> tuple[dict[str, Any], list[bytes]]:
        """The next message of the widget."""
        while True:
            message = await self.client.kc.get_iopub_msg(timeout=60)
            if message["msg_type"] != "comm_msg":
                continue
            data = message["content"]["data"]
            if data["method"] == "custom":
                return data["content"], [bytes(buffer) for buffer in message["buffers"]]

    async def piece(self, part: int | str, at: int) -> tuple[dict[str, Any], bytes]:
        """A piece, and what was sent with it."""
        asked = {"kind": "read", "id": f"{part} {at}", "part": part, "at": at}
        self.send({"method": "custom", "content": asked})
        content, buffers = await self.answer()
        assert content["id"] == asked["id"]
        if content["kind"] == "failed":
            return content, b""
        [sent] = buffers
        return content, gzip.decompress(sent) if content["gzip"] else sent

    async def read(self, part: int | str) -> bytes:
        """A whole part."""
        read = b""
        while True:
            content, piece = await self.piece(part, len(read))
            assert content["kind"] == "piece", content
            read += piece
            if len(read) >= content["bytes"] or not piece:
                return read


def run(folder: pathlib.Path, *cells: str, then: Callable[..., Awaitable[None]]) -> None:
    """Runs a notebook, then ``then(browser, execute)`` with the output of its last cell."""

    async def whole() -> None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        resources = {"metadata": {"path": str(folder)}}
        client = nbclient.NotebookClient(notebook, timeout=120, resources=resources)
        async with client.async_setup_kernel():
            outputs: list[Any] = []

            async def execute(code: str) -> str:
                """What a cell prints."""
                cell = nbformat.v4.new_code_cell(code)
                notebook.cells.append(cell)
                await client.async_execute_cell(cell, len(notebook.cells) - 1)
                return "".join(output["text"] for output in cell.outputs)

            for index, cell in enumerate(notebook.cells):
                await client.async_execute_cell(cell, index)
                outputs = cell.outputs
            [output] = outputs
            await then(Browser(client, output), execute)

    asyncio.run(whole())


def test_a_notebook_carries_viewer_and_file(tmp_path: pathlib.Path) -> None:
    async def then(browser: Browser, execute: Any) -> None:
        assert browser.state["_model_module"] == "anywidget"
        size = PACKED.stat().st_size
        options = browser.state["options"]
        assert options["files"] == [{"name": PACKED.name, "bytes": size}]
        assert options["state"] == {"view": "flame"}
        # The notebook's file stays small: it stores this script only.
        assert "export" in browser.state["_esm"] and len(browser.state["_esm"]) < 10_000
        assert await browser.read(0) == PACKED.read_bytes()
        assert (await browser.read("script")).startswith(b'"use strict";var vramscope=')
        for part in ("view", "worker"):
            assert (await browser.read(part)).startswith(b"\0asm")
        for part in (1, -1, "nothing", None):
            content, _ = await browser.piece(part, 0)  # type: ignore[arg-type]
            assert content["kind"] == "failed"

    show = f"import vramscope\nvramscope.show({str(PACKED)!r}, view='flame')"
    run(tmp_path, show, then=then)


def test_large_files_come_in_pieces_below_the_limit_of_jupyter(tmp_path: pathlib.Path) -> None:
    # Incompressible text beside a snapshot: more than two pieces.
    noise = os.urandom(9 << 20)
    large = {**pickle.loads(SCENARIO.read_bytes()), "unused": noise}
    (tmp_path / "large.pickle").write_bytes(pickle.dumps(large))

    async def then(browser: Browser, execute: Any) -> None:
        path = tmp_path / "large.pickle"
        assert await browser.read(0) == path.read_bytes()
        content, piece = await browser.piece(0, 1 << 20)
        assert len(piece) == 4 << 20 and not content["gzip"]
        path.write_bytes(path.read_bytes() + b"more")
        content, _ = await browser.piece(0, 0)
        assert content == {"id": "0 0", "kind": "failed", "message": content["message"]}
        assert "has changed: run the cell again" in content["message"]

    run(tmp_path, "import vramscope\nvramscope.show('large.pickle')", then=then)


def test_a_snapshot_in_memory_and_what_is_selected(tmp_path: pathlib.Path) -> None:
    async def then(browser: Browser, execute: Any) -> None:
        sent = await browser.read(0)
        assert pickle.loads(sent) == pickle.loads(SCENARIO.read_bytes())
        (tmp_path / "sent.pickle").write_bytes(sent)
        told = [PROGRAM, "summary", tmp_path / "sent.pickle", "--format", "json"]
        assert json.loads(subprocess.check_output(told))["files"][0]["devices"]
        # What the browser tells when a block is clicked.
        assert await execute("print(w.selected, w.finding, w.cursor)") == "None None None\n"
        selected = {"reference": "0:0x1000@1", "bytes": 1000, "frames": []}
        browser.send({"method": "update", "state": {"selected": selected, "cursor": -1}})
        assert await execute("print(w.selected['bytes'], w.cursor)") == "1000 -1\n"
        assert await execute("print(seen)") == "['0:0x1000@1']\n"

    snapshot = f"import pickle, vramscope\nsnapshot = pickle.load(open({str(SCENARIO)!r}, 'rb'))"
    observe = (
        "w = vramscope.show(snapshot)\nseen = []\n"
        "w.observe(lambda change: seen.append(change.new['reference']), 'selected')"
    )
    run(tmp_path, snapshot, observe, "w", then=then)


def test_the_reader_and_the_file_beside_a_snapshot(tmp_path: pathlib.Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(SCENARIO, tmp_path / folder / "rank0.pickle")
    (tmp_path / "a" / "rank0.vramscope.json").write_text('{"version": 1}')
    one = vramscope.open(tmp_path / "a" / "rank0.pickle")
    widget = vramscope.show(one, device=0)
    assert [file["name"] for file in widget.options["files"]] == [
        "rank0.pickle",
        "rank0.vramscope.json",
    ]
    assert widget.options["state"] == {"path": "rank0.pickle", "part": 0, "device": 0}
    told: list[object] = []
    widget.send = lambda content, buffers=None: told.append(content)
    widget.select("0:0x1000@1")
    assert told == [{"kind": "select", "reference": "0:0x1000@1"}]
    both = vramscope.show(vramscope.open_run(tmp_path), theme="dark")
    assert [file["name"] for file in both.options["files"]] == [
        "a/rank0.pickle",
        "a/rank0.vramscope.json",
        "b/rank0.pickle",
    ]
    assert repr(widget) == "<vramscope viewer of rank0.pickle, rank0.vramscope.json>"


def test_errors_name_the_file_and_its_size(tmp_path: pathlib.Path) -> None:
    with pytest.raises(
        vramscope.ReadError, match=r"absent.pickle: it cannot be read: No such file"
    ):
        vramscope.show(tmp_path / "absent.pickle")
    with pytest.raises(vramscope.ReadError, match=r"it is a folder\nvramscope.show"):
        vramscope.show(tmp_path)
    with pytest.raises(vramscope.ReadError, match=r"has 1,462 bytes, and .* at most 1,000\n"):
        vramscope.show(SCENARIO, max_bytes=1000)
    with pytest.raises(TypeError, match="a list is no snapshot"):
        vramscope.show([])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="theme is 'pink'"):
        vramscope.show(SCENARIO, theme="pink")


def test_without_anywidget_show_says_what_to_install(tmp_path: pathlib.Path) -> None:
    (tmp_path / "anywidget.py").write_text("raise ModuleNotFoundError('none', name='anywidget')")
    code = f"import vramscope\nvramscope.show({str(SCENARIO)!r})"
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "pip install 'vramscope[notebook]'" in told.stderr
