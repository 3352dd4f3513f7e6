"""Snapshots in the containers that occur in practice, refused containers, and damaged files."""

import base64
import gzip
import io
import json
import pickle
import zipfile
import zlib

from . import notation
from .edges import LIVE, one

PAGE = """
<!DOCTYPE html>
<html>
<head>
</head>
<body>
<script type="module">
import {add_local_files} from "https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js"
const local_files = $SNAPSHOT
add_local_files(local_files, "Active Memory Timeline")
</script>
</body>
"""


def html(snapshots):
    """A page of PyTorch's `trace_plot`: it pads the pickle with NULs to a multiple of three."""
    files = []
    for name, raw in snapshots:
        raw += b"\x00" * (3 - len(raw) % 3)
        files.append({"name": name, "base64": base64.b64encode(raw).decode("ascii")})
    return PAGE.replace("$SNAPSHOT", json.dumps(files)).encode()


def changed(archive, crc):
    """The archive with another checksum in its header."""
    return archive.replace(crc.to_bytes(4, "little"), (crc ^ 1).to_bytes(4, "little"), 1)


def zipped(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, raw in entries:
            z.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), raw)
    return out.getvalue()


class Unseekable(io.RawIOBase):
    """A stream that zipfile cannot go back in, so sizes and checksums follow the data."""

    def __init__(self):
        self.raw = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.raw += bytes(data)
        return len(data)


def torch_save(raw, method=zipfile.ZIP_STORED, streamed=True, large=False, first="data.pkl"):
    """A file of torch.save, which stores entries and streams them unless told otherwise."""
    out = Unseekable() if streamed else io.BytesIO()
    entries = [("data.pkl", raw), ("byteorder", b"little"), ("data/0", b"PK\x07\x08" + bytes(60))]
    entries += [("version", b"3\n"), ("empty", b"")]
    entries.sort(key=lambda entry: entry[0] != first)
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in entries:
            info = zipfile.ZipInfo(f"archive/{name}", (2024, 1, 1, 0, 0, 0))
            info.compress_type = method
            # PyTorch aligns data with a field of this tag.
            info.extra = b"FB" + (3).to_bytes(2, "little") + b"ZZZ"
            with z.open(info, "w", force_zip64=large) as entry:
                entry.write(data)
    return bytes(out.raw if streamed else out.getvalue())


def legacy_torch_save():
    """A file of torch.save before 1.6: pickles of magic number, version, system and object."""
    parts = (
        0x1950A86A20F9469CFC6C,
        1001,
        {
            "little_endian": True,
            "protocol_version": 1001,
            "type_sizes": {"int": 4, "long": 8, "short": 2},
        },
        {"w": [1, 2, 3]},
    )
    return b"".join(pickle.dumps(part, 2) for part in parts)


