#!/usr/bin/env python3
"""Writes zip archives that readers could understand differently, with what two of them read.

odd_archives.py write
    Rewrites test_data/archives. vramscope-snapshot/tests/odd_archives.rs reads them.
odd_archives.py check PROGRAM [--seeds N]
    Changes each archive in N ways, and compares what the program reads.

Both need PyTorch. An archive must give what torch.load and zipfile read, or an error. PyTorch also
wants an entry `version`; where only that is missing, zipfile counts alone.
"""

import argparse
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib

FOLDER = os.path.join(os.path.dirname(__file__), "..", "test_data", "archives")
ALL_ONES = 0xFFFFFFFF


def snapshot(size):
    event = {"action": "alloc", "addr": 4096, "size": size}
    return pickle.dumps({"segments": [], "device_traces": [[event]]}, 2)


FIRST, SECOND = snapshot(1500), snapshot(1000)


class Entry:
    """An entry. What `local` and `listed` have differs in the header or the directory alone."""

    def __init__(self, name, data, local=None, listed=None, deflated=False, streamed=False, **more):
        self.raw = data
        self.data = data
        if deflated:
            packer = zlib.compressobj(wbits=-15)
            self.data = packer.compress(data) + packer.flush()
        self.streamed = streamed
        self.plain = {
            "name": name.encode(), "method": 8 if deflated else 0, "flags": 8 if streamed else 0,
            "crc": zlib.crc32(data), "packed": len(self.data), "unpacked": len(data),
            "extra": b"", "comment": b"", "attributes": 0, "disk": 0, "move": 0, **more,
        }
        self.local = {**self.plain, **(local or {})}
        self.listed = {**self.plain, **(listed or {})}
        if streamed:
            self.local |= {"crc": 0, "packed": 0, "unpacked": 0}

    def header(self):
        of = self.local
        head = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, of["flags"], of["method"], 0, 0,
                           of["crc"], of["packed"], of["unpacked"], len(of["name"]),
                           len(of["extra"]))
        tail = b""
        if self.streamed:
            tail = struct.pack("<IIII", 0x08074B50, zlib.crc32(self.raw), len(self.data),
                               len(self.raw))
        return head + of["name"] + of["extra"] + self.data + tail

    def record(self, offset):
        of = self.listed
        return struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, of["flags"], of["method"],
                           0, 0, of["crc"], of["packed"], of["unpacked"], len(of["name"]),
                           len(of["extra"]), len(of["comment"]), of["disk"], 0,
                           of["attributes"], of.get("offset", offset + of["move"])
                           ) + of["name"] + of["extra"] + of["comment"]


def large_end(of, count, size, start, at):
    """The end with 64 bits, and its locator."""
    return struct.pack("<IQHHIIQQQQ", 0x06064B50, of.get("own", 44), 45, 45, 0, 0, count,
                       of.get("total", count), size, of.get("start", start)) + struct.pack(
                           "<IIQI", 0x07064B50, 0, of.get("locator", at), 1)


def end(count, size, start, comment=b"", disk=0):
    return struct.pack("<IHHHHIIH", 0x06054B50, disk, disk, count, count, size, start,
                       len(comment)) + comment


def archive(entries, hidden=(), gap=b"", order=None, ends=None, comment=b"", between=b"",
            large=None):
    """An archive. `hidden` are the indices of entries that its directory lacks."""
    out, offsets = b"", []
    for entry in entries:
        offsets.append(len(out))
        out += entry.header() + gap
    order = [i for i in order or range(len(entries)) if i not in hidden]
    records = b"".join(entries[i].record(offsets[i]) for i in order)
    start, size, count = len(out), len(records), len(order)
    out += records + between
    if large is not None:
        out += large_end(large, count, size, start, len(out))
        if large.get("ones"):
            return out + end(0xFFFF, ALL_ONES, ALL_ONES, comment)
    return out + (ends or end)(count, size, start, comment)


def saved(data=FIRST, **of):
    """The entries that torch.save writes."""
    return [Entry("archive/data.pkl", data, **of), Entry("archive/byteorder", b"little"),
            Entry("archive/version", b"3\n")]


def with_zipfile(names):
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as z:
        warnings.simplefilter("ignore")
        for name, data in names:
            z.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def wide(*numbers):
    """The extra field with numbers of 64 bits."""
    return struct.pack("<HH", 1, 8 * len(numbers)) + struct.pack(f"<{len(numbers)}Q", *numbers)


