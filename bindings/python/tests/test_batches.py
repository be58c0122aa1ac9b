"""Batches with one session per row, including damaged ones. They run in one process, and in the examples
for Spark, Ray and Daft.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, has_java, rust_plan, tool

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

import make_sessions  # noqa: E402
from context_window import ConfigError, Conversation, InputError, Manager, plan_batch, replay_batch  # noqa: E402

pytestmark = pytest.mark.skipif(make_sessions.data() is None, reason="CONTEXT_WINDOW_DATA is not there")

ROWS = 2_000
DAMAGED = 200
EXAMPLES = ROOT / "bindings" / "python" / "examples"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("sessions") / "sessions.parquet"
    assert make_sessions.make(made, ROWS, 0.1) == DAMAGED
    return made


@pytest.fixture(scope="module")
def parts(path: Path, batch: Any) -> Path:
    """Writes the same rows to four files, so that engines can distribute them."""
    folder = path.parent / "parts"
    folder.mkdir()
    for at in range(0, ROWS, 500):
        pq.write_table(pa.Table.from_batches([batch.slice(at, 500)]), folder / f"{at}.parquet")
    return folder


@pytest.fixture(scope="module")
def batch(path: Path) -> Any:
    (whole,) = pq.read_table(path).combine_chunks().to_batches()
    return whole


@pytest.fixture(scope="module")
def planned(batch: Any) -> Any:
    return plan_batch(batch, plans=False)


@pytest.fixture(scope="module")
def replayed(batch: Any) -> Any:
    return replay_batch(batch)


def by_id(done: Any) -> dict[int, dict[str, Any]]:
    found = {row["id"]: row for row in done.to_pylist()}
    assert len(found) == done.num_rows
    return found


def check_errors(done: Any) -> None:
    """Checks that every tenth row, which is damaged, has an error and no other value, and that no other
    row has one.
    """
    for at, row in sorted(by_id(done).items()):
        assert (row["error"] is not None) == (at % 10 == 9), row
        assert (row["fingerprint"] is None) == (row["error"] is not None)
        assert row["error"] is None or {*row.values()} == {at, None, row["error"]}
    assert done.num_rows - done["error"].null_count == DAMAGED


def test_the_sessions_are_the_same_each_time() -> None:
    made = list(make_sessions.rows(ROWS, 0.1))
    assert made == list(make_sessions.rows(ROWS, 0.1)) and made != list(make_sessions.rows(ROWS, 0.1, seed=1))
    whole = [session for at, session, _ in made if session and at % 10 != 9]
    assert len({json.loads(session)["id"] for session in whole}) == len(whole) == ROWS - DAMAGED
    assert 2_500 < sum(map(len, whole)) / len(whole) < 3_500
    assert len({session[:60] if session else None for at, session, _ in made if at % 10 == 9}) > 7


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", [plan_batch, replay_batch])
def test_one_process(call: Any, threads: int, batch: Any, planned: Any, replayed: Any) -> None:
    expected = planned if call is plan_batch else replayed
    check_errors(expected)
    assert call(batch, plans=False, threads=threads).equals(expected)
    # A row's result does not depend on the rows around it.
    parts = [call(batch.slice(at, 170), plans=False, threads=threads) for at in range(0, ROWS, 170)]
    assert pa.Table.from_batches(parts).equals(pa.Table.from_batches([expected]).combine_chunks())
    assert expected["id"].equals(batch["id"]) and sum(drops or 0 for drops in expected["drops"].to_pylist()) > 1_000


def test_each_row_is_the_plan_of_its_session(batch: Any, planned: Any) -> None:
    manager, compared = Manager("gpt-4o"), 0
    for given, done in zip(batch.to_pylist(), planned.to_pylist()):
        if done["error"] is not None:
            continue
        session = json.loads(given["session"])
        plan = manager.plan(
            Conversation(session["messages"]),
            documents=json.loads(given["documents"] or "[]"),
            tools=session.get("tools"),
            prompt_budget=session["limits"]["prompt_budget"],
        )
        assert (plan.fingerprint, plan.estimated_tokens_total) == (done["fingerprint"], done["tokens"]), given["id"]
        compared += 1
    assert compared == ROWS - DAMAGED


@pytest.mark.skipif(tool() is None, reason="plan-inspect is not built")
def test_some_rows_are_what_rust_prints(batch: Any) -> None:
    some = batch.slice(0, 9)
    for given, done in zip(some.to_pylist(), plan_batch(some).to_pylist()):
        session = {**json.loads(given["session"]), "rag": json.loads(given["documents"] or "[]")}
        printed, plan = json.loads(rust_plan(json.dumps(session))), json.loads(done["plan"])
        assert json.dumps(printed) == json.dumps(plan) and plan["fingerprint"] == done["fingerprint"]


def test_layouts_of_the_columns(batch: Any, planned: Any) -> None:
    texts = batch["session"]
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        columns = {name: batch[name].cast(kind) for name in ("session", "documents")}
        assert columns["session"].type == kind
        done = plan_batch(pa.record_batch({"id": batch["id"], **columns}), plans=False)
        assert done.equals(planned)
    bare = plan_batch(pa.record_batch({"session": texts}), plans=False)
    assert "id" not in bare.schema.names and bare.num_rows == ROWS
    names = [f"row {at}" for at in range(ROWS)]
    named = pa.record_batch({"id": names, "session": texts, "documents": batch["documents"]})
    assert plan_batch(named, plans=False)["id"].equals(named["id"])
    empty = plan_batch(batch.slice(0, 0), plans=False)
    assert empty.num_rows == 0 and empty.schema.equals(planned.schema)
    with pytest.raises(InputError, match="Its columns: id, text"):
        plan_batch(pa.record_batch({"id": batch["id"], "text": texts}))
    with pytest.raises(InputError, match="`session`"):
        plan_batch(pa.record_batch({"session": [{"messages": []}]}))
    with pytest.raises(InputError, match="`budget` is of type Float64; expected numbers of tokens"):
        plan_batch(pa.record_batch({"session": texts, "budget": [1.5] * ROWS}))
    with pytest.raises(InputError, match="not a Table; a table has `to_batches"):
        plan_batch(pa.table({"session": texts}))
    with pytest.raises(ConfigError, match="fil"):
        plan_batch(batch, model="gpt-4o", config="rag.fil = 1")


def example(name: str, source: Path, target: Path, *, program: str | None = None) -> Any:
    """Runs an example, or another program on it, as a user does. Returns its output."""
    # With fewer compiler stages, a short Java program starts faster.
    java = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    path = os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    start = [str(EXAMPLES / f"{name}.py")] if program is None else ["-c", program]
    command = [sys.executable, *start, str(source), str(target)]
    ran = subprocess.run(
        command, env={**os.environ, **java, "PYTHONPATH": path}, capture_output=True, text=True, timeout=170
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.splitlines()[-1] == f"{ROWS} rows, {DAMAGED} of them errors"
    return pq.read_table(target)


def check_same(done: Any, expected: Any) -> None:
    check_errors(done)
    assert by_id(done) == by_id(expected)


#: The example for Spark, with a first worker that is killed in the middle of its rows.
KILLS = """
import os, signal, sys
import spark