def floats(value):
    """JSON of a program that writes integers as doubles, and wide integers as strings."""
    if isinstance(value, dict):
        return {k: floats(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [floats(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) >= 1 << 53 else float(value)
    return value


def containers():
    """Maps names to (description, peaks, bytes); peaks are those of requested_bytes, by snapshot.

    No peaks: the file is no snapshot, and gives an error. None: the file is truncated, and gives an
    error or a warning.
    """
    first, second = one("first"), notation.snapshot("second", [("A 1000 1000", LIVE)])
    big = one("big", "A 7f0000000000 1000", "7f0000000000+4096: 1024/1000 a, 3072 i")
    big["segments"][0]["stream"] = (1 << 63) - 1
    raw = pickle.dumps(first, 4)
    text = json.dumps(first).encode()
    return {
        "snapshot.json": ("a JSON re-export: tuples are lists", [1500], text),
        "snapshot_bom.json": (
            "the same behind a byte order mark and white space",
            [1500],
            b"\xef\xbb\xbf \r\n" + json.dumps(first, indent=1).encode(),
        ),
        "floats.json": (
            "integers as doubles, wide ones as text",
            [1000],
            json.dumps(floats(big)).encode(),
        ),
        "root_list.json": ("a bare list as JSON", [1000], json.dumps(second["segments"]).encode()),
        "snapshot.json.gz": ("gzip of JSON", [1500], gzip.compress(text, mtime=0)),
        "snapshot.pickle.gz": ("gzip", [1500], gzip.compress(raw, mtime=0)),
        "members.gz": (
            "gzip in two members",
            [1500],
            gzip.compress(raw[:500], mtime=0) + gzip.compress(raw[500:], mtime=0),
        ),
        "wrong_name.pickle": (
            "gzip that is called pickle: content counts",
            [1500],
            gzip.compress(raw, mtime=0),
        ),
        "trace_plot.html": (
            "a trace_plot page with two snapshots",
            [1500, 1000],
            html([("snapshot.pickle", raw), ("later.pickle", pickle.dumps(second, 4))]),
        ),
        "trace_plot.html.gz": (
            "gzip of such a page",
            [1500],
            gzip.compress(html([("snapshot.pickle", raw)]), mtime=0),
        ),
        "page.html": ("a page without a snapshot", [], b"<!doctype html><p>404</p>"),
        "page_broken.html": (
            "a page whose base64 is cut",
            None,
            html([("snapshot.pickle", raw)])[:900],
        ),
        "torch_save.pt": ("torch.save of a snapshot", [1500], torch_save(raw)),
        "torch_save_late.pt": (
            "data.pkl behind entries with and without a signature in their bytes",
            [1500],
            torch_save(raw, first="data/0"),
        ),
        "torch_save_deflated.pt": (
            "deflated, with sizes in front",
            [1500],
            torch_save(raw, zipfile.ZIP_DEFLATED, streamed=False, first="version"),
        ),
        "torch_save_streamed.pt": (
            "deflated, with sizes behind the data",
            [1500],
            torch_save(raw, zipfile.ZIP_DEFLATED, first="data/0"),
        ),
        "torch_save_large.pt": (
            "stored, with sizes of 64 bits in front",
            [1500],
            torch_save(raw, streamed=False, large=True, first="data/0"),
        ),
        "torch_save_large_streamed.pt": (
            "stored, with sizes of 64 bits behind the data",
            [1500],
            torch_save(raw, large=True, first="version"),
        ),
        "torch_save.pt.gz": (
            "gzip of a file of torch.save",
            [1500],
            gzip.compress(torch_save(raw), mtime=0),
        ),
        "torch_save_cut.pt": ("torch.save that ends early", None, torch_save(raw)[:700]),
        "torch_save_changed.pt": (
            "torch.save with a byte of a name changed",
            None,
            torch_save(raw).replace(b"/train/loop.py", b"/train/loop.pi", 1),
        ),
        "torch_save_changed_deflated.pt": (
            "deflated, with another checksum in front",
            None,
            changed(
                torch_save(raw, zipfile.ZIP_DEFLATED, streamed=False), zlib.crc32(raw)
            ),
        ),
        "archive.zip": ("a zip: refused in words", [], zipped([("snapshot.pickle", raw)])),
        "checkpoint.pt": (
            "torch.save: refused in words",
            [],
            zipped([("archive/data.pkl", pickle.dumps({"w": 1}, 2)), ("archive/version", b"3\n")]),
        ),
        "checkpoint_legacy.pt": (
            "torch.save before 1.6: refused in words",
            [],
            legacy_torch_save(),
        ),
        "other.json": ("JSON that is no snapshot", [], b'{"traceEvents": [], "schemaVersion": 1}'),
        "other_segments.json": (
            "a transcript, which has segments of another kind",
            [],
            b'{"text": "Hello", "segments": [{"id": 0, "start": 0.0, "text": "Hello"}]}',
        ),
        "memory_timeline.html": (
            "a page of torch.profiler's export_memory_timeline: refused in words",
            [],
            memory_timeline(),
        ),
        "cut.json": ("JSON that ends early", None, text[: len(text) // 2]),
        "cut.pickle.gz": ("gzip that ends early", None, gzip.compress(raw, mtime=0)[:400]),
    }


def memory_timeline():
    """Writes a page as torch/profiler/_memory_profiler.py does: a picture, and nothing else."""
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()
    page = (
        "<html>\n<head><meta charset=\"utf-8\" /><title>GPU Memory Timeline HTML</title></head>\n"
        f"<body>\n  <img src='data:image/png;base64,{picture}'>\n</body>\n</html>"
    )
    return page.encode()


def run_folder():
    """Maps names to bytes: one snapshot among the files that a training run leaves beside it."""
    files = containers()
    return {
        "rank0_memory_snapshot.pickle": pickle.dumps(one("run"), 4),
        "config.json": b'{"lr": 0.1, "layers": 12}\n',
        "args.pkl": pickle.dumps({"a": 1}, 4),
        "model.pt": files["checkpoint.pt"][2],
        "report.html": b"<html><body>report</body></html>\n",
        "rank0.1700000000.pt.trace.json.gz": gzip.compress(files["other.json"][2], mtime=0),
    }


def damaged():
    """Maps names to (description, peaks, bytes); peaks are those of requested_bytes, by snapshot.

    No peaks: the file is no snapshot, and gives an error. None: the file is truncated, and gives an
    error or a warning.
    """
    raw = pickle.dumps(one("damaged"), 4)
    flipped = bytearray(raw)
    flipped[raw.index(b"\x8c\x06action")] ^= 0x40
    nested = b"\x80\x04" + b"]" * 90_000 + b"a" * 89_999 + b"."
    return {
        "empty.pickle": ("no bytes", [], b""),
        "one_byte.pickle": ("one byte", None, raw[:1]),
        "truncated.pickle": ("the first half", None, raw[: len(raw) // 2]),
        "no_stop.pickle": ("all but the STOP", None, raw[:-1]),
        "flipped.pickle": ("a bit of an opcode changed", [], bytes(flipped)),
        "trailing.pickle": ("bytes after STOP: ignored", [1500], raw + b"\x00\x00garbage" * 50),
        "text.pickle": ("not a pickle", [], b"No snapshot was written: out of disk space\n"),
        "binary.pickle": ("not a pickle", [], bytes(range(255, -1, -1)) * 4),
        "other.pickle": (
            "a pickle of something else",
            [],
            pickle.dumps({"state_dict": [1, 2, 3]}, 4),
        ),
        "number.pickle": ("a pickle of a number", [], pickle.dumps(42, 4)),
        "calls.pickle": (
            "a pickle that asks for os.system: not called",
            [],
            b'cos\nsystem\n(S"echo called"\ntR.',
        ),
        "calls4.pickle": (
            "the same by STACK_GLOBAL",
            [],
            b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0becho called\x85R.",
        ),
        "nested.pickle": ("ninety thousand lists in each other", [], nested),
        "length.pickle": (
            "a string that claims to have 2^62 bytes",
            [],
            b"\x80\x04}\x8d" + (1 << 62).to_bytes(8, "little") + b"short",
        ),
        "memo.pickle": ("a memo index of 2^32 - 1", [], b"\x80\x02}r\xff\xff\xff\xff."),
        "memo_miss.pickle": ("a memo entry that was never stored", [], b"\x80\x02]h\x07a."),
        "underflow.pickle": ("an opcode that finds nothing on the stack", [], b"\x80\x04s."),
        "no_mark.pickle": ("SETITEMS without a MARK", [], b"\x80\x04}u."),
        "long.pickle": (
            "an integer of 100 kB",
            [],
            b"\x80\x04\x8b" + (100_000).to_bytes(4, "little") + b"\x01" * 100_000 + b".",
        ),
    }
