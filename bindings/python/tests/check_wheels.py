"""Checks built wheels and source distributions. `bindings/python/wheels --check FILE...` runs it.

A wheel has its licences, metadata, tag and scripts, is at most `MAXIMUM_SIZE` bytes, and works: it is installed
into an environment without Rust, imported, and plans; the console script runs. A wheel for another processor runs
under qemu with Debian's Python. A wheel for musl is loaded by musl's own loader.
"""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# In bytes.
MAXIMUM_SIZE = 12_000_000
# The C libraries that a wheel may need: every manylinux has these of glibc.
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1", "libutil.so.1"}
GLIBC |= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
SENTENCE = "install Rust from https://rustup.rs, or a wheel"
PROBE = """
import json, sys, time
started = time.perf_counter()
import context_window
imported = time.perf_counter()
manager = context_window.Manager("gpt-4o")
log = context_window.Conversation([{"role": "system", "content": "Answer from the documents."}])
log.push({"role": "user", "content": "How long do refunds take?"})
plan = manager.plan(log, documents=[("refunds", 0.92, "Refunds take 5 days.")], prompt_budget=2_000)
planned = time.perf_counter()
assert len(plan.messages()) == 3, plan.messages()
assert context_window.__file__.startswith(sys.argv[1]), context_window.__file__
print(json.dumps({"import": imported - started, "first plan": planned - imported}))
"""


def skip(name: str, reason: str) -> None:
    """Prints a loud line for an omitted check, and records it for the summary of the gate."""
    print(f"*** {reason} ***", file=sys.stderr, flush=True)
    record = os.environ.get("CONTEXT_WINDOW_SKIPPED")
    if record:
        with open(record, "a", encoding="utf-8") as file:
            file.write(f"{name}\t{reason}\n")


def check_files(files: list[Path], tools: Path, dev: bool) -> int:
    """Checks all files, prints one line for each, and returns 1 if one of them is faulty."""
    faults = 0
    for path in [None, *files]:
        started = time.monotonic()
        name = path.name if path else "the sources"
        try:
            if path is None:
                report = check_sources()
            elif path.suffix == ".whl":
                report = check_wheel(path, tools, dev)
            else:
                report = check_sdist(path)
        except (AssertionError, KeyError, subprocess.CalledProcessError) as error:
            faults += 1
            output = getattr(error, "stdout", None) or ""
            report = f"FAULT: {error}\n{output}"
        print(f"{name}: {report} ({time.monotonic() - started:.1f} s)", flush=True)
    print(f"{len(files) + 1 - faults} passed, {faults} failed")
    return 1 if faults else 0


def check_sources() -> str:
    """Checks that the copies in the package's folder equal the originals."""
    import build_backend

    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        copy = HERE.parent / "licenses" / name
        assert copy.read_bytes() == (ROOT / name).read_bytes(), f"{copy} differs from {ROOT / name}"
    stated = re.search(r'^rust-version = "(\d+)\.(\d+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert stated and tuple(map(int, stated.groups())) == build_backend.MINIMUM_RUST, (
        f"build_backend.py: MINIMUM_RUST is {build_backend.MINIMUM_RUST}, and Cargo.toml states {stated and stated[0]}"
    )
    return "licences and the Rust version agree"


def check_sdist(path: Path) -> str:
    """Checks the files and the manifests of a source distribution, and the sentence without Rust.

    With FULL=1, it is also installed, by the dev profile.
    """
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(path) as archive:
            names = {name.split("/", 1)[1] for name in archive.getnames()}
            archive.extractall(folder)
        needed = {"PKG-INFO", "Cargo.toml", "Cargo.lock", "pyproject.toml", "build_backend.py", "LICENSE-MIT"}
        needed |= {"LICENSE-APACHE", "python/context_window/py.typed", "bindings/python/src/lib.rs", "src/lib.rs"}
        needed |= {f"python/{p.relative_to(HERE.parent / 'python')}" for p in (HERE.parent / "python").rglob("*.py*")}
        needed = {name for name in needed if "__pycache__" not in name}
        assert needed <= names, f"missing: {sorted(needed - names)}"
        foreign = [name for name in names if re.match(r"target/|tests/fixtures|docs/|.*\.(so|pyc)$", name)]
        assert not foreign, f"not of the package: {foreign}"
        (root,) = Path(folder).iterdir()
        check_metadata((root / "PKG-INFO").read_text())
        readme = re.search(r'^readme = "(.*)"', (root / "pyproject.toml").read_text(), re.MULTILINE)
        own = (HERE.parent / "README.md").read_bytes()
        assert readme and (root / readme[1]).read_bytes() == own, "pyproject.toml names the README of another package"
        # Cargo reads all manifests as for a build, which fails if one of them names a file that is not packed.
        host = re.search("^host: (.*)", run(["rustc", "-vV"]), re.MULTILINE)
        assert host
        run(["cargo", "fetch", "--quiet", "--target", host[1]], cwd=root)
        check_sentences(path, Path(folder))
        if os.environ.get("FULL") == "1":
            # A build folder of its own: in the one of the sources, cargo would find everything built.
            env = os.environ | {"MATURIN_PEP517_ARGS": "--profile dev", "CARGO_TARGET_DIR": f"{folder}/target"}
            bare = Path(folder) / "installed"
            venv.create(bare, with_pip=True)
            run([bare / "bin/pip", "install", "--quiet", "--no-deps", path], env=env, cwd=folder)
            run([bare / "bin/python", "-I", "-c", PROBE, bare], cwd=folder)
            return f"{len(names)} files, {path.stat().st_size / 1e6:.2f} MB, installed"
    return f"{len(names)} files, {path.stat().st_size / 1e6:.2f} MB"


