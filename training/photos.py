# SPDX-License-Identifier: Apache-2.0
"""Lays out the photos of photos.tsv.

    python training/photos.py FOLDER

Downloads the Debian packages of the list with apt-get (of Debian 12, where the list was made), takes the listed files
out and checks each one's SHA-256. Nothing is installed, and no rights are needed. Photos become
FOLDER/photos/NUMBER.EXT, numbered by their row in the list.

photos.tsv names package, file, checksum, licence, author and source of every photo, as its package's copyright file (or
the README beside it, for python3-sklearn) gives them for that file; only CC0, public domain and CC-BY are in it. A
colon in the name of a file separates a Qt resource file of the package from the name inside it. """
import argparse
import csv
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import qt_resources

LIST = pathlib.Path(__file__).resolve().parent / "photos.tsv"


def read_list():
    with open(LIST, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def unpack(package, downloads):
    """Downloads a package unless it is there, and unpacks it; returns the folder of its files."""
    folder = downloads / package
    if not folder.is_dir():
        print(f"fetching {package}", flush=True)
        with tempfile.TemporaryDirectory(dir=downloads) as temporary:
            subprocess.run(["apt-get", "-q", "download", package], cwd=temporary, check=True)
            deb = next(pathlib.Path(temporary).glob("*.deb"))
            unfinished = pathlib.Path(temporary) / "files"
            subprocess.run(["dpkg-deb", "-x", deb, unfinished], check=True)
            unfinished.rename(folder)
    return folder


def read_photo(folder, name):
    outer, _, inner = name.partition(":")
    path = folder / outer
    return qt_resources.read(path)[inner] if inner else path.read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    downloads, photos = folder / "packages", folder / "photos"
    downloads.mkdir(parents=True, exist_ok=True)
    photos.mkdir(exist_ok=True)
    failed = 0
    rows = read_list()
    for number, row in enumerate(rows):
        try:
            data = read_photo(unpack(row["package"], downloads), row["file"])
        except (OSError, KeyError) as error:
            print(f"{row['package']}: {row['file']}: {error!r}", file=sys.stderr)
            failed += 1
            continue
        if hashlib.sha256(data).hexdigest() != row["sha256"]:
            print(f"{row['package']}: {row['file']}: not the file of the list", file=sys.stderr)
            failed += 1
            continue
        (photos / f"{number:03d}{pathlib.Path(row['file']).suffix}").write_bytes(data)
    print(f"{len(rows) - failed} photos in {photos}, {failed} missing or different")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
