"""Opens the memory snapshot of the running process in vramscope's page: from a script, a debugger or a notebook.

    import vramscope_open
    torch.cuda.memory._record_memory_history()
    train()
    vramscope_open.show()     # in a browser
    vramscope_open.frame()    # in a notebook: below the cell, if it is the last line

It needs nothing but the program `vramscope` with the page in it (on the PATH, or named by VRAMSCOPE), and is one file to be
copied. The page is served to this machine only, at an address with a token in it, until Python ends; so long the snapshots
are kept, in a temporary folder.
"""

import atexit
import html
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import webbrowser


def serve(*paths):
    """Serves these files and folders; without any, a snapshot of now. Gives the address."""
    program = os.environ.get("VRAMSCOPE") or shutil.which("vramscope")
    if program is None:
        raise FileNotFoundError("the program vramscope is not on the PATH; VRAMSCOPE can name it")
    command = [program, "serve", "--no-open", *map(str, paths or [snapshot()])]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    atexit.register(server.terminate)
    said = server.stdout.readline()
    address = next((word for word in said.split() if word.startswith("http://")), None)
    if address is None:
        raise RuntimeError(
            f"vramscope serves nothing (status {server.wait()}): what it says is above"
        )
    return address


def show(*paths):
    """Serves them and opens a browser on this machine. Gives the address."""
    address = serve(*paths)
    webbrowser.open(address)
    return address


def frame(*paths, height=720):
    """Serves them, for a notebook to show the page below the cell; the notebook's browser must be on this machine."""
    return Frame(serve(*paths), height)


class Frame:
    """The page at an address, as notebooks show it."""

    def __init__(self, address, height):
        self.address = address
        self.height = height

    def _repr_html_(self):
        source = html.escape(f"{self.address}#mode=embedded")
        return f'<iframe src="{source}" style="width: 100%; height: {self.height:d}px; border: 0"></iframe>'


def snapshot():
    """Writes down what the allocator of this process has recorded. Gives the path."""
    import torch

    folder = tempfile.mkdtemp(prefix="vramscope-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = pathlib.Path(folder, f"rank{os.environ.get('RANK', '0')}_memory_snapshot.pickle")
    torch.cuda.memory._dump_snapshot(str(path))
    # It is whole, and need not be watched for growth.
    whole = time.time() - 60
    os.utime(path, (whole, whole))
    return path
