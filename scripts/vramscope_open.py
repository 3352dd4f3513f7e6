"""Opens the memory snapshot of the running process in vramscope's page.

    import vramscope_open
    torch.cuda.memory._record_memory_history()
    train()
    vramscope_open.show()

Works from a script or a debugger. In a notebook, use vramscope.show of the Python package. Copy
this one file; it needs only the program `vramscope` with the page, on the PATH or named by
VRAMSCOPE. The page is served to this machine only, at an address with a secret token. The server
and its snapshots, in a temporary folder, last until Python ends.
"""

import atexit
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import webbrowser


def serve(*paths):
    """Serves files and folders, by default a new snapshot. Returns the address."""
    program = os.environ.get("VRAMSCOPE") or shutil.which("vramscope")
    if program is None:
        raise FileNotFoundError("vramscope is not on the PATH: install it, or name it in VRAMSCOPE")
    command = [program, "serve", "--no-open", *map(str, paths or [snapshot()])]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    atexit.register(server.terminate)
    line = server.stdout.readline()
    address = next((word for word in line.split() if word.startswith("http://")), None)
    if address is None:
        raise RuntimeError(
            f"vramscope failed with status {server.wait()}: its message is printed above"
        )
    return address


def show(*paths):
    """Serves files and folders, and opens a browser on this machine. Returns the address."""
    address = serve(*paths)
    webbrowser.open(redirect(address).as_uri())
    return address


def redirect(address):
    """Writes a file that leads to the address, and returns its path.

    All users of the machine can list the arguments of a browser, and the address has the token.
    Only this user can read the file. It lasts until Python ends.
    """
    handle, name = tempfile.mkstemp(prefix="vramscope-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>vramscope</title>'
            f'<meta http-equiv="refresh" content="0; url={address}">'
            f'<a href="{address}">Open vramscope</a>\n'
        )
    path = pathlib.Path(name)
    atexit.register(path.unlink, missing_ok=True)
    return path


def snapshot():
    """Dumps a snapshot of this process. Returns its path."""
    import torch

    folder = tempfile.mkdtemp(prefix="vramscope-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = pathlib.Path(folder, f"rank{os.environ.get('RANK', '0')}_memory_snapshot.pickle")
    torch.cuda.memory._dump_snapshot(str(path))
    # vramscope waits for files that were just modified; this one is complete.
    earlier = time.time() - 60
    os.utime(path, (earlier, earlier))
    return path
