"""Evaluations: the evidence for questions that policies keep in prompts, in one call, in batches, and as the
tool prints it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_window import ConfigError, CountError, Frame, InputError, Scores, evaluate, evaluate_batch
from support import ROOT, has_java, tool

EXAMPLES = ROOT / "bindings" / "python" / "examples"
BASELINES = ("newest", "langchain", "bm25", "best-score", "oracle")
BUDGETS = (200, 600, 2_000)
WORDS = "river stone paper lamp garden winter copper bridge window letter market engine violin harbour".split()
QUESTION = {"text": "Where?", "evidence": ["m0"]}
TALK = {"messages": [{"role": "user", "content": "Here."}]}
#: Options that keep fewer messages, and the same as TOML.
FEW = {"compaction": {"messages": 10, "retain": {"messages": 2}}}
FEW_TOML = "[compaction]\nmessages = 10\n[compaction.retain]\nmessages = 2\n"


def talk(seed: int, turns: int = 24) -> dict[str, Any]:
    """Returns a session with a fact in some of its turns, documents, and questions of each form."""
    chance = random.Random(seed)
    messages: list[dict[str, Any]] = [{"id": "s", "role": "system", "content": "You keep notes for the office."}]
    questions: list[dict[str, Any]] = []
    for turn in range(turns):
        text = " ".join(chance.choices(WORDS, k=chance.randrange(5, 40)))
        if chance.random() < 0.3:
            place, number = f"{chance.choice(WORDS)} {chance.choice(WORDS)}", chance.randrange(1_000, 10_000)
            text = f"The locker beside the {place} opens with {number}. {text}"
            question = {"text": f"Which number opens the locker beside the {place}?", "evidence": [f"u{turn}"]}
            questions.append({**question, "kind": "fact"})
        messages.append({"id": f"u{turn}", "role": "user", "content": text})
        answer = " ".join(chance.choices(WORDS, k=chance.randrange(3, 30)))
        messages.append({"id": f"a{turn}", "role": "assistant", "content": answer})
    documents = [
        {"id": f"d{at}", "text": " ".join(chance.choices(WORDS, k=30)) + f" {at}", "score": 1 - at / 10}
        for at in range(4)
    ]
    questions.append({"text": "Say what the notes and the papers have in common.", "evidence": ["u1", "d2"]})
    questions.append({"text": "Which letter came first?", "evidence": ["u0"], "after": "a2", "kind": "early"})
    questions.append({"text": "Who won the race?", "evidence": None, "kind": "unknown"})
    return {"id": f"talk-{seed}", "messages": messages, "rag": documents, "questions": questions}


SESSIONS = [talk(seed) for seed in range(12)]


@pytest.fixture(scope="module")
def scores() -> Scores:
    return evaluate(SESSIONS, budgets=BUDGETS, policies=["default", "default+recall", ("few", FEW)], every=4)


def by_question(scores: Scores, policy: str) -> dict[tuple[str, int, int], Any]:
    rows = [row for row in scores.questions if row["policy"] == policy]
    found = {(row["session"], row["prompt_budget"], row["question"]): row for row in rows}
    assert len(found) == len(rows) > 100
    return found


def test_rows_are_the_sums_of_the_questions(scores: Scores) -> None:
    policies = ["default", "default+recall", "few", *BASELINES]
    assert [(row["policy"], row["prompt_budget"]) for row in scores.rows] == [
        (policy, budget) for policy in policies for budget in BUDGETS
    ]
    for row in scores.rows:
        of_row = [
            one
            for one in scores.questions
            if (one["policy"], one["prompt_budget"]) == (row["policy"], row["prompt_budget"])
        ]
        known = [one for one in of_row if one["evidence_items"]]
        assert row["set"] == "sessions" and row["sessions"] == len(SESSIONS) and row["prompts"] == len(of_row)
        assert row["questions"] == len(known) == len(of_row) - len(SESSIONS)
        assert row["questions_whole"] == sum(not one["missing"] for one in known)
        assert row["evidence_items"] == sum(one["evidence_items"] for one in known)
        assert row["evidence_found"] == sum(one["evidence_found"] for one in known)
        assert all(one["evidence_items"] - one["evidence_found"] == len(one["missing"]) for one in of_row)
        assert row["estimated_tokens_total"] == sum(one["estimated_tokens_total"] for one in of_row)
        assert row["baseline"] == (row["policy"] in BASELINES) and row["input_cost_billionths"] is None
        assert (row["turns"] > 0) == (row["policy"] != "oracle")
    assert len(scores) == len(scores.rows) == len(policies) * len(BUDGETS)
    assert {row["kind"] for row in scores.questions} == {"fact", "early", "unknown", None}
    assert repr(scores) == 'Scores("sessions": 12 sessions, 24 rows)'


def test_larger_budgets_and_retrieved_turns_keep_more_evidence(scores: Scores) -> None:
    whole = {(row["policy"], row["prompt_budget"]): row["whole_percent"] or 0.0 for row in scores.rows}
    assert whole["oracle", 2_000] == 100.0
    assert whole["default", 200] < whole["default", 600] < whole["default", 2_000]
    assert whole["default+recall", 200] > whole["default", 200]
    # Digests quote these short turns, so recalled ones add little.
    assert whole["default+recall", 600] >= whole["default", 600]
    rows = {row["policy"]: {**row, "policy": ""} for row in scores.rows if row["prompt_budget"] == 600}
    assert rows["few"] != rows["default"]


def test_no_policy_finds_more_than_the_oracle_of_evidence_that_fits(scores: Scores) -> None:
    oracle, compared = by_question(scores, "oracle"), 0
    for policy in ("default", "default+recall", "few", *BASELINES):
        for place, row in by_question(scores, policy).items():
            assert row["missing"] or not oracle[place]["missing"] or row["overflow"], (policy, place)
            if not oracle[place]["missing"]:
                assert row["evidence_found"] <= oracle[place]["evidence_found"]
                # The oracle sends nothing but the evidence and the question.
                assert row["missing"] or row["estimated_tokens_total"] >= oracle[place]["estimated_tokens_total"]
                compared += not row["missing"]
    assert compared > 500


def test_equal_arguments_give_equal_bytes(scores: Scores) -> None:
    options: Any = {"budgets": BUDGETS, "policies": ["default", "default+recall", ("few", FEW)], "every": 4}
    lines = "".join(json.dumps(session) + "\n" for session in SESSIONS)
    forms: list[tuple[int, Any]] = [
        (1, iter(SESSIONS)),
        (2, io.StringIO(lines + "\n")),
        (5, map(json.dumps, SESSIONS)),
    ]
    for threads, given in forms:
        again = evaluate(given, threads=threads, **options)
        assert again.to_json() == scores.to_json() and again.to_csv() == scores.to_csv()
        assert again.results() == scores.results() and again.questions == scores.questions
    reordered = evaluate(SESSIONS[::-1], **options)
    assert reordered.rows == scores.rows and reordered.questions != scores.questions


def test_a_long_iterable_is_read_in_parts() -> None:
    def given() -> Iterator[str]:
        for at in range(700):
            if at in (0, 300, 699):
                yield ""
            yield json.dumps({**TALK, "questions": [QUESTION], "id": f"n{at}"})

    many = evaluate(given(), baselines=["newest"], every=0)
    assert [json.loads(one)["session"] for one in many.results()] == [f"n{at}" for at in range(700)]
    assert evaluate([]).rows == [] == evaluate([]).questions


def test_equal_to_the_tool(tmp_path: Path) -> None:
    path = tool()
    if path is None:
        pytest.skip("plan-inspect is not built")
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(session) + "\n" for session in SESSIONS))
    (tmp_path / "few.toml").write_text(FEW_TOML)
    flags = "talks.jsonl --budget 200 --budget 600 --policy default,agent+recall,few.toml"
    flags += " --baseline oracle,bm25 --every 3 --needles --seed 7 --model gpt-4o --tokenizer chars/4 --day 2026-01-01"

    def printed(form: str) -> str:
        command = [str(path), "eval", *flags.split(), "--format", form]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    same = evaluate(
        (tmp_path / "talks.jsonl").open(),
        name="talks",
        budgets=[200, 600],
        policies=["default", "agent+recall", tmp_path / "few.toml"],
        baselines=["oracle", "bm25"],
        every=3,
        needles=7,
        model="gpt-4o",
        tokenizer="chars/4",
        day="2026-01-01",
    )
    assert same.to_csv() == printed("csv")
    assert json.loads(same.to_json()) == json.loads(printed("json")) == {"scores": same.rows}
    assert any(row["needles"] for row in same.rows if "needles" in row)
    assert all((row["input_cost_billionths"] or 0) > 0 for row in same.rows)


def test_day_and_lifetime_of_the_cache_change_the_cost() -> None:
    def cost(model: str, **terms: Any) -> int:
        rows = evaluate([talk(0, 100)], model=model, tokenizer="chars/4", baselines=[], every=1, **terms).rows
        return rows[0]["input_cost_billionths"] or 0

    assert 0 < cost("claude-opus-4-1") < cost("claude-opus-4-1", hour_cache=True)
    # The price of this model rises on that day.
    assert 0 < cost("gemini-4-argon", day="2026-11-30") < cost("gemini-4-argon", day="2026-12-01")
    for day in ("1.12.2026", "", "2026-12-1"):
        with pytest.raises(InputError, match="expected year, month and day"):
            cost("gemini-4-argon", day=day)


def test_forms_of_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "few.toml"
    path.write_text(FEW_TOML)
    policies: list[Any] = [path, ("pair", FEW), FEW, ("toml", FEW_TOML), ("file", path), ("r+recall", path)]
    found = evaluate(SESSIONS, budgets=[600], policies=[*policies, f"{tmp_path}/few.toml+recall"], baselines=())
    figures = {row["policy"]: {**row, "policy": ""} for row in found.rows}
    assert [*figures] == ["few", "pair", "config", "toml", "file", "r+recall", "few+recall"]
    plain = [figures[name] for name in ("few", "pair", "config", "toml", "file")]
    assert all(one == plain[0] for one in plain) and figures["r+recall"] == figures["few+recall"] != plain[0]
    preset = evaluate(SESSIONS, policies=["agent", 'preset = "agent"'], baselines=None).rows  # type: ignore[arg-type]
    assert {**preset[0], "policy": ""} == {**preset[1], "policy": ""} and len(preset) == 7


def test_frames(scores: Scores) -> None:
    header, *lines = csv.reader(io.StringIO(scores.to_csv()))
    frame = scores.to_frame()
    assert isinstance(frame, Frame) and frame.column_names == header and len(frame) == len(lines) == len(scores)
    questions = scores.questions_to_frame()
    assert questions.column_names == [*scores.questions[0]] and len(questions) == len(scores.questions)
    pytest.importorskip("pyarrow")
    assert frame.to_pyarrow().to_pylist() == scores.rows
    assert questions.to_pyarrow().to_pylist() == scores.questions
    assert evaluate([]).to_frame().to_pyarrow().schema == frame.to_pyarrow().schema


def test_results_can_be_kept_and_added_up(scores: Scores) -> None:
    texts = scores.results()
    both = Scores.from_results(texts[:5] + texts[5:], name="sessions")
    assert both.to_json() == scores.to_json() and both.questions == scores.questions
    assert Scores.from_results(iter(texts), name="b").rows[0]["set"] == "b"
    again = pickle.loads(pickle.dumps(scores))
    assert isinstance(again, Scores) and again.to_json() == scores.to_json() and again.results() == texts
    with pytest.raises(InputError, match=r"results\[1\]: expected a JSON string of `results`, not NoneType"):
        Scores.from_results([texts[0], None])
    with pytest.raises(InputError, match=r"results\[0\]: missing field"):
        Scores.from_results(["{}"])
    with pytest.raises(InputError, match="results: expected a list, not str"):
        Scores.from_results(texts[0])
    damaged = json.loads(texts[0])
    damaged["cells"][0]["questions"][1].update(evidence=1, missing=["u1", "u2"])
    with pytest.raises(InputError, match=r"results\[1\]: question 1: 2 of 1 pieces of evidence missing"):
        Scores.from_results([texts[0], json.dumps(damaged)])


def test_needles() -> None:
    long = [talk(seed, 60) for seed in range(3)]

    def planted(needles: Any) -> list[Any]:
        rows = evaluate(long, needles=needles, baselines=["newest"], budgets=[800]).rows
        assert "needles" not in rows[1]
        return rows[0].get("needles", [])

    assert planted(None) == planted(False) == []
    first = planted(1)
    assert first == planted(True) and {one["compactions"] for one in first} == {1, 2, 5}
    assert {one["kind"] for one in first} == {"user_fact", "reply_fact", "tool_fact", "instruction"}
    assert all(one["planted"] == 3 and 0 <= one["survived"] <= 3 for one in first)


DAMAGED: list[tuple[Any, type[Exception], str]] = [
    ("{damaged", InputError, r"sessions\[1\]: .*not JSON"),
    (TALK, InputError, r"sessions\[1\]: session `1`: no questions; expected `questions`, `qa`, or `query`"),
    ({**TALK, "id": "t", "questions": [{**QUESTION, "evidence": ["m9"]}]}, InputError,
     r"sessions\[1\]: session `t`, questions\[0\].evidence\[0\]: no message or document has the id `m9`"),
    ({**TALK, "questions": [{"text": " "}]}, InputError, r"sessions\[1\]: session `1`, questions\[0\].text: is empty"),
    ({**TALK, "questions": [{**QUESTION, "text": 7}]}, InputError, r"sessions\[1\]: session `1`: invalid type"),
    ({**TALK, "questions": {1, 2}}, InputError, r"sessions\[1\]: session `1`: invalid type: integer"),
    ({**TALK, "questions": object}, InputError, r"sessions\[1\]: .*expected a value that JSON can represent"),
    ({**TALK, "questions": [{**QUESTION, "text": float("nan")}]}, InputError, r"sessions\[1\]: "),
    (7, InputError, r"sessions\[1\]: "),
    ("\ud800", InputError, r"sessions\[1\]: .*expected JSON"),
    (None, InputError, r"sessions\[1\]: "),
]  # fmt: skip


@pytest.mark.parametrize(("session", "error", "text"), DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_session_is_an_error_with_its_place(session: Any, error: type[Exception], text: str) -> None:
    for threads in (1, 3):
        with pytest.raises(error, match=text):
            evaluate([SESSIONS[0], session, SESSIONS[1], "{later"], threads=threads)


OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"budgets": 4096}, InputError, "budgets: expected a list, not int"),
    ({"budgets": [0]}, InputError, r"budgets\[0\]: expected a number of tokens, 1 or more, not 0"),
    ({"budgets": [9, "x"]}, InputError, r"budgets\[1\]: expected a number of tokens"),
    ({"budgets": [2**80]}, InputError, r"budgets\[0\]: expected a number of tokens"),
    ({"budgets": [9, 9]}, InputError, "budgets: 9 is given twice"),
    ({"budgets": []}, InputError, "budgets: the list is empty"),
    ({"policies": "default"}, InputError, "policies: expected a list, not str"),
    ({"policies": FEW}, InputError, "policies: expected a list, not dict"),
    ({"policies": ["agnet"]}, InputError, r"policies\[0\]: no preset or file `agnet`; expected default, "),
    ({"policies": ["default", {}, {}]}, InputError, "two are named `config`"),
    ({"policies": [("oracle", {})]}, InputError, "two are named `oracle`"),
    ({"policies": [("a", "b", "c")]}, InputError, r"policies\[0\]: expected a pair of a name and options"),
    ({"policies": [{}, ("a", {"rag": {"fil": 1}})]}, ConfigError, r"policies\[1\].*fil"),
    ({"policies": [{"rag": {"fil": 1}}]}, ConfigError, r"policies\[0\].*fil"),
    ({"policies": ["rag.fil = 1"]}, ConfigError, r"policies\[0\].*fil"),
    ({"policies": [Path("agent")]}, InputError, r"policies\[0\]: no preset or file `agent`"),
    ({"policies": [7]}, InputError, r"policies\[0\]: expected a name, options, or a pair of both, not int"),
    ({"policies": [], "baselines": []}, InputError, "expected at least one"),
    ({"baselines": ["newset"]}, InputError, r"baselines\[0\]: no baseline `newset`; expected one of newest"),
    ({"baselines": [7]}, InputError, r"baselines\[0\]: expected a name, not int"),
    ({"every": -1}, InputError, "every: expected a whole number, 0 or more, not -1"),
    ({"needles": "seed"}, InputError, "needles: expected a seed"),
    ({"threads": 0}, InputError, "threads: expected a whole number, 1 or more"),
    ({"model": 4}, InputError, "model: expected a string, not int"),
    ({"tokenizer": "none/of/these.json"}, CountError, "none/of/these.json"),
    ({"models": "none.toml"}, InputError, "none.toml: cannot be read"),
    ({"budget": [9]}, TypeError, "`budget` is not an argument of an evaluation; expected one of budgets"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "error", "text"), OPTIONS, ids=range(len(OPTIONS)))
def test_bad_options_are_errors(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        evaluate(SESSIONS, **options)


def test_other_values_in_place_of_sessions() -> None:
    for given in (json.dumps(SESSIONS[0]), SESSIONS[0], 7):
        with pytest.raises(InputError, match="sessions: expected a list of sessions, not "):
            evaluate(given)  # type: ignore[arg-type]

    def broken() -> Iterator[str]:
        yield json.dumps(SESSIONS[0])
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        evaluate(broken())


def test_questions_in_other_forms() -> None:
    retrieval = {
        "id": "r",
        "query": "Where is the spare key?",
        "passages": [
            {"id": 1, "text": "The spare key is under the flower pot.", "score": 0.2, "gold": True},
            {"id": 2, "text": "The car is in the garage.", "score": 0.9},
        ],
    }
    asked = {**TALK, "qa": [{"question": "Where?", "evidence": ["m0"]}]}
    rows = evaluate([retrieval, asked], baselines=["oracle"]).questions
    found = [(row["session"], row["policy"], row["evidence_items"], row["missing"]) for row in rows]
    assert found == [("r", "default", 1, []), ("r", "oracle", 1, []), ("1", "default", 1, []), ("1", "oracle", 1, [])]


def test_other_threads_run_in_the_meantime() -> None:
    done, counted = threading.Event(), 0

    def counts() -> None:
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    counter = threading.Thread(target=counts)
    counter.start()
    evaluate([talk(seed, 100) for seed in range(3)], every=2)
    done.set()
    counter.join()
    assert counted > 20


def rows_of(sessions: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Returns the columns of a batch, in which every fourth row is damaged."""
    texts: list[str | None] = [json.dumps(session) for session in sessions]
    texts[3::8] = ["{damaged"] * len(texts[3::8])
    texts[7::8] = [None] * len(texts[7::8])
    return {"id": list(range(len(texts))), "session": texts}