def check_sentences(sdist: Path, folder: Path) -> None:
    """Checks that pip shows one sentence if Rust is missing or too old, and no traceback."""
    bare = folder / "bare"
    venv.create(bare, with_pip=True)
    old = folder / "old"
    old.mkdir()
    for name in ("cargo", "rustc"):
        (old / name).write_text(f"#!/bin/sh\necho '{name} 1.63.0 (4b91a6ea7 2022-08-08)'\n")
        (old / name).chmod(0o755)
    shell = str(Path(shutil.which("sh") or "/bin/sh").parent)
    for path, sentence in [(f"{bare}/bin", SENTENCE), (f"{bare}/bin:{old}:{shell}", "run `rustup update`")]:
        install: list[str | Path] = [bare / "bin/pip", "install", "--no-deps", "--no-build-isolation", sdist]
        done = subprocess.run(install, env=bare_environment(path), capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        assert done.returncode, "a build without Rust succeeded"
        lines = [line for line in output.splitlines() if sentence in line]
        assert len(lines) == 1 and "Traceback" not in output, output


def check_wheel(path: Path, tools: Path, dev: bool) -> str:
    """Checks the content of a wheel, and runs it if this machine can."""
    size = path.stat().st_size
    tag = re.fullmatch(r"context_window-[^-]+-cp310-abi3-(.+)\.whl", path.name)
    assert tag, f"{path.name}: expected cp310-abi3 and a platform"
    platform = tag[1]
    if not dev:
        assert size <= MAXIMUM_SIZE, f"{size} bytes, expected at most {MAXIMUM_SIZE}"
        assert re.search(r"manylinux_2_17_|musllinux_1_[12]_|macosx_|win", platform), f"tag {platform}"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        for name in ("LICENSE-APACHE", "LICENSE-MIT"):
            assert archive.read(f"{info}/licenses/licenses/{name}") == (ROOT / name).read_bytes(), name
        check_metadata(archive.read(f"{info}/METADATA").decode())
        scripts = archive.read(f"{info}/entry_points.txt").decode()
        for script in ("context-window", "plan-inspect"):
            assert f"{script}=context_window.__main__:main" in scripts.replace(" ", ""), scripts
        assert {"context_window/py.typed", "context_window/_core.pyi"} <= set(names), names
        assert not [name for name in names if "build_backend" in name or name.endswith(".pyc")], names
        (library,) = [name for name in names if name.endswith((".so", ".pyd"))]
        with tempfile.TemporaryDirectory() as folder:
            archive.extractall(folder)
            facts = check_library(Path(folder) / library, platform, tools, dev)
    return f"{size / 1e6:.2f} MB{facts}{smoke_test(path, platform, tools)}"


def check_metadata(text: str) -> None:
    """Checks the fields that the index shows."""
    metadata = email.message_from_string(text)
    assert metadata["Name"] == "context-window"
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version and metadata["Version"] == version[1], metadata["Version"]
    assert metadata["License-Expression"] == "MIT OR Apache-2.0", metadata["License-Expression"]
    licences = metadata.get_all("License-File")
    assert licences == ["licenses/LICENSE-APACHE", "licenses/LICENSE-MIT"], licences
    for field in ("Author", "Summary", "Keywords", "Requires-Python"):
        assert metadata[field], f"{field} is missing"
    assert len(metadata.get_all("Classifier") or []) > 10
    body = metadata.get_payload()
    expected = (HERE.parent / "README.md").read_text().splitlines()[0]
    assert isinstance(body, str) and body.startswith(expected), "the description is not the README of the package"


def check_library(library: Path, platform: str, tools: Path, dev: bool) -> str:
    """Checks the libraries and the versions of glibc that an ELF file needs."""
    if library.suffix == ".pyd" or "macosx" in platform:
        return ""
    program = """
import json, sys
from elftools.elf.elffile import ELFFile
elf = ELFFile(open(sys.argv[1], "rb"))
needed = [tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
section = elf.get_section_by_name(".gnu.version_r")
versions = [aux.name for _, auxes in section.iter_versions() for aux in auxes] if section else []
print(json.dumps([needed, versions]))
"""
    needed, versions = json.loads(run([tools, "-c", program, library]))
    if "musl" in platform:
        assert needed == ["libc.so"], f"needs {needed}, expected musl's libc.so alone"
        return ", needs libc.so alone"
    assert set(needed) <= GLIBC, f"needs {sorted(set(needed) - GLIBC)}"
    newest = max(
        (tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in versions if name.startswith("GLIBC_"))
    )
    promised = re.search(r"manylinux_(\d+)_(\d+)_", platform)
    assert promised and newest[:2] <= tuple(map(int, promised.groups())), f"needs glibc {newest}, promises {platform}"
    return f", needs glibc {'.'.join(map(str, newest))}"


def smoke_test(path: Path, platform: str, tools: Path) -> str:
    """Runs the wheel, or prints a loud line with the reason."""
    machine = os.uname().machine if hasattr(os, "uname") else ""
    foreign = not platform.endswith(machine)
    if "manylinux" in platform and not foreign:
        return install_and_run(path)
    if platform.startswith("manylinux") and platform.endswith("aarch64"):
        return run_under_qemu(path)
    if platform.startswith("musllinux"):
        return load_with_musl(path, platform, tools)
    skip(platform, f"{path.name} is for another system: it is not run")
    return ""


def install_and_run(path: Path) -> str:
    """Installs the wheel into a bare environment without Rust, plans, and runs the console script."""
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare"
        venv.create(bare, with_pip=True)
        env = bare_environment(f"{bare}/bin")
        assert not shutil.which("cargo", path=env["PATH"])
        started = time.monotonic()
        run([bare / "bin/pip", "install", "--quiet", "--no-index", path], env=env, cwd=folder)
        seconds = time.monotonic() - started
        times = json.loads(run([bare / "bin/python", "-I", "-c", PROBE, bare], env=env, cwd=folder))
        session = ROOT / "examples/support-chat.json"
        plan = run([bare / "bin/context-window", session, "--budget", "400", "--format", "json"], env=env, cwd=folder)
        assert json.loads(plan)["included"], plan
        version = run([bare / "bin/plan-inspect", "--version"], env=env, cwd=folder)
        module = run([bare / "bin/python", "-m", "context_window", "--version"], env=env, cwd=folder)
        assert version == module and re.match(r"plan-inspect \d", version), version
        for arguments, code in [(["missing.json"], 2), ([str(session), "--budget", "1", "--strict"], 1)]:
            command: list[str | Path] = [bare / "bin/context-window", *arguments]
            done = subprocess.run(command, env=env, capture_output=True, check=False)
            assert done.returncode == code, f"{arguments}: exit code {done.returncode}, expected {code}"
        check_interrupt([bare / "bin/context-window", "-"], env)
    return (
        f", installed in {seconds:.2f} s, imported in {times['import'] * 1e3:.1f} ms, "
        f"first plan in {times['first plan'] * 1e3:.1f} ms, console script runs"
    )


def check_interrupt(command: Sequence[str | Path], env: dict[str, str]) -> None:
    """Checks that Ctrl-C ends the tool while it reads standard input."""
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # The tool has replaced Python's handler by then: it only starts to read afterwards.
        time.sleep(2)
        assert process.poll() is None, "the tool did not read standard input"
        process.send_signal(signal.SIGINT)
        try:
            code = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError("Ctrl-C did not end the tool") from None
        assert code in (-signal.SIGINT, 128 + signal.SIGINT), f"exit code {code} after Ctrl-C"


def run_under_qemu(path: Path) -> str:
    """Imports the wheel and plans with Debian's Python for aarch64, under qemu."""
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    root = debian_files(["python3:arm64"]) if qemu else None
    if not qemu or not root:
        skip("aarch64", f"qemu or Debian's Python for aarch64 is not here: {path.name} is not run")
        return ""
    python = next(p for p in sorted((root / "usr/bin").glob("python3.*")) if re.fullmatch(r"python3\.\d+", p.name))
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        env = bare_environment("/usr/bin:/bin") | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        run([qemu, "-L", root, python, "-c", PROBE, folder], env=env)
        program = "import sys; from context_window.__main__ import main; sys.exit(main())"
        session = ROOT / "examples/support-chat.json"
        run([qemu, "-L", root, python, "-c", program, session, "--budget", "400"], env=env)
    return f", plans under qemu with {python.name}, console script runs"


def load_with_musl(path: Path, platform: str, tools: Path) -> str:
    """Loads the library with musl's own loader, and resolves every symbol at once.

    Debian has no Python for musl. Data stands for the functions of Python, which are only resolved, not called.
    """
    arch = platform.rsplit("_", 1)[-1] if platform.endswith("aarch64") else "x86_64"
    root = debian_files(["musl:arm64" if arch == "aarch64" else "musl:amd64"])
    emulator = (
        [] if arch == os.uname().machine else [shutil.which(f"qemu-{arch}-static") or shutil.which(f"qemu-{arch}")]
    )
    if not root or None in emulator:
        skip(platform, f"qemu or Debian's musl for {arch} is not here: {path.name} is not loaded")
        return ""
    skip(platform, f"no Python for musl is here: {path.name} is loaded by musl's loader, but plans nothing")
    undefined = """
import sys
from elftools.elf.elffile import ELFFile
table = ELFFile(open(sys.argv[1], "rb")).get_section_by_name(".dynsym")
names = {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
print(" ".join(sorted(name for name in names if name.startswith(("Py", "_Py")))))
"""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        (library,) = Path(folder).glob("context_window/*.so")
        stand_ins = "".join(f"char {name}[64];\n" for name in run([tools, "-c", undefined, library]).split())
        source = Path(folder) / "load.c"
        source.write_text(
            f"#include <dlfcn.h>\n#include <stdio.h>\n{stand_ins}\n"
            "int main(int count, char **arguments) {\n"
            "    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : 0;\n"
            '    if (!library || !dlsym(library, "PyInit__core")) { puts(dlerror()); return 1; }\n'
            '    puts("loaded");\n    return 0;\n}\n'
        )
        compiler = [tools, "-m", "ziglang", "cc", "-target", f"{arch}-linux-musl", "-dynamic", "-rdynamic"]
        # Zig's checks of undefined behaviour would need a newer musl than the oldest that a wheel may meet.
        compiler += ["-O1", "-fno-sanitize=all"]
        run([*compiler, source, "-o", Path(folder) / "load"])
        loader = next((root / "lib").glob("ld-musl-*"))
        # The loader is a link to an absolute path, which is another file here.
        loader = next(root.glob("usr/lib/*/libc.so"), next(root.glob("lib/*/libc.so"), loader))
        run([*emulator, loader, Path(folder) / "load", library])
    return ", loads with musl"


def debian_files(packages: list[str]) -> Path | None:
    """Returns a folder with the files of Debian packages and of their dependencies, or `None` without Debian.

    The packages are only unpacked. The machine's own packages and package lists do not change.
    """
    base = ROOT / "target/python/debian" / "+".join(packages).replace(":", "-")
    root = base / "root"
    if (base / "complete").exists():
        return root
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return None
    for folder in ("state/lists/partial", "cache/archives/partial", "root"):
        (base / folder).mkdir(parents=True, exist_ok=True)
    (base / "status").touch()
    settings = {
        "Dir::State": base / "state",
        "Dir::State::status": base / "status",
        "Dir::Cache": base / "cache",
        "APT::Architecture": packages[0].split(":")[1],
        "APT::Architectures": packages[0].split(":")[1],
        "APT::Sandbox::User": "root",
    }
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    try:
        run(["apt-get", *options, "update"])
        run(["apt-get", *options, "install", "--yes", "--download-only", "--no-install-recommends", *packages])
        for archive in (base / "cache/archives").glob("*.deb"):
            run(["dpkg-deb", "--extract", archive, root])
    except subprocess.CalledProcessError as error:
        print(error.stdout, file=sys.stderr)
        return None
    (base / "complete").touch()
    return root


def bare_environment(path: str) -> dict[str, str]:
    """Returns an environment with this `PATH` alone, so that no Rust is found."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name in ("TMPDIR", "LANG")}
    return kept | {"PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(command: Sequence[object], env: dict[str, str] | None = None, cwd: Path | str | None = None) -> str:
    """Runs a command and returns its standard output. The error of a failed command has all of its output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, words[:4], done.stdout + done.stderr)
    return done.stdout
