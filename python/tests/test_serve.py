"""``vramscope serve`` of the installed package: real processes, real sockets, a stand-in browser.

``VRAMSCOPE`` names the console script that the wheel installed.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

SNAPSHOT = pathlib.Path(__file__).parents[2] / "test_data/recorded/oom_expandable.pickle.gz"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")
#: Of an address range for documents (RFC 5737), which no machine has.
OF_NO_MACHINE = "203.0.113.7"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


class Served:
    """A server, and a folder in which its browser notes what it was told to open."""

    def __init__(self, folder: pathlib.Path, *options: str, **environ: str) -> None:
        self.opened = folder / "opened"
        self.temporary = folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        tools = folder / "tools"
        tools.mkdir(exist_ok=True)
        # The program starts the first browser that it finds.
        for name in ("xdg-open", "wslview", "open"):
            browser = tools / name
            browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{self.opened}"\n')
            browser.chmod(0o755)
        names = ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY")
        clean = {name: value for name, value in os.environ.items() if name not in names}
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *options, str(SNAPSHOT)],
            env={
                **clean,
                "PATH": f"{tools}{os.pathsep}{clean['PATH']}",
                "TMPDIR": str(self.temporary),
                **environ,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # `select` sees nothing of what a buffer holds.
            bufsize=0,
        )

    def lines(self) -> list[str]:
        """The lines up to the address."""
        assert self.process.stdout is not None
        lines: list[str] = []
        while not (lines and "http://" in lines[-1]):
            assert select.select([self.process.stdout], [], [], 20)[0], lines
            line = self.process.stdout.readline()
            assert line, (lines, self.process.communicate()[1])
            lines.append(line.decode().rstrip("\n"))
        return lines


@contextlib.contextmanager
def serve(folder: pathlib.Path, *options: str, **environ: str) -> Iterator[Served]:
    served = Served(folder, *options, **environ)
    try:
        yield served
    finally:
        served.process.kill()
        served.process.communicate()


def address_in(line: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", line)
    assert found is not None, line
    return found[0]


def port_of(address: str) -> str:
    return address.split(":")[2].split("/")[0]


def own_address() -> str | None:
    """An address of this machine that another one could reach; ``None`` without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            # Sends nothing: it selects the interface.
            route.connect((OF_NO_MACHINE, 9))
        except OSError:
            return None
        address = route.getsockname()[0]
        return None if address.startswith("127.") else str(address)


def test_the_page_is_served_until_it_is_interrupted(tmp_path: pathlib.Path) -> None:
    with serve(tmp_path, "--no-open") as served:
        (line,) = served.lines()
        address = address_in(line)
        assert line == f"vramscope serves 1 file at {address} (Ctrl-C stops it)"
        with urllib.request.urlopen(address) as page:
            assert b"<title>vramscope" in page.read()
        assert list(served.temporary.iterdir()) == []
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(timeout=20) == 0


def test_over_ssh_the_lines_of_the_other_machine_are_printed(tmp_path: pathlib.Path) -> None:
    own = own_address()
    connection = f"198.51.100.9 50312 {own or '127.0.0.1'} 22"
    with serve(tmp_path, SSH_CONNECTION=connection, USER="ada") as served:
        lines = served.lines()
        address = address_in(lines[-1])
        port = port_of(address)
        assert lines[0] == "vramscope serves 1 file (Ctrl-C stops it)"
        assert lines[2] == f"  ssh -L {port}:localhost:{port} ada@{own or 'HOST'}"
        assert lines[3:] == ["Then open there:", f"  {address}"]
        assert all(len(line) <= 100 for line in lines)
        with urllib.request.urlopen(address) as page:
            assert b"<title>vramscope" in page.read()
        # No file for a browser: it would be there before the first answer.
        assert list(served.temporary.iterdir()) == []


@pytest.mark.parametrize(
    "connection", [f"198.51.100.9 50312 {OF_NO_MACHINE} 22", "fe80::2%eth0 1 fe80::1%eth0 22", "1"]
)
def test_an_address_that_is_not_of_this_machine_is_not_printed(
    connection: str, tmp_path: pathlib.Path
) -> None:
    with serve(tmp_path, SSH_CONNECTION=connection, USER="ada") as served:
        lines = served.lines()
        port = port_of(address_in(lines[-1]))
        assert lines[2] == f"  ssh -L {port}:localhost:{port} ada@HOST"


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"SSH_CONNECTION": ""},
        {"SSH_CONNECTION": "198.51.100.9 1 127.0.0.1 22", "DISPLAY": "localhost:10.0"},
        {"SSH_CONNECTION": "198.51.100.9 1 127.0.0.1 22", "WAYLAND_DISPLAY": "wayland-0"},
    ],
)
def test_a_browser_opens_where_it_can_be_seen(
    environ: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with serve(tmp_path, **environ) as served:
        address = address_in(served.lines()[-1])
        until = time.monotonic() + 20
        while not (served.opened.exists() and served.opened.read_text()):
            assert time.monotonic() < until, "no browser was started"
            time.sleep(0.05)
        file = pathlib.Path(served.opened.read_text().strip())
        assert list(served.temporary.iterdir()) == [file]
        assert address in file.read_text()


def test_a_taken_port_is_an_error_only_if_it_was_asked_for(tmp_path: pathlib.Path) -> None:
    with serve(tmp_path, "--no-open") as first:
        taken = port_of(address_in(first.lines()[-1]))
        with serve(tmp_path, "--no-open", "--port", taken) as refused:
            said, error = refused.process.communicate(timeout=20)
        assert (refused.process.returncode, said) == (2, b"")
        assert error.decode() == (
            f"vramscope: cannot listen on port {taken} of 127.0.0.1: another program listens "
            "there. Choose another port with --port N, or leave --port out for the next free one.\n"
        )
        with serve(tmp_path, "--no-open") as second:
            assert port_of(address_in(second.lines()[-1])) != taken


def test_the_asked_port_is_in_both_lines(tmp_path: pathlib.Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with serve(tmp_path, "--port", port, SSH_CONNECTION="1") as served:
        lines = served.lines()
        assert port_of(address_in(lines[-1])) == port
        assert f" -L {port}:localhost:{port} " in lines[2]