OPTIONS_OF_BATCHES: Any = {"budgets": [200, 2_000], "policies": ["default+recall"], "every": 5}


@pytest.fixture(scope="module")
def batch() -> Any:
    return pytest.importorskip("pyarrow").record_batch(rows_of(SESSIONS))


@pytest.fixture(scope="module")
def expected(batch: Any) -> dict[int, tuple[str | None, str | None]]:
    """Returns the result and the error of each row, checked against `evaluate`."""
    done = evaluate_batch(batch, **OPTIONS_OF_BATCHES)
    assert done.schema.names == ["id", "result", "error"]
    whole = [session for at, session in enumerate(SESSIONS) if at % 4 != 3]
    scores = evaluate(whole, **OPTIONS_OF_BATCHES)
    assert done["result"].drop_null().to_pylist() == scores.results()
    assert Scores.from_results(done["result"].drop_null()).to_json() == scores.to_json()
    assert "not JSON" in done["error"][3].as_py()
    assert done["error"][7].as_py() == "session is null; expected JSON"
    found = {row["id"]: (row["result"], row["error"]) for row in done.to_pylist()}
    assert all((result is None) == (error is not None) == (at % 4 == 3) for at, (result, error) in found.items())
    return found


def by_id(done: Any) -> dict[int, tuple[str | None, str | None]]:
    return {row["id"]: (row["result"], row["error"]) for row in done.to_pylist()}


