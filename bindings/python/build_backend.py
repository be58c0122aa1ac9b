"""The build backend of the package: maturin, with two differences.

- Without a suitable Rust toolchain, a build ends in one sentence. Maturin would download a toolchain, or end in
  a traceback.
- The source distribution can be built. Maturin packs the manifest of the workspace as it is, which names test
  and example files that are not packed, and the README of the Rust crate in place of this package's.
"""

from __future__ import annotations

import gzip
import io
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from typing import Any

MINIMUM_RUST = (1, 91)

_Settings = Mapping[str, Any] | None
_TARGET_TABLE = re.compile(r"^\[\[(test|example|bench)\]\]\n(?:(?!\[).*\n?)*", re.MULTILINE)
_FOLDERS = {"test": "tests", "example": "examples", "bench": "benches"}


def build_wheel(wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None) -> str:
    """Builds the wheel and returns its file name."""
    _check_toolchain()
    import maturin  # type: ignore[import-untyped]

    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None
) -> str:
    """Builds a wheel that refers to the sources, and returns its file name."""
    _check_toolchain()
    import maturin

    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: _Settings = None) -> str:
    """Builds the source distribution and returns its file name."""
    _check_toolchain()
    import maturin

    name = str(maturin.build_sdist(sdist_directory, config_settings))
    _repair_sdist(os.path.join(sdist_directory, name))
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: _Settings = None) -> str:
    """Writes the metadata of the wheel and returns the name of its folder."""
    _check_toolchain()
    import maturin

    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """Returns the additional build requirements: none. Fails early if the toolchain is missing."""
    _check_toolchain()
    return []


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel


def _check_toolchain() -> None:
    """Ends the process with one sentence if cargo is missing or rustc is too old."""
    needed = ".".join(map(str, MINIMUM_RUST))
    wheel = "pip install --only-binary :all: context-window"
    if not shutil.which("cargo"):
        sys.exit(
            f"Building context-window from source needs Rust {needed} or later: install Rust from https://rustup.rs, "
            f"or a wheel, which needs no Rust, with `{wheel}`."
        )
    rustc = os.environ.get("RUSTC", "rustc")
    try:
        found = subprocess.run([rustc, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        found = ""
    version = re.match(r"rustc (\d+)\.(\d+)", found)
    if not version or (int(version[1]), int(version[2])) < MINIMUM_RUST:
        sys.exit(
            f"Building context-window from source needs Rust {needed} or later, but found {found.strip() or 'no rustc'}: "
            f"run `rustup update`, or install a wheel, which needs no Rust, with `{wheel}`."
        )


def _repair_sdist(path: str) -> None:
    """Removes the targets whose files are not packed, and names the README of this package."""
    with tarfile.open(path) as archive:
        # A regular file has content. Maturin packs nothing else.
        files = [(member, archive.extractfile(member).read()) for member in archive if member.isfile()]  # type: ignore[union-attr]
    names = {member.name for member, _ in files}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in files:
            folder, name = posixpath.split(member.name)
            if name == "Cargo.toml":
                content = _remove_missing_targets(content.decode(), folder, names).encode()
            elif name == "pyproject.toml":
                content = content.replace(b'\nreadme = "README.md"', b'\nreadme = "bindings/python/README.md"')
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    # Without a time, equal sources make equal archives.
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as compressed:
        compressed.write(packed.getvalue())


def _remove_missing_targets(manifest: str, folder: str, names: set[str]) -> str:
    """Returns a manifest without the `[[test]]`, `[[example]]` and `[[bench]]` tables whose files are not packed."""

    def keep(table: re.Match[str]) -> str:
        fields = dict(re.findall(r'^(name|path) = "(.*)"', table[0], re.MULTILINE))
        base = f"{_FOLDERS[table[1]]}/{fields['name']}"
        paths = [fields["path"]] if "path" in fields else [f"{base}.rs", f"{base}/main.rs"]
        return table[0] if any(f"{folder}/{path}" in names for path in paths) else ""

    return _TARGET_TABLE.sub(keep, manifest)
