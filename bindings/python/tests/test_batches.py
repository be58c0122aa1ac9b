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
from context_window import ConfigError, Conversation, Frame, InputError, Manager, plan_batch, replay_batch  # noqa: E402

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
    """Checks that every tenth row, which is damaged, has an error and no other value, and that of the other
    rows exactly those with an overflow have one.
    """
    over = 0
    for at, row in sorted(by_id(done).items()):
        damaged = at % 10 == 9
        assert (row["fingerprint"] is None) == damaged, row
        if damaged:
            assert row["error"] is not None and {*row.values()} == {at, None, row["error"]}
            continue
        assert (row["error"] is not None) == (row["overflow"] is not None), row
        assert row["error"] is None or (row["error"].startswith("overflow: ") and row["overflow"] > 0)
        over += row["overflow"] is not None
    assert 20 < over < 60 and errors_in(done) == DAMAGED + over


def errors_in(done: Any) -> int:
    return int(done.num_rows - done["error"].null_count)


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
        if given["id"] % 10 == 9:
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
        over = plan.overflow["tokens"] if plan.overflow is not None else None
        assert over == done["overflow"] and (over is None or over == plan.estimated_tokens_total - plan.prompt_budget)
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
    with pytest.raises(InputError, match="expected a record batch of Arrow or a data frame, not a list"):
        plan_batch([texts])  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="fil"):
        plan_batch(batch, model="gpt-4o", config="rag.fil = 1")


def test_tables_and_data_frames_come_back_as_frames(batch: Any, planned: Any) -> None:
    table = pa.Table.from_batches([batch.slice(0, 70), batch.slice(70, 30)])
    expected = planned.slice(0, 100)
    frame = plan_batch(table, plans=False)
    assert isinstance(frame, Frame) and len(frame) == frame.num_rows == 100
    assert frame.column_names == expected.schema.names
    assert frame.to_pyarrow().combine_chunks().to_batches()[0].equals(pa.record_batch(expected))
    pandas = pytest.importorskip("pandas")
    given = table.to_pandas()
    done = plan_batch(given, plans=False).to_pandas()
    assert isinstance(done, pandas.DataFrame) and list(done["id"]) == list(range(100))
    assert list(done["overflow"].dropna()) == expected["overflow"].drop_null().to_pylist()
    empty = plan_batch(table.slice(0, 0), plans=False)
    assert len(empty) == 0 and empty.column_names == frame.column_names


@pytest.mark.parametrize("threads", [-1, 0, 2**70, "two", 1.5])
@pytest.mark.parametrize("call", [plan_batch, replay_batch])
def test_a_bad_number_of_threads_is_an_input_error(call: Any, threads: Any, batch: Any) -> None:
    with pytest.raises(InputError, match="threads: expected a whole number, 1 or more"):
        call(batch.slice(0, 1), threads=threads)


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
    done = pq.read_table(target)
    assert ran.stdout.splitlines()[-1] == f"{ROWS} rows, {errors_in(done)} of them errors"
    return done


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