def replayed(batches):
    for number, batch in enumerate(spark_replayed(batches)):
        yield batch
        try:
            os.close(os.open({killed!r}, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)

spark_replayed, spark.replayed = spark.replayed, replayed
spark.main(*sys.argv[1:])
"""


def missing(*names: str) -> list[str]:
    return [name for name in names if importlib.util.find_spec(name) is None]


def test_the_arrow_example(path: Path, tmp_path: Path, replayed: Any) -> None:
    check_same(example("arrow", path, tmp_path / "replayed.parquet"), replayed)


@pytest.mark.engines
@pytest.mark.skipif(not has_java() or bool(missing("pyspark", "pandas")), reason="no Java, pyspark or pandas")
def test_spark_with_a_worker_that_is_killed(parts: Path, tmp_path: Path, replayed: Any) -> None:
    killed = tmp_path / "killed"
    check_same(example("spark", parts, tmp_path / "replayed", program=KILLS.format(killed=str(killed))), replayed)
    assert killed.exists()


@pytest.mark.engines
@pytest.mark.skipif(bool(missing("ray", "pandas")), reason="no ray or pandas")
def test_ray(parts: Path, tmp_path: Path, planned: Any) -> None:
    check_same(example("ray_data", parts, tmp_path / "planned"), planned)


@pytest.mark.engines
@pytest.mark.skipif(bool(missing("daft")), reason="no daft")
def test_daft(parts: Path, tmp_path: Path, replayed: Any) -> None:
    check_same(example("daft_batches", parts, tmp_path / "replayed"), replayed)
