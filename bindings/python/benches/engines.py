"""Plans many sessions in one process, on Spark and on Ray. Compares sessions per second, memory and
fingerprints.

    CONTEXT_WINDOW_DATA=... python benches/engines.py [ROWS]

The sessions come from `tests/make_sessions.py`, and a tenth of them are damaged. Each configuration plans all
of them. It then runs again with a function that only copies the ids, to measure the cost of the engine
itself. In the first Spark run, a worker is killed in the middle. Memory is the sum over the processes of a
run, in the second and in the last quarter of its time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent.parent
FILES = 40

#: The replacement for the planner in cost measurements: it reads all columns and returns the ids.
COMMON = """
import os, signal, sys
import pyarrow as pa

SCHEMA = "id long, fingerprint string, tokens long, reuse long, drops long, cost long, overflow long, error string"
source, target, identity = sys.argv[1], sys.argv[2], sys.argv[3] == "identity"

def done(batch, threads=1):
    if identity:
        none = {name: pa.nulls(batch.num_rows, pa.string()) for name in ("fingerprint", "error")}
        names = ("tokens", "reuse", "drops", "cost", "overflow")
        numbers = {name: pa.nulls(batch.num_rows, pa.int64()) for name in names}
        columns = {"id": batch["id"], "fingerprint": none["fingerprint"], **numbers, "error": none["error"]}
        return pa.record_batch(columns)
    import context_window
    return context_window.plan_batch(batch, model="gpt-4o", plans=False, threads=threads)
"""

ONE = """
import pyarrow.dataset as ds, pyarrow.parquet as pq
os.makedirs(target)
writer = None
for path in sorted(os.listdir(source)):
    for batch in pq.ParquetFile(os.path.join(source, path), pre_buffer=False).iter_batches(5_000):
        made = done(batch, THREADS)
        writer = writer or pq.ParquetWriter(os.path.join(target, "all.parquet"), made.schema)
        writer.write_batch(made)
writer.close()
"""

SPARK = """
import spark as example
killed = os.path.join(os.path.dirname(target), "killed")

def planned(batches):
    for number, batch in enumerate(batches):
        yield done(batch)
        if number == 1 and not identity:
            try:
                os.close(os.open(killed, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

session = example.session("local-cluster[2,1,2048]")
session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5000")
session.read.parquet(source).mapInArrow(planned, SCHEMA).write.parquet(target)
session.stop()
"""

RAY = """
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray

def planned(table):
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return pa.Table.from_batches([done(batch) for batch in batches])

ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, num_cpus=2, configure_logging=False)
ray.data.read_parquet(source).map_batches(planned, batch_format="pyarrow", batch_size=5_000).write_parquet(target)
ray.shutdown()
"""

LANES = {
    "one process": COMMON + ONE.replace("THREADS", "1"),
    "one process, 2 threads": COMMON + ONE.replace("THREADS", "2"),
    "Spark, 2 workers": COMMON + SPARK,
    "Ray, 2 workers": COMMON + RAY,
}


def children(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in found] + [deeper for child in found for deeper in children(int(child))]


def memory(pid: int) -> int:
    """Returns the bytes of memory of a process and its children. Shared pages count once per process."""
    total = 0
    for one in [pid, *children(pid)]:
        try:
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:"))) * 1024
    return total


def run(program: str, source: Path, target: Path, kind: str) -> tuple[float, list[int]]:
    """Returns the duration of a run in seconds, and its memory in bytes every half second."""
    path = os.pathsep.join([str(HERE / "examples"), os.environ.get("PYTHONPATH", "")])
    start = time.monotonic()
    ran = subprocess.Popen(
        [sys.executable, "-c", program, str(source), str(target), kind],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            seen.append(memory(ran.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, error = ran.communicate(timeout=3_000)
    over.set()
    watcher.join()
    if ran.returncode != 0:
        raise SystemExit(error.decode()[-3000:])
    return time.monotonic() - start, seen


def made_sessions(folder: Path, rows: int) -> Path:
    sys.path.insert(0, str(HERE / "tests"))
    import make_sessions

    whole, parts = folder / "sessions.parquet", folder / "parts"
    make_sessions.make(whole, rows, 0.1)
    parts.mkdir()
    each = -(-rows // FILES)
    writer, count, number = None, 0, 0
    for batch in pq.ParquetFile(whole, pre_buffer=False).iter_batches(5_000):
        if writer is None or count >= each:
            if writer is not None:
                writer.close()
            writer, count, number = pq.ParquetWriter(parts / f"{number:03}.parquet", batch.schema), 0, number + 1
        writer.write_batch(batch)
        count += batch.num_rows
    if writer is not None:
        writer.close()
    whole.unlink()
    return parts


def fingerprints(target: Path) -> Any:
    table = pyarrow.dataset.dataset(target).to_table(columns=["id", "fingerprint", "error"])
    return table.sort_by("id").combine_chunks()


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        source, first = made_sessions(folder, rows), None
        print(
            f"{rows:,} sessions, {sum(one.stat().st_size for one in source.iterdir()) / rows:,.0f} bytes each as Parquet"
        )
        print(f"{'':24}{'planned':>14}{'identity':>14}{'MB, 2nd quarter':>18}{'MB, last quarter':>18}  fingerprints")
        for number, (lane, program) in enumerate(LANES.items()):
            target = folder / f"out-{number}"
            took, seen = run(program, source, target, "planned")
            bare, _ = run(program, source, folder / f"bare-{number}", "identity")
            done = fingerprints(target)
            first = first if first is not None else done
            errors = done.num_rows - done["error"].null_count
            same = "equal" if done.equals(first) else "DIFFER"
            quarter = max(len(seen) // 4, 1)
            early, late = (max(part) / 1e6 for part in (seen[quarter : 2 * quarter] or [0], seen[-quarter:]))
            figures = f"{rows / took:>12,.0f}/s{rows / bare:>12,.0f}/s{early:>18,.0f}{late:>18,.0f}"
            print(f"{lane:24}{figures}  {same}, {errors:,} errors", flush=True)
        print("a worker of Spark was killed" if (folder / "killed").exists() else "NO worker of Spark was killed")


if __name__ == "__main__":
    main()
