#!/bin/bash
# usage: setup.sh FOLDER
#
# Installs PyTorch's wheel for CUDA 12.8 and trainers into FOLDER/venv, without the packages of
# NVIDIA, and builds stand-ins for their libraries into FOLDER/fake. Downloads about 1 GB. A second
# run does nothing.
set -euo pipefail
torch=2.9.1
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
! cmp --silent "$here/requirements.txt" "$folder/complete" || exit 0
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
venv=$folder/venv
python=${STANDIN_PYTHON:-python3}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --no-deps --no-cache-dir "torch==$torch"
"${pip[@]}" install --no-deps --requirement "$here/requirements.txt"
"${pip[@]}" download --no-deps --dest "$folder/include" nvidia-cuda-runtime-cu12==12.8.90
"$venv/bin/python" -m zipfile -e "$folder"/include/nvidia_cuda_runtime_cu12-*.whl "$folder/include"
include=$folder/include/nvidia/cuda_runtime/include
cp -r "$here/crt" "$include/"
libraries=$(echo "$venv"/lib/python3*/site-packages/torch/lib)
"$venv/bin/python" "$here/gen_stubs.py" "$libraries" "$folder/fake" 12080 "$include"
gcc -shared -fPIC -O1 "$here/fakenvml.c" -Wl,-soname,libnvidia-ml.so.1 \
    -o "$folder/fake/libnvidia-ml.so.1"
cp "$here/requirements.txt" "$folder/complete"
