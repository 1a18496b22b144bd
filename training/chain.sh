#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole training, from the photos to a weights file for Lensing. What is finished is not made again, and what was
# interrupted goes on: to stop, end the script; to continue, start it again.
#
#   training/chain.sh FOLDER [WEIGHTS]     WEIGHTS: of a network that takes the place of the first stage's
#                                          PYTHON: a Python with the packages of training/requirements.txt
set -eu

[ $# -eq 1 ] || [ $# -eq 2 ] || { echo 'usage: training/chain.sh FOLDER [WEIGHTS]' >&2; exit 2; }
folder=$1
code=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

# Large blocks are kept for reuse instead of being given back to the system after every step; waiting threads sleep.
export MALLOC_MMAP_THRESHOLD_=8589934592 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=67108864
export OMP_WAIT_POLICY=passive

run() {
    echo "==> $(date '+%F %T') $*"
    "$python" "$code/$1" "$folder" "${@:2}"
}

# stage NAME LABELS OPTION...
stage() {
    [ -e "$folder/$1/done" ] || run train.py --output "$folder/$1" --labels "$folder/$2" "${@:3}"
}

# relabel NAME: labels by the network of a stage
relabel() {
    local labels=labels_$1.npz
    [ -e "$folder/$labels" ] ||
        run label_network.py --weights "$folder/$1/weights.safetensors" --output "$folder/$labels"
}

[ -d "$folder/photos" ] || run photos.py
[ -e "$folder/crops.npy" ] || run crops.py
if [ $# -eq 2 ] && [ ! -e "$folder/stage1/done" ]; then
    mkdir -p "$folder/stage1"
    cp "$2" "$folder/stage1/weights.safetensors"
    touch "$folder/stage1/done"
fi
[ -e "$folder/stage1/done" ] || [ -e "$folder/labels_corners.npz" ] || run label_corners.py

later=(--rate 1e-3 --softness 0.5 --width 208 --height 160 --max-angle 1.05 --strength 1.0 --detector-weight 4)

stage stage1 labels_corners.npz --steps 5000 --rate 2e-3 --softness 0.7 --seed 11
relabel stage1
stage stage2 labels_stage1.npz --from "$folder/stage1/weights.safetensors" --steps 6000 --seed 12 "${later[@]}" \
    --pairs 4 --shapes 4 --correspondences 256
relabel stage2
stage stage3 labels_stage2.npz --from "$folder/stage2/weights.safetensors" --steps 6000 --seed 13 "${later[@]}" \
    --pairs 5 --shapes 2 --correspondences 192
relabel stage3
stage stage4 labels_stage3.npz --from "$folder/stage3/weights.safetensors" --steps 7500 --seed 14 "${later[@]}" \
    --pairs 5 --shapes 2 --correspondences 192

# Quieter: what the default threshold keeps is somewhat less than with the original weights, and surer.
"$python" "$code/export.py" "$folder/stage4/weights.safetensors" "$folder/lensing-superpoint.safetensors" --quieter 1.0
echo "==> $folder/lensing-superpoint.safetensors"