def test_batches(batch: Any, expected: Any) -> None:
    import pyarrow as pa

    for threads in (1, 2, 64):
        assert by_id(evaluate_batch(batch, threads=threads, **OPTIONS_OF_BATCHES)) == expected
    parts = [evaluate_batch(batch.slice(at, 5), **OPTIONS_OF_BATCHES) for at in range(0, batch.num_rows, 5)]
    assert by_id(pa.Table.from_batches(parts)) == expected
    frame = evaluate_batch(pa.Table.from_batches([batch.slice(0, 5), batch.slice(5)]), **OPTIONS_OF_BATCHES)
    assert isinstance(frame, Frame) and by_id(frame.to_pyarrow()) == expected
    bare = evaluate_batch(pa.record_batch({"session": batch["session"].cast(pa.large_string())}), **OPTIONS_OF_BATCHES)
    assert bare.schema.names == ["result", "error"] and bare["result"].to_pylist() == [
        one for one, _ in expected.values()
    ]
    assert evaluate_batch(batch.slice(0, 0)).schema == bare.schema.insert(0, batch.schema.field("id"))
    with pytest.raises(InputError, match="no column `session`"):
        evaluate_batch(pa.record_batch({"id": [1]}))
    with pytest.raises(InputError, match="expected a record batch of Arrow or a data frame, not a list"):
        evaluate_batch([batch])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="`name` is not an argument"):
        evaluate_batch(batch, name="x")  # type: ignore[call-overload]