def plain():
    """Archives that must be read, by name."""
    size = len(FIRST)
    ones = {"packed": ALL_ONES, "unpacked": ALL_ONES, "extra": wide(size, size)}
    return {
        "plain": archive(saved()),
        "deflated": archive(saved(deflated=True)),
        "streamed": archive([*saved(streamed=True), Entry("archive/more", b"x", streamed=True)]),
        "streamed_deflated": archive(saved(streamed=True, deflated=True)),
        "folders": archive([Entry("archive/", b""), *saved(), Entry("archive/data/", b"")]),
        "comment": archive(saved(), comment=b"a comment"),
        "entry_comment": archive(saved(comment=b"a comment of an entry")),
        "other_order": archive(saved(), order=[2, 0, 1]),
        "late": archive([Entry("archive/version", b"3\n"), Entry("archive/data.pkl", FIRST)]),
        "large_end": archive(saved(), large={}),
        "large_end_ones": archive(saved(), large={"ones": True}),
        "large_sizes": archive(saved(local=ones, listed=ones)),
        "large_offset": archive([
            *saved()[1:],
            Entry("archive/data.pkl", FIRST, listed={
                "offset": ALL_ONES,
                "extra": wide(sum(len(entry.header()) for entry in saved()[1:])),
            }),
        ]),
        "without_version": archive(saved()[:1]),
        "other_field": archive(saved(extra=b"UT\x01\x00\x00")),
    }


