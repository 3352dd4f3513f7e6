#!/bin/bash
# usage: setup.sh FOLDER [RELEASE]
#
# Installs PyTorch's wheel for CUDA into FOLDER/venv, without the packages of NVIDIA, and writes the
# libraries of a dry run into FOLDER/fake, under the names of theirs. Downloads about 1 GB. A second
# run only writes the libraries anew.
# The default release has the trainers beside it, other releases only what PyTorch needs. Everything
# is installed by its hash: another release needs a file of hashes (see README.md).
set -euo pipefail
default=2.9.1
torch=${2:-$default}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
venv=$folder/venv
files=("$here/torch-$torch.txt" "$here/needed.txt")
[ "$torch" != "$default" ] || files+=("$here/trainers.txt")
wanted=$(cat "${files[@]}")
if [ "$wanted" != "$(cat "$folder/complete" 2>/dev/null || true)" ]; then
    python=${STANDIN_PYTHON:-python3}
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
    hashed=(--no-deps --require-hashes --only-binary :all:)
    for file in "${files[@]}"; do
        "${pip[@]}" install "${hashed[@]}" --no-cache-dir --requirement "$file"
    done
    echo "$wanted" > "$folder/complete"
fi
cd "$here/../.."
cargo build --quiet --locked --package vramscope-dry --lib --example shims
target=${CARGO_TARGET_DIR:-target}/debug
rm -rf "$folder/fake"
mkdir "$folder/fake"
cp "$target/libvramscope_dry.so" "$folder/fake/"
packages=$(echo "$venv"/lib/python3*/site-packages)
"$target/examples/shims" "$packages" "$folder/fake/libvramscope_dry.so" "$folder/fake" soname \
    > "$folder/shims.json"
