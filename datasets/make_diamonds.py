#!/usr/bin/env python3
"""Makes diamonds.csv.gz from the package plotnine on PyPI.

Needs Python 3 with pip and a network. The CSV is untouched; its checksum is compared.
"""

import gzip
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "plotnine==0.15.9"
CSV_SHA256 = "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4"
OUT = pathlib.Path(__file__).parent / "diamonds.csv.gz"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", folder, PACKAGE],
            check=True,
        )
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read("plotnine/data/diamonds.csv")
    found = hashlib.sha256(text).hexdigest()
    if found != CSV_SHA256:
        sys.exit(f"diamonds.csv has sha256 {found}, expected {CSV_SHA256}")
    with open(OUT, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(text)
    print(f"{OUT}: {OUT.stat().st_size} bytes, sha256 {hashlib.sha256(OUT.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
