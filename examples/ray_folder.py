#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds keypoints in many photos with Ray, on one machine or a cluster, and writes Parquet files.

    python examples/ray_folder.py PHOTOS OUT [--workers N] [--threads N]

PHOTOS is a folder, searched with all folders in it, or a text file with one path or URI (such as s3://bucket/photo.jpg)
on each line. OUT is a folder, or a URI of one, and the workers must reach the same photos and the same OUT. Each worker
is a process with a model of its own that uses --threads CPUs.

Run it again after an interruption: photos that are in OUT already are left out. A file in OUT is complete or not there,
and a batch that a worker repeats writes the same file. Columns, one row for each photo:

    path         string
    error        string, null if there was none; a photo that cannot be read does not stop the others
    width        int32, pixels
    height       int32, pixels
    keypoints    list of float32: x, y, x, y ... in pixels, highest score first
    scores       list of float32
    descriptors  binary: numpy.frombuffer(value, numpy.float16).reshape(-1, 256)

Needs ray[data] besides lensing. Ray opens ports to the network, also when it runs on one machine.
"""

import argparse
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import ray
from pyarrow import fs

import lensing

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".gif", ".bmp", ".pnm", ".ppm", ".pgm", ".pbm"}
SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("error", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("keypoints", pa.list_(pa.float32())),
        ("scores", pa.list_(pa.float32())),
        ("descriptors", pa.binary()),
    ]
)


class Detector:
    """One worker: opens its model once, and writes a file for every batch of paths."""

    def __init__(self, weights: str | None, threads: int, out: str, parameters: dict[str, Any]) -> None:
        self.model = lensing.SuperPoint.from_pretrained(weights, threads=threads)
        self.out, self.parameters = out, parameters

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        paths = [str(path) for path in batch["path"]]
        rows = [self.row(path) for path in paths]
        write(self.out, paths, pa.Table.from_pylist(rows, SCHEMA))
        errors = sum(row["error"] is not None for row in rows)
        return {"photos": np.array([len(rows)]), "errors": np.array([errors])}

    def row(self, path: str) -> dict[str, Any]:
        row: dict[str, Any] = dict.fromkeys(SCHEMA.names)
        row["path"] = path
        try:
            features = self.model(read(path), **self.parameters)
        except (OSError, ValueError) as error:
            row["error"] = f"{type(error).__name__}: {error}"
            return row
        row["height"], row["width"] = features.image_size
        row["keypoints"], row["scores"] = features.keypoints.ravel(), features.scores
        if features.descriptors is not None:
            row["descriptors"] = features.descriptors.astype("<f2").tobytes()
        return row


def read(path: str) -> str | bytes:
    """A path as it is; the bytes of what a URI names."""
    if "://" not in path:
        return path
    system, name = fs.FileSystem.from_uri(path)
    with system.open_input_stream(name) as stream:
        data: bytes = stream.read()
    return data


def place(out: str) -> tuple[fs.FileSystem, str]:
    """File system and folder of the results."""
    return fs.FileSystem.from_uri(out) if "://" in out else (fs.LocalFileSystem(), out)


def write(out: str, paths: list[str], table: pa.Table) -> None:
    """A file that is named after the paths, complete or not at all."""
    system, folder = place(out)
    name = hashlib.sha256("\n".join(paths).encode()).hexdigest()[:24] + ".parquet"
    # pyarrow.dataset leaves out names that begin with a dot.
    hidden = f"{folder}/.{name}"
    with system.open_output_stream(hidden) as stream:
        pyarrow.parquet.write_table(table, stream, compression="zstd")
    system.move(hidden, f"{folder}/{name}")


def finished(out: str) -> set[str]:
    """Paths of the photos that are in the results."""
    system, folder = place(out)
    system.create_dir(folder, recursive=True)
    found = pyarrow.dataset.dataset(folder, SCHEMA, filesystem=system, format="parquet")
    return set(found.to_table(columns=["path"])["path"].to_pylist())


def photos(source: str) -> Iterator[str]:
    """Paths or URIs of a folder or a list."""
    path = Path(source)
    if path.is_dir():
        yield from (str(file.resolve()) for file in sorted(path.rglob("*")) if file.suffix.lower() in ENDINGS)
    else:
        yield from (line for line in map(str.strip, path.read_text().splitlines()) if line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Finds keypoints in many photos with Ray, and writes Parquet files.")
    parser.add_argument("photos", help="a folder, or a text file with one path or URI on each line")
    parser.add_argument("out", help="folder or URI for the Parquet files")
    parser.add_argument("--workers", type=int, help="processes; default: as many as there are CPUs for")
    parser.add_argument("--threads", type=int, default=1, help="CPUs of each worker")
    parser.add_argument("--batch", type=int, default=64, help="photos in a Parquet file")
    parser.add_argument("--max-keypoints", type=int, default=1024)
    parser.add_argument("--no-descriptors", action="store_true")
    parser.add_argument("--weights", help="folder, file or Hugging Face repository; default: those of lensing")
    parser.add_argument("--address", help="of a Ray cluster; default: $RAY_ADDRESS, or start one here")
    arguments = parser.parse_args()

    out = arguments.out if "://" in arguments.out else str(Path(arguments.out).resolve())
    weights = arguments.weights
    if weights is not None and Path(weights).exists():
        weights = str(Path(weights).resolve())
    done = finished(out)
    there = list(dict.fromkeys(photos(arguments.photos)))
    todo = [path for path in there if path not in done]
    print(f"{len(there)} photos, {len(there) - len(todo)} of them finished before")
    if not todo:
        return

    ray.init(address=arguments.address)
    workers = arguments.workers or max(1, int(ray.cluster_resources()["CPU"]) // arguments.threads)
    parameters = {"max_keypoints": arguments.max_keypoints, "return_descriptors": not arguments.no_descriptors}
    blocks = -(-len(todo) // arguments.batch)
    results = (
        ray.data.from_items([{"path": path} for path in todo], override_num_blocks=min(blocks, 1000))
        .map_batches(
            Detector,
            fn_constructor_args=(weights, arguments.threads, out, parameters),
            batch_size=arguments.batch,
            num_cpus=arguments.threads,
            compute=ray.data.ActorPoolStrategy(size=workers),
        )
        .iter_rows()
    )
    start, total, errors = time.perf_counter(), 0, 0
    for row in results:
        total, errors = total + int(row["photos"]), errors + int(row["errors"])
        seconds = time.perf_counter() - start
        print(f"{total} of {len(todo)} photos, {errors} errors, {total / seconds:.1f} a second", flush=True)
    print(f"wrote {out}: {total} photos with {workers} workers, {errors} errors")


if __name__ == "__main__":
    main()
