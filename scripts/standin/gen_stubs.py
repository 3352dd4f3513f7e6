#!/usr/bin/env python3
"""Builds stand-ins for the libraries that PyTorch's wheel links to.

usage: gen_stubs.py TORCH_LIB OUT CUDA_VERSION INCLUDE

A library that files in TORCH_LIB need, and that is neither there nor on the system, gets a
stand-in in OUT. It has every symbol that PyTorch takes from it, under the right version tag. A
symbol that no C file here defines returns success. CUDA_VERSION is a number such as 12040; INCLUDE
has driver_types.h.
"""

import glob
import os
import re
import subprocess
import sys

LIB, OUT, CUDA_VERSION, INCLUDE = sys.argv[1:5]
HERE = os.path.dirname(os.path.abspath(__file__))

#: How the symbols of libraries begin that have no version tag.
PREFIXES = {
    "libcuda": "cu",
    "libcudss": "cudss",
    "libcufile": "cuFile",
    "libcurand": "curand",
    "libcusparseLt": "cusparseLt",
    "libnccl": "nccl",
    "libnvToolsExt": "nvtx",
    "libnvshmem_host": "nvshmem",
}

STUB_HEAD = """\
#include <stdio.h>
#include <stdlib.h>
static int is_traced(void) {
    static int level = -1;
    if (level < 0) {
        char *text = getenv("FAKECUDA_TRACE");
        level = text ? atoi(text) : 0;
    }
    return level;
}
"""


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def compile_or_exit(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[:3000]}")


def wanted():
    """Libraries that are needed, undefined symbols, and the library of each version tag."""
    needed, undefined, library_of_tag = set(), set(), {}
    for file in glob.glob(LIB + "/*.so*"):
        needed |= set(re.findall(r"NEEDED\).*\[(.+?)\]", output("readelf", "-d", file)))
        library = None
        for line in output("readelf", "-V", "-W", file).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found.group(1)
            if (found := re.search(r"Name: (\S+)\s+Flags", line)) and library:
                library_of_tag[found.group(1)] = library
        for line in output("nm", "-D", "--undefined-only", file).splitlines():
            undefined.add(line.split()[-1])
    return needed, undefined, library_of_tag


def is_of(library, name):
    """Whether an untagged symbol belongs to a library."""
    prefix = PREFIXES.get(library.split(".so")[0])
    if prefix is None:
        return False
    if prefix == "cu":
        return re.match(r"cu[A-Z]", name) and not name.startswith("cuFile")
    return prefix in name if prefix == "nvshmem" else name.startswith(prefix)


def missing_symbols():
    """The symbols of each library that is not there, with their version tags."""
    needed, undefined, library_of_tag = wanted()
    present = {os.path.basename(file) for file in glob.glob(LIB + "/*.so*")}
    system = output("ldconfig", "-p")
    missing = sorted(name for name in needed if name not in present and name not in system)
    symbols = {name: {} for name in ["libcuda.so.1", *missing]}
    for symbol in undefined:
        name, _, tag = symbol.partition("@")
        tag = tag.lstrip("@")
        if tag:
            if library_of_tag.get(tag) in symbols:
                symbols[library_of_tag[tag]][name] = tag
            continue
        for library in symbols:
            if is_of(library, name):
                symbols[library][name] = None
    # Symbols of the driver that libc10_cuda looks up by name.
    for text in output("strings", LIB + "/libc10_cuda.so").split():
        if re.fullmatch(r"cu[A-Z][A-Za-z0-9_]+", text) and not text.startswith("cuda"):
            symbols["libcuda.so.1"][text] = None
    return symbols


def definitions(source, flags):
    """The symbols that a C file defines."""
    built = OUT + "/t.o"
    compile_or_exit("gcc", "-c", "-fPIC", "-O1", "-w", *flags, source, "-o", built)
    lines = output("nm", "--defined-only", "-g", built).splitlines()
    return {line.split()[-1] for line in lines}


def write_stubs(path, names, result):
    with open(path, "w") as file:
        file.write(STUB_HEAD)
        for name in sorted(names):
            trace = f'if (is_traced()) fprintf(stderr, "[stub] {name}\\n");'
            file.write(f"long {name}(void) {{ {trace} return {result}; }}\n")


def build(library, symbols):
    base = library.split(".so")[0]
    flags = [f"-DFAKE_CUDA_VERSION={CUDA_VERSION}", f"-I{HERE}", f"-I{INCLUDE}"]
    source = {"libcuda": "fakecore.c", "libcudart": "fakecudart.c"}.get(base, "fakelibs.c")
    if source == "fakelibs.c":
        flags.append("-DLIB_" + base.removeprefix("lib"))
    source = f"{HERE}/{source}"
    stubs = f"{OUT}/stub_{base}.c"
    # CUPTI's 15 is "not initialized": the profiler then goes on without it.
    write_stubs(stubs, set(symbols) - definitions(source, flags), 15 if base == "libcupti" else 0)
    link = []
    if tags := sorted({tag for tag in symbols.values() if tag}):
        script = f"{OUT}/{base}.map"
        with open(script, "w") as file:
            file.write(f"{tags[-1]} {{ global: *; }};\n")
        link.append(f"-Wl,--version-script={script}")
    link.append("-Wl,--no-as-needed")
    if base == "libcudart":
        link += ["-L" + OUT, "-l:libcuda.so.1"]
    target = ["-o", f"{OUT}/{library}", f"-Wl,-soname,{library}"]
    compile_or_exit(
        *["gcc", "-shared", "-fPIC", "-O1", "-w", *flags, source, stubs, *target, *link],
        *["-lpthread", "-ldl"],
    )


def main():
    os.makedirs(OUT, exist_ok=True)
    all_symbols = missing_symbols()
    # The runtime links to the driver.
    first = ["libcuda.so.1", *(name for name in all_symbols if name.startswith("libcudart"))]
    for library in [*first, *(name for name in all_symbols if name not in first)]:
        build(library, all_symbols[library])


main()