def engine(program: str, batch: Any, tmp_path: Path) -> Any:
    """Runs a program with an engine over the rows. Returns the table that it writes."""
    pq: Any = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    (tmp_path / "rows").mkdir()
    for at in range(0, batch.num_rows, 6):
        pq.write_table(pa.Table.from_batches([batch.slice(at, 6)]), tmp_path / "rows" / f"{at}.parquet")
    path = os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    settings = {"PYTHONPATH": path, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    command = [sys.executable, "-c", program, str(tmp_path / "rows"), str(tmp_path / "done")]
    ran = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=170)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return pq.read_table(tmp_path / "done")


SPARK = f"""
import sys, context_window, spark

def evaluated(batches):
    for batch in batches:
        yield context_window.evaluate_batch(batch, **{OPTIONS_OF_BATCHES})

session = spark.session("local[2]")
rows = session.read.parquet(sys.argv[1])
rows.mapInArrow(evaluated, "id long, result string, error string").write.parquet(sys.argv[2])
session.stop()
"""

RAY = f"""
import sys, ray_data, ray, pyarrow as pa

def evaluated(table):
    import context_window
    return context_window.evaluate_batch(table, **{OPTIONS_OF_BATCHES}).to_pyarrow()

ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, num_cpus=2, configure_logging=False)
ray.data.read_parquet(sys.argv[1]).map_batches(evaluated, batch_format="pyarrow").write_parquet(sys.argv[2])
ray.shutdown()
"""

DAFT = f"""
import os, sys
os.environ["DAFT_ANALYTICS_ENABLED"] = "0"
import context_window, daft, pyarrow as pa
from daft import DataType, Series, col

RESULT = DataType.struct({{"result": DataType.string(), "error": DataType.string()}})

@daft.func.batch(return_dtype=RESULT, unnest=True)
def evaluated(session: Series) -> pa.Array:
    batch = pa.record_batch({{"session": session.to_arrow()}})
    return context_window.evaluate_batch(batch, **{OPTIONS_OF_BATCHES}).to_struct_array()

daft.read_parquet(sys.argv[1]).select(col("id"), evaluated(col("session"))).write_parquet(sys.argv[2])
"""


@pytest.mark.engines
@pytest.mark.skipif(not has_java(), reason="no Java")
def test_spark(batch: Any, expected: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert by_id(engine(SPARK, batch, tmp_path)) == expected


@pytest.mark.engines
def test_ray(batch: Any, expected: Any, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    assert by_id(engine(RAY, batch, tmp_path)) == expected


@pytest.mark.engines
def test_daft(batch: Any, expected: Any, tmp_path: Path) -> None:
    pytest.importorskip("daft")
    assert by_id(engine(DAFT, batch, tmp_path)) == expected
