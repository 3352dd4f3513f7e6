#!/usr/bin/env python3
"""Writes snapshots in forms that are legal, but that CPython's pickler does not write.

odd_pickles.py write [--seeds N]
    Rewrites test_data/odd: each scenario in N forms. vramscope-snapshot/tests/odd_pickles.rs reads
    them.
odd_pickles.py check PROGRAM [--seeds N] [FILE...]
    Compares what the program says about each form with what it says about the file itself. It must
    be equal, or an error, or an estimate.

Every form is read with pickle.load first, and must give an equal object.
"""

import argparse
import glob
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile

DATA = os.path.join(os.path.dirname(__file__), "..", "test_data")
SOURCES = ["scenarios/*.pickle", "edge/pools.pickle", "edge/host.pickle",
           "edge/metadata.pickle", "edge/frames.pickle", "edge/root_list_history.pickle"]


class Writer:
    """Writes an object with a random form of each opcode."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.out = io.BytesIO()
        self.next = 0
        # Equal immutable values and lists that were written, by memo index.
        self.known = {}
        # What this form does at all. A form with everything would nearly always be an error.
        self.habits = {
            habit: self.random.random() < chance
            for habit, chance in {
                "noise": 0.5, "share": 0.6, "batches": 0.3, "single": 0.4, "marks": 0.4,
                "shuffle": 0.4, "again": 0.4, "text": 0.5, "sparse": 0.3, "objects": 0.2,
                "recall": 0.2, "late": 0.1,
            }.items()
        }

    def has(self, habit, chance=0.5):
        return self.habits[habit] and self.random.random() < chance

    def emit(self, *parts):
        for part in parts:
            self.out.write(part)

    def pickle(self, value):
        if self.random.random() < 0.7:
            self.emit(b"\x80", bytes([self.random.choice([2, 3, 4, 5])]))
        self.root(value)
        self.emit(b".")
        return self.out.getvalue()

    def root(self, value):
        # The reader knows old pickles by their start.
        old = self.out.tell() == 0
        if old:
            kept, self.habits = self.habits, dict.fromkeys(self.habits, False)
            index = self.begin(value, b"}" if isinstance(value, dict) else b"]")
            self.habits = kept
            self.fill(value, index)
        else:
            self.value(value)

    def noise(self):
        if not self.has("noise", 0.1):
            return
        junk = self.random.choice([b"N", b"K\x07", b"]", b"\x8c\x01x", b")", b"I5\n"])
        self.emit(self.random.choice([junk + b"0", b"(" + junk + b"N1", junk + b"20" + b"0"]))

    def put(self):
        """Stores the top of the stack and returns the index."""
        if self.habits["sparse"]:
            self.next += self.random.choice([0, 0, 1, 300, 70000])
        index = self.next
        self.next += 1
        forms = [b"r" + struct.pack("<I", index), b"p%d\n" % index]
        if index < 256:
            forms.append(b"q" + bytes([index]))
        if not self.habits["sparse"]:
            forms.append(b"\x94")
        self.emit(self.random.choice(forms))
        return index

    def get(self, index):
        forms = [b"j" + struct.pack("<I", index), b"g%d\n" % index]
        if index < 256:
            forms.append(b"h" + bytes([index]))
        self.emit(self.random.choice(forms))

    def value(self, value):
        self.noise()
        key = repr((type(value), value)) if self.habits["share"] else None
        if key in self.known and self.random.random() < 0.8:
            self.get(self.known[key])
            return
        if isinstance(value, dict):
            index = self.begin(value, b"}")
            self.fill(value, index)
        elif isinstance(value, list):
            index = self.begin(value, b"]")
            self.fill(value, index)
        else:
            self.plain(value)
            if self.random.random() < 0.3:
                index = self.put()
            else:
                return
        # Only after the value is complete.
        if key is not None and len(key) < 2000:
            self.known[key] = index

    def plain(self, value):
        if value is None:
            self.emit(b"N")
        elif isinstance(value, bool):
            old = b"I01\n" if value else b"I00\n"
            self.emit(self.random.choice([old, b"\x88" if value else b"\x89"]))
        elif isinstance(value, int):
            self.integer(value)
        elif isinstance(value, float):
            self.emit(self.random.choice([b"F" + repr(value).encode() + b"\n",
                                          b"G" + struct.pack(">d", value)]))
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, bytes):
            self.emit(b"B", struct.pack("<I", len(value)), value)
        elif isinstance(value, tuple):
            mark = len(value) > 3 or self.random.random() < 0.5
            self.emit(b"(" if mark else b"")
            for item in value:
                self.value(item)
            self.emit(b"t" if mark else [b")", b"\x85", b"\x86", b"\x87"][len(value)])
        else:
            raise TypeError(type(value))

    def integer(self, value):
        forms = []
        if self.habits["text"]:
            forms += [b"I%d\n" % value, b"L%dL\n" % value, b"L%d\n" % value]
        if 0 <= value < 256:
            forms.append(b"K" + bytes([value]))
        if 0 <= value < 65536:
            forms.append(b"M" + struct.pack("<H", value))
        if -(1 << 31) <= value < 1 << 31:
            forms.append(b"J" + struct.pack("<i", value))
        size = value.bit_length() // 8 + 1 + self.random.choice([0, 0, 1, 9])
        digits = value.to_bytes(size, "little", signed=True)
        forms += [b"\x8a" + bytes([size]) + digits, b"\x8b" + struct.pack("<i", size) + digits]
        self.emit(self.random.choice(forms))

    def text(self, value):
        data = value.encode("utf-8", "surrogatepass")
        forms = [b"X" + struct.pack("<I", len(data)) + data,
                 b"\x8d" + struct.pack("<Q", len(data)) + data]
        if len(data) < 256:
            forms.append(b"\x8c" + bytes([len(data)]) + data)
        if self.habits["text"]:
            raw = value.encode("raw-unicode-escape", "surrogatepass")
            if "\\" not in value and "\n" not in value and "\r" not in value:
                forms.append(b"V" + raw + b"\n")
            if value.isascii() and value.isprintable():
                forms.append(b"S" + repr(value).encode() + b"\n")
                forms.append(b"T" + struct.pack("<I", len(data)) + data)
                if len(data) < 256:
                    forms.append(b"U" + bytes([len(data)]) + data)
        self.emit(self.random.choice(forms))

    def begin(self, value, empty):
        """Pushes an empty container and returns its memo index."""
        is_dict = isinstance(value, dict)
        forms = [empty, b"(d" if is_dict else b"(l"]
        if self.has("objects"):
            name = b"collections\nOrderedDict" if is_dict else b"builtins\nlist"
            forms = [b"c" + name + b"\n)R", b"c" + name + b"\n)\x81"]
            if is_dict:
                forms.append(b"c" + name + b"\n)RNb")
        self.emit(self.random.choice(forms))
        return self.put()

    def fill(self, value, index):
        """Fills the container on the top of the stack."""
        items = self.pairs(value) if isinstance(value, dict) else [(item,) for item in value]
        many, one = (b"u", b"s") if isinstance(value, dict) else (b"e", b"a")
        while items:
            single = self.has("single")
            size = 1 if single else len(items)
            if not single and self.has("batches"):
                size = self.random.randint(1, len(items))
            batch, items = items[:size], items[size:]
            recall = self.has("recall")
            if recall:
                self.get(index)
            late = []
            self.emit(b"" if single else b"(")
            for item in batch:
                for part in item[:-1]:
                    self.value(part)
                last = item[-1]
                if isinstance(last, (list, dict)) and last and self.has("late", 0.2):
                    # Filled after the container holds it.
                    empty = b"}" if isinstance(last, dict) else b"]"
                    late.append((last, self.begin(last, empty)))
                else:
                    self.value(last)
            self.emit(one if single else many)
            for inner, at in late:
                self.get(at)
                self.fill(inner, at)
                self.emit(b"0")
            if recall:
                self.emit(b"0")
            self.noise()

    def pairs(self, value):
        pairs = list(value.items())
        # The order of settings, of the root's keys and of a frame's notes is shown.
        if "frames" in value or "filename" in value and not any("fx_" in key for key in value):
            if self.has("shuffle"):
                self.random.shuffle(pairs)
            if self.has("again", 0.3):
                # A key twice: the last value counts.
                key, old = self.random.choice(pairs)
                if isinstance(old, int):
                    pairs.insert(0, (key, old + 512))
                elif isinstance(old, str) and key != "action":
                    pairs.insert(0, (key, old + "x"))
        return pairs


def forms(path, seeds):
    """Yields (seed, bytes) of the forms of a file."""
    with open(path, "rb") as file:
        data = pickle.load(file)
    for seed in range(seeds):
        odd = Writer(f"{os.path.basename(path)} {seed}").pickle(data)
        # OrderedDict compares in order with another one only.
        if pickle.loads(odd) != data:
            raise AssertionError(f"{path}, seed {seed}: the form is another object")
        yield seed, odd


def sources():
    paths = [path for pattern in SOURCES for path in glob.glob(os.path.join(DATA, pattern))]
    return sorted(paths)


def write(seeds):
    folder = os.path.join(DATA, "odd")
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "*.pickle")):
        os.remove(old)
    for path in sources():
        group, name = path.split(os.sep)[-2:]
        for seed, odd in forms(path, seeds):
            target = f"{group}__{name.removesuffix('.pickle')}__{seed}.pickle"
            with open(os.path.join(folder, target), "wb") as file:
                file.write(odd)


def said(program, path):
    """What the program says about a file, without its name and size. None after an error."""
    texts = []
    for command in ("summary", "blocks", "segments"):
        ran = subprocess.run([program, command, "--format", "json", path],
                             capture_output=True, text=True)
        if ran.returncode not in (0, 2):
            raise AssertionError(f"{command} {path}: exit code {ran.returncode}: {ran.stderr}")
        if ran.returncode == 2:
            return None
        texts.append(json.loads(ran.stdout))
    files = texts[0]["files"][0]
    return files["devices"], texts[1].get("blocks"), texts[2].get("segments"), files["warnings"]


def check(program, paths, seeds):
    counts = {"equal": 0, "an error": 0, "an estimate": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as folder:
        for path in paths or sources():
            expected = said(program, path)
            for seed, odd in forms(path, seeds):
                copy = os.path.join(folder, f"form{seed}.pickle")
                with open(copy, "wb") as file:
                    file.write(odd)
                found = said(program, copy)
                if found is None:
                    outcome = "an error"
                elif found[:3] == expected[:3]:
                    outcome = "equal"
                elif all(band["exactness"] == "estimate" for device in found[0]
                         for band in device.values()
                         if isinstance(band, dict) and "exactness" in band):
                    outcome = "an estimate"
                else:
                    outcome = "wrong"
                    print(f"{path}, seed {seed}: another result")
                counts[outcome] += 1
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["wrong"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["write", "check"])
    parser.add_argument("program", nargs="?")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seeds", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.mode == "write":
        write(arguments.seeds)
    else:
        sys.exit(check(arguments.program, arguments.files, arguments.seeds))


if __name__ == "__main__":
    main()