def odd():
    """Archives that must be refused, by name, with the entry that the error names if any."""
    evil = Entry("archive/data.pkl", SECOND)
    unlisted = Entry("archive/other", b"x")
    other = saved()
    after = saved()[1:]
    name, size = "archive/data.pkl", len(FIRST)
    record = {"crc": zlib.crc32(SECOND)}
    fake_end = end(1, 60, 0)
    listed = lambda **of: archive(saved(listed=of))  # noqa: E731
    local = lambda **of: archive(saved(local=of))  # noqa: E731
    inner = archive(saved(SECOND))
    cases = {
        # Entries that the directory lacks, or has twice.
        "hidden_pickle_first": (archive([evil, *other], hidden=[0]), name),
        "hidden_pickle_last": (archive([*other, evil], hidden=[3]), name),
        "hidden_pickle_read": (archive([evil, *after, Entry("archive/d", b"x")], hidden=[0]), name),
        "hidden_first": (archive([unlisted, *other], hidden=[0]), "archive/other"),
        "hidden_between": (archive([other[0], unlisted, *after], hidden=[1]), "archive/other"),
        "hidden_last": (archive([*other, unlisted], hidden=[3]), "archive/other"),
        "listed_only": (archive([*other, unlisted])[:-22].replace(unlisted.header(), b"")
                        + archive([*other, unlisted])[-22:], "archive/other"),
        "pickle_twice": (with_zipfile([(name, FIRST), (name, SECOND), ("archive/version", b"3")]),
                         name),
        "listed_twice": (archive(saved(), order=[0, 0, 1, 2]), name),
        "other_twice": (archive([*other, Entry("archive/version", b"3\n")]), "archive/version"),
        "two_folders": (with_zipfile([("a/data.pkl", FIRST), ("a/version", b"3\n"),
                                      ("b/data.pkl", SECOND)]), "b/data.pkl"),
        "two_depths": (archive([*other, Entry("archive/x/data.pkl", SECOND)]),
                       "archive/x/data.pkl"),
        "upper_case": (archive([*other, Entry("archive/DATA.PKL", SECOND)]), "archive/DATA.PKL"),
        "upper_case_first": (archive([Entry("archive/DATA.PKL", SECOND), *other]),
                             "archive/DATA.PKL"),
        "upper_folder": (archive([*other, Entry("ARCHIVE/data.pkl", SECOND)]), "ARCHIVE/data.pkl"),
        "backslash": (archive([*other, Entry("archive/x\\data.pkl", SECOND)]),
                      "archive/x\\data.pkl"),
        "nul": (archive([*other, Entry("archive/data.pkl\0x", SECOND)]), "archive/data.pkl\\x00x"),
        "first_folder": (archive([Entry("other/version", b"3\n"), *other]), None),
        "outside": (archive([*other, Entry("readme.txt", b"x")]), "readme.txt"),
        "root": (archive([Entry("data.pkl", FIRST), Entry("version", b"3\n")]), None),
        "program": (archive([*other, Entry("archive/constants.pkl", pickle.dumps(()))]),
                    "archive/constants.pkl"),
        # A directory that says something else of an entry.
        "name": (listed(name=b"archive/data.pkx"), None),
        "local_name": (local(name=b"archive/data.pkx"), None),
        "names_swapped": (archive([
            Entry(name, SECOND, listed={"name": b"archive/other"}),
            Entry("archive/other", FIRST, listed={"name": name.encode()}), *after,
        ]), "archive/other"),
        "shorter": (listed(packed=size - 9, unpacked=size - 9), name),
        "longer": (listed(packed=size + 9, unpacked=size + 9), name),
        "other_unpacked": (listed(unpacked=size + 1), name),
        "local_size": (local(packed=size - 9, unpacked=size - 9), None),
        "checksum": (listed(crc=1), name),
        "method": (listed(method=8), name),
        "encrypted": (listed(flags=1), name),
        "patched": (listed(flags=1 << 5), name),
        "disk": (listed(disk=1), name),
        "folder": (listed(attributes=0x10), name),
        "offset": (archive([
            Entry(name, FIRST, listed={"offset": 0} | record),
            Entry("archive/other", SECOND, listed={"offset": 0}), *after,
        ]), name),
        "offset_of_other": (archive([
            Entry(name, FIRST, listed={"move": len(Entry(name, FIRST).header())} | record),
            Entry("archive/othe.pkl", SECOND), *after,
        ]), name),
        "inside_of_other": (archive([
            Entry(name, FIRST, listed={
                "offset": len(Entry(name, FIRST).header()) + 30 + len("archive/data/0"),
            } | record),
            Entry("archive/data/0", Entry(name, SECOND).header()), *after,
        ]), name),
        "second_name": (archive([
            *other, Entry("archive/other", SECOND, listed={"extra": struct.pack(
                "<HHBI", 0x7075, 5 + len(name), 1, zlib.crc32(b"archive/other")) + name.encode()}),
        ]), "archive/other"),
        "second_sizes": (listed(packed=ALL_ONES, unpacked=ALL_ONES,
                                extra=wide(size, size) + wide(size, size)), name),
        "no_large_sizes": (listed(packed=ALL_ONES, unpacked=ALL_ONES), name),
        "other_large_sizes": (listed(packed=ALL_ONES, unpacked=ALL_ONES,
                                     extra=wide(size - 9, size - 9)), name),
        "cut_field": (listed(extra=b"UT\x09\x00\x00"), name),
        "behind_deflated": (archive([junk(Entry(name, FIRST, deflated=True)), *after]), None),
        # Ends.
        "cut_directory": (archive(saved())[:-60], None),
        "no_directory": (b"".join(entry.header() for entry in other), None),
        "behind": (archive(saved()) + b"x", None),
        "two_archives": (archive(saved()) + inner, None),
        "before": (inner + archive(saved()), None),
        "between_entries": (archive(saved(), gap=b"\0"), None),
        "before_end": (archive(saved(), between=b"\0"), None),
        "end_twice": (archive(saved(), comment=fake_end), None),
        "archive_in_comment": (archive(saved(), comment=inner), None),
        "end_in_comment": (archive(saved(), comment=b"x" + fake_end), None),
        "end_disk": (archive(saved(), ends=lambda *of: end(*of, disk=1)), None),
        "end_count": (archive(saved(), ends=lambda count, *of: end(count - 1, *of)), None),
        "end_size": (archive(saved(), ends=lambda n, size, *of: end(n, size - 1, *of)), None),
        "end_start": (archive(saved(), ends=lambda n, size, at, *of: end(n, size, at - 1, *of)),
                      None),
        "ones_alone": (archive(saved(), ends=lambda *of: end(0xFFFF, ALL_ONES, ALL_ONES)), None),
        "large_locator": (archive(saved(), large={"locator": 0}), None),
        "large_start": (archive(saved(), large={"start": 1}), None),
        "large_total": (archive(saved(), large={"total": 1}), None),
        "large_own": (archive(saved(), large={"own": 45}), None),
        "locator_in_comment": (archive([*other, Entry("archive/other", b"", comment=struct.pack(
            "<IIQI", 0x07064B50, 0, 0, 1))]), "archive/other"),
    }
    return cases


