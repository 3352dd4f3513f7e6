#!/bin/bash
# usage: setup.sh FOLDER [RELEASE]
#
# Installs PyTorch's wheel for CUDA into FOLDER/venv, without the packages of NVIDIA, and builds
# stand-ins for their libraries into FOLDER/fake. Downloads about 1 GB. A second run does nothing.
# The default release has the trainers beside it, other releases only what PyTorch needs. Everything
# is installed by its hash: another release needs a file of hashes (see README.md).
set -euo pipefail
default=2.9.1
torch=${2:-$default}
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
files=("$here/torch-$torch.txt" "$here/needed.txt")
[ "$torch" != "$default" ] || files+=("$here/trainers.txt")
# The wheels on PyPI are for CUDA 12.8, and from 2.11 on for CUDA 13.0.
if [ "$(printf '%s\n' 2.11 "$torch" | sort --version-sort | head -n 1)" = 2.11 ]; then
    runtime=nvidia-cuda-runtime-13.0.96 headers=nvidia/cu13/include cuda=13000
else
    runtime=nvidia-cuda-runtime-cu12-12.8.90 headers=nvidia/cuda_runtime/include cuda=12080
fi
wanted=$(cat "${files[@]}" "$here/$runtime.txt")
[ "$wanted" != "$(cat "$folder/complete" 2>/dev/null || true)" ] || exit 0
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
venv=$folder/venv
python=${STANDIN_PYTHON:-python3}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
hashed=(--no-deps --require-hashes --only-binary :all:)
for file in "${files[@]}"; do
    "${pip[@]}" install "${hashed[@]}" --no-cache-dir --requirement "$file"
done
"${pip[@]}" download "${hashed[@]}" --dest "$folder/include" --requirement "$here/$runtime.txt"
"$venv/bin/python" -m zipfile -e "$folder"/include/nvidia_cuda_runtime*.whl "$folder/include"
include=$folder/include/$headers
cp -r "$here/crt" "$include/"
libraries=$(echo "$venv"/lib/python3*/site-packages/torch/lib)
"$venv/bin/python" "$here/gen_stubs.py" "$libraries" "$folder/fake" "$cuda" "$include"
gcc -shared -fPIC -O1 "$here/fakenvml.c" -Wl,-soname,libnvidia-ml.so.1 \
    -o "$folder/fake/libnvidia-ml.so.1"
echo "$wanted" > "$folder/complete"
