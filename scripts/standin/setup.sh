#!/bin/bash
# usage: setup.sh FOLDER [RELEASE]
#
# Installs PyTorch's wheel for CUDA into FOLDER/venv, without the packages of NVIDIA, and builds
# stand-ins for their libraries into FOLDER/fake. Downloads about 1 GB. A second run does nothing.
# The default release has the trainers beside it, other releases only what PyTorch needs.
set -euo pipefail
default=2.9.1
torch=${2:-$default}
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
wanted="torch==$torch
$(cat "$here/requirements.txt")"
[ "$wanted" != "$(cat "$folder/complete" 2>/dev/null || true)" ] || exit 0
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
venv=$folder/venv
python=${STANDIN_PYTHON:-python3}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --no-deps --no-cache-dir "torch==$torch"
if [ "$torch" = "$default" ]; then
    "${pip[@]}" install --no-deps --requirement "$here/requirements.txt"
else
    needed='filelock|fsspec|Jinja2|MarkupSafe|mpmath|networkx|numpy|sympy|typing_extensions'
    "${pip[@]}" install --no-deps --requirement \
        <(grep --extended-regexp "^($needed)==" "$here/requirements.txt")
fi
# The wheels on PyPI are for CUDA 12.8, and from 2.11 on for CUDA 13.0.
if [ "$(printf '%s\n' 2.11 "$torch" | sort --version-sort | head -n 1)" = 2.11 ]; then
    runtime=nvidia-cuda-runtime==13.0.96 headers=nvidia/cu13/include cuda=13000
else
    runtime=nvidia-cuda-runtime-cu12==12.8.90 headers=nvidia/cuda_runtime/include cuda=12080
fi
"${pip[@]}" download --no-deps --dest "$folder/include" "$runtime"
"$venv/bin/python" -m zipfile -e "$folder"/include/nvidia_cuda_runtime*.whl "$folder/include"
include=$folder/include/$headers
cp -r "$here/crt" "$include/"
libraries=$(echo "$venv"/lib/python3*/site-packages/torch/lib)
"$venv/bin/python" "$here/gen_stubs.py" "$libraries" "$folder/fake" "$cuda" "$include"
gcc -shared -fPIC -O1 "$here/fakenvml.c" -Wl,-soname,libnvidia-ml.so.1 \
    -o "$folder/fake/libnvidia-ml.so.1"
echo "$wanted" > "$folder/complete"