def junk(entry):
    """The entry with bytes behind its deflated data."""
    entry.data += b"junk"
    for of in entry.local, entry.listed:
        of["packed"] += 4
    return entry


def size_of(data):
    """The size in a snapshot's only event."""
    return data["device_traces"][0][0]["size"]


def by_torch(raw):
    """What torch.load reads, or the first line of its error."""
    import torch
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return size_of(torch.load(io.BytesIO(raw), weights_only=False))
    except Exception as error:  # Any.
        lines = str(error).splitlines() or [repr(error)]
        return lines[0].split(" (")[0][:90]


def by_zipfile(raw):
    """What zipfile has under the name that PyTorch takes, or the class of its error."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as z:
            folder = z.namelist()[0].split("/")[0]
            return size_of(pickle.loads(z.read(f"{folder}/data.pkl")))
    except Exception as error:  # Any.
        return type(error).__name__


def is_allowed(ours, torch, other):
    """Whether a reading, which is a size or None, is that of both."""
    return ours is None or ours == other and (torch == ours or "version" in str(torch))


def write():
    os.makedirs(FOLDER, exist_ok=True)
    for old in os.listdir(FOLDER):
        os.remove(os.path.join(FOLDER, old))
    table = {}
    for is_plain, cases in (True, plain()), (False, odd()):
        for name, case in cases.items():
            raw, entry = (case, None) if is_plain else case
            with open(os.path.join(FOLDER, f"{name}.pt"), "wb") as file:
                file.write(raw)
            table[name] = {"is_plain": is_plain, "entry": entry, "torch": by_torch(raw),
                           "zipfile": by_zipfile(raw)}
    with open(os.path.join(FOLDER, "expected.json"), "w") as file:
        json.dump(table, file, indent=1)
        file.write("\n")


def changed(raw, source):
    """An archive with a few changes, most of them in headers and records."""
    raw = bytearray(raw)
    for _ in range(source.randint(1, 3)):
        marks = [at for at in range(len(raw) - 4) if raw[at:at + 2] == b"PK"]
        at = source.choice(marks) + source.randint(0, 60) if marks else 0
        kind = source.random()
        if kind < 0.4 and at < len(raw):
            raw[at] ^= 1 << source.randint(0, 7)
        elif kind < 0.6 and at + 4 < len(raw):
            raw[at:at + 4] = struct.pack("<I", source.choice([0, 1, ALL_ONES, at, len(raw)]))
        elif kind < 0.8 and len(marks) > 1:
            start, stop = sorted(source.sample(marks, 2))
            raw[at:at] = raw[start:stop]
        elif len(marks) > 1:
            start, stop = sorted(source.sample(marks, 2))
            del raw[start:stop]
    return bytes(raw)


def by_program(program, path):
    """What the program reads. None after an error."""
    ran = subprocess.run([program, "summary", "--format", "json", path], capture_output=True)
    if ran.returncode not in (0, 2):
        raise AssertionError(f"{path}: exit code {ran.returncode}: {ran.stderr}")
    found = list(find(json.loads(ran.stdout), "requested_bytes"))
    return found[0]["peak"] if found else None


def find(value, key):
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from find(item, key)


def check(program, seeds):
    counts = {"equal": 0, "refused": 0, "other": 0}
    cases = {**plain(), **{name: raw for name, (raw, _) in odd().items()}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "archive.pt")
        for name, raw in cases.items():
            source = random.Random(name)
            for seed in range(seeds):
                odd_one = changed(raw, source)
                with open(path, "wb") as file:
                    file.write(odd_one)
                ours = by_program(program, path)
                torch, other = by_torch(odd_one), by_zipfile(odd_one)
                if not is_allowed(ours, torch, other):
                    counts["other"] += 1
                    print(f"{name}, seed {seed}: {ours}; torch.load: {torch}; zipfile: {other}")
                    continue
                counts["refused" if ours is None else "equal"] += 1
    print(counts)
    return counts["other"] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("program", nargs="?")
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.action == "write":
        return write()
    return check(arguments.program, arguments.seeds)


if __name__ == "__main__":
    sys.exit(main())
