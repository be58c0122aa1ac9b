"""The module itself: conversations, plans, errors, pickles, stores and journals. Results must equal those
of Rust.
"""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import context_window as cw
import pytest
from context_window import Conversation, Document, Manager
from support import rust_plan, same_as_rust, tool, valid_openai

QUESTION = {"role": "user", "content": "How long do refunds take?"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks something up.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
]


def agent_turns(turns: int, size: int = 40) -> list[dict[str, Any]]:
    """Returns a conversation in which every answer needs a tool."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are brief."}]
    for at in range(turns):
        messages += [
            {"role": "user", "content": f"Question {at}?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": f"c{at}", "content": f"found {at} " * size},
            {"role": "assistant", "content": f"Answer {at}."},
        ]
    return [*messages, {"role": "user", "content": "And now?"}]


def sessions(name: str, most: int) -> list[str]:
    folder = os.environ.get("CONTEXT_WINDOW_DATA")
    if not folder:
        pytest.skip("CONTEXT_WINDOW_DATA is not set: no real data")
    with gzip.open(Path(folder) / name, "rt", encoding="utf-8") as file:
        return [line for line, _ in zip(file, range(most))]


def test_a_plan_says_what_is_in_and_what_is_out() -> None:
    manager, log = Manager("gpt-4o"), Conversation([{"role": "system", "content": "Answer from the documents."}])
    assert log.push(QUESTION) == ["m1"]
    documents = [("refunds", 0.92, "Refunds take 5 days."), Document("hours", 0.1, "We are open from 9 to 18. " * 9)]
    plan = manager.plan(log, documents=documents, prompt_budget=90)
    assert [item.id for item in plan.included] == ["m0", "refunds", "m1"]
    assert [(item.id, item.reason) for item in plan.excluded] == [("hours", "budget")]
    assert (
        sum(item.token_estimate for item in plan.included) + sum(line["tokens"] for line in plan.overhead)
        == plan.estimated_tokens_total
        == 49
    )
    assert plan.messages()[-1] == QUESTION
    assert plan.body("anthropic")["system"][0]["text"] == "Answer from the documents."
    assert "hours" in str(plan) and "hours" in plan.html() and plan._repr_html_().startswith("<iframe")
    explained = plan.explain("hours")
    assert not explained.included and explained.enters_at is not None
    larger = manager.plan(log, documents=documents, prompt_budget=explained.enters_at)
    assert not larger.excluded and "enters at" in str(explained)
    assert [(change.id, change.cause) for change in plan.diff(larger)] == [("hours", "budget")]
    with pytest.raises(AttributeError):
        plan.estimated_tokens_total = 3  # type: ignore[misc]


def test_plans_are_those_of_rust() -> None:
    if tool() is None:
        pytest.skip("plan-inspect is not built")
    manager, log = Manager("gpt-4o", config={"rag": {"max_items": 1}}), Conversation(agent_turns(30))
    log.pin("tone", "Short answers.", ttl=3)
    same_as_rust(manager, log, manager.plan(log, prompt_budget=600, tools=TOOLS), prompt_budget=600, tools=TOOLS)
    for line in sessions("conv_tau2.jsonl.gz", 6):
        session = json.loads(line)
        log, request = Conversation(session["messages"]), {"prompt_budget": 3_000}
        plan = Manager("gpt-4o").plan(log, **request)
        same_as_rust(Manager("gpt-4o"), log, plan, **request)
        assert json.loads(rust_plan(json.dumps({**session, "model": "gpt-4o", "limits": {"prompt_budget": 3_000}})))[
            "included"
        ]


def test_a_long_conversation_costs_what_its_budget_costs() -> None:
    manager, log = Manager("gpt-4o"), Conversation(agent_turns(250))
    costs = []
    for at in range(40):
        before = cw.bytes_handed_over()
        plan = manager.plan(log, prompt_budget=2_000, tools=TOOLS)
        valid_openai(plan.messages())
        log.push_reply(plan, f"Answer {at}.", {"prompt_tokens": plan.estimated_tokens_total, "completion_tokens": 4})
        log.complete_turn(plan)
        log.push({"role": "user", "content": f"More {at}?"})
        costs.append(cw.bytes_handed_over() - before)
    assert max(costs) < 500, "only what is new is handed over"


def test_explanations_are_of_the_plan_however_far_the_conversation_went() -> None:
    manager, log = Manager("gpt-4o"), Conversation(agent_turns(20))
    first = manager.plan(log, prompt_budget=500, documents=[("d", 0.5, "word " * 50)])
    log.push_reply(first, "One.", {"prompt_tokens": 480, "completion_tokens": 2})
    log.push({"role": "user", "content": "And then?"})
    plan = manager.plan(log, prompt_budget=500)
    before = [str(one) for one in plan.explain_all()]
    log.push_reply(plan, "Two.", {"prompt_tokens": 450, "completion_tokens": 2})
    log.push({"role": "user", "content": "More?"})
    later = manager.plan(log, prompt_budget=500)
    log.push_reply(later, "Three.")
    assert [str(one) for one in plan.explain_all()] == before
    assert pickle.loads(pickle.dumps(plan)).json() == plan.json()
    assert {change.cause for change in plan.diff(later)} >= {"new_item"}


def test_all_of_it_pickles() -> None:
    manager = Manager("gpt-4o", config={"rag": {"max_items": 2}}, preset="agent", tokenizer="chars/4")
    log = Conversation(agent_turns(5))
    plan = manager.plan(log, prompt_budget=400)
    log.push_reply(plan, {"role": "assistant", "content": "Fine."}, {"prompt_tokens": 300, "completion_tokens": 3})
    log.push(QUESTION)
    again: Conversation = pickle.loads(pickle.dumps(log))
    assert again == log and again is not log and copy.deepcopy(log) == log
    copied: Manager = pickle.loads(pickle.dumps(manager))
    assert copied.plan(again, prompt_budget=400) == manager.plan(log, prompt_budget=400)
    assert pickle.loads(pickle.dumps(Document("a", 1.0, "b", "c", 2))) == Document("a", 1.0, "b", "c", 2)
    named = manager.plan(
        log, account="a", end_user="b", excluded_messages=True, focus="c", state={"clock": "noon"}, prompt_budget=400
    )
    assert pickle.loads(pickle.dumps(named)) == named != plan
    assert '"structured_output":true' in manager.session_json(log, structured_output=True)
    empty = manager.plan(Conversation(), prompt_budget=400)
    assert pickle.loads(pickle.dumps(empty)) == empty
    excluding = manager.plan(log, prompt_budget=80)
    later = manager.plan(log, prompt_budget=400)
    rows = (excluding.included, excluding.excluded, excluding.by_item(), excluding.explain_all())
    assert all(rows) and pickle.loads(pickle.dumps(rows)) == rows
    assert [str(one) for one in pickle.loads(pickle.dumps(rows[3]))] == [str(one) for one in rows[3]]
    assert pickle.loads(pickle.dumps(rows[2]))[0].messages() == rows[2][0].messages()
    changes = excluding.diff(later)
    assert changes and pickle.loads(pickle.dumps(changes)) == changes
    stored = log.push_reply(later, "Fine.")
    assert pickle.loads(pickle.dumps(stored)).id == stored.id
    error = pickle.loads(pickle.dumps(cw.InputError("text")))
    assert isinstance(error, cw.ContextWindowError) and str(error) == "text"


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda m, c: c.push("hello"), cw.InputError, "expected a dict"),
        (lambda m, c: c.push({"role": "bob"}), cw.InputError, "messages[0].role: unknown variant `bob`"),
        (
            lambda m, c: c.push({"role": "user", "content": "x", "score": float("nan")}),
            cw.InputError,
            "not JSON compliant",
        ),
        (lambda m, c: m.plan(c, focus=["x"]), cw.InputError, "focus: expected a string, not list"),
        (lambda m, c: m.plan(c, state={"a": 1}), cw.InputError, "state: expected a dict of strings"),
        (lambda m, c: c.push([QUESTION, {"role": "user", "content": object()}]), cw.InputError, "type object"),
        (lambda m, c: c.push({"role": "user", "content": 3, "id": "x"}, "morse"), cw.InputError, "wire format `morse`"),
        (lambda m, c: m.plan(c, prompt_budget=0), cw.BudgetError, "the budget is 0"),
        (lambda m, c: m.plan(c, prompt_budget="many"), cw.InputError, "prompt_budget: expected a number of tokens"),
        (lambda m, c: m.plan(c, size=3), TypeError, "`size` is not an argument of a request"),
        (lambda m, c: m.plan(c, documents=[("a", float("nan"), "b")]), cw.InputError, "is NaN"),
        (lambda m, c: m.plan(c, documents=[{"id": "a", "text": "b"}]), cw.InputError, "documents[0]: has no `score`"),
        (lambda m, c: m.plan(c, documents=[("a", 1, "b"), "c"]), cw.InputError, "documents[1]: expected a Document"),
        (lambda m, c: m.plan(c, documents=[("a", "b")]), cw.InputError, "; found a tuple (str, str)"),
        (lambda m, c: m.plan(c, tools=[{"type": "function"}]), cw.InputError, "tools:1"),
        (lambda m, c: m.plan(c, previous="{"), cw.InputError, "previous:"),
        (lambda m, c: m.plan(c).explain("nobody"), cw.NotFoundError, "`nobody`"),
        (lambda m, c: c.rewind_before("nobody"), cw.NotFoundError, "nobody"),
        (lambda m, c: c.pin("a", "b", priority="huge"), cw.InputError, "priority `huge`"),
        (lambda m, c: Manager("gpt-4o", config={"rag": {"fil": "x"}}), cw.ConfigError, "did you mean `fill`"),
        (lambda m, c: Manager("gpt-4o", config=Path("nowhere.toml")), cw.InputError, "nowhere.toml: cannot be read"),
        (lambda m, c: Manager("gpt-4o", tokenizer="morse"), cw.CountError, "morse"),
        (lambda m, c: c.push_reply(m.plan(c), [QUESTION, QUESTION]), cw.InputError, "expected one message, found 2"),
        (lambda m, c: c.push_reply(m.plan(c), 5), cw.InputError, "reply: messages: invalid type"),
        (lambda m, c: c.push_reply(m.plan(c), "x", {"tokens": 3}), cw.InputError, "expected a provider's answer"),
        (lambda m, c: Conversation.from_events(['{"version": 9}']), cw.InputError, "events[0]"),
        (lambda m, c: c.pin("a", "b", ttl=-1), cw.InputError, "-1: expected a whole number"),
        (lambda m, c: c.set_ttl("m0", 2**40), cw.InputError, "expected a whole number"),
        (lambda m, c: c.events(-1), cw.InputError, "-1: expected a whole number"),
        (lambda m, c: m.plan(c).text(width=-5), cw.InputError, "-5: expected a whole number"),
        (lambda m, c: Document("a", 1.0, "b", ttl=-1), cw.InputError, "-1: expected a whole number"),
    ],
)
def test_bad_input_is_a_clear_error_and_changes_nothing(call: Any, kind: type[Exception], text: str) -> None:
    manager, log = Manager("gpt-4o"), Conversation([QUESTION])
    before = log.events()
    with pytest.raises(kind) as raised:
        call(manager, log)
    assert text in str(raised.value)
    assert log.events() == before


def test_deep_and_broken_text_is_read_or_refused() -> None:
    log = Conversation()
    log.push({"role": "user", "content": "half \ud83d of a pair"})
    assert "half \ufffd" in log.messages()[0]["content"]
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(cw.InputError):
        log.push({"role": "user", "content": deep})
    assert len(log) == 1


def test_threads_and_tasks_share_a_conversation() -> None:
    manager, log = Manager("gpt-4o"), Conversation(agent_turns(50))
    seen: list[str] = []

    def work(number: int) -> None:
        for at in range(20):
            seen.append(manager.plan(log, prompt_budget=700).fingerprint)
            log.push({"role": "user", "content": f"{number} says {at}"})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(seen) == 80 and len(log) == len(agent_turns(50)) + 80

    async def plan_all() -> list[str]:
        plans = await asyncio.gather(*(manager.plan_async(log, prompt_budget=700) for _ in range(8)))
        return [plan.fingerprint for plan in plans]

    assert set(asyncio.run(plan_all())) == {manager.plan(log, prompt_budget=700).fingerprint}


def test_an_overflow_says_by_how_much() -> None:
    log = Conversation([{"role": "system", "content": "rule " * 300}, QUESTION])
    plan = Manager("gpt-4o").plan(log, prompt_budget=60)
    assert plan.overflow is not None
    assert plan.overflow["tokens"] == plan.estimated_tokens_total - 60 and plan.overflow["conflict"] == ["m0"]
    assert Manager("gpt-4o").plan(log).overflow is None


def test_of_two_documents_with_one_id_the_later_is_excluded() -> None:
    plan = Manager("gpt-4o").plan(Conversation([QUESTION]), documents=[("a", 0.9, "one"), ("a", 0.8, "two")])
    assert [item.id for item in plan.included] == ["a", "m0"]
    assert [(item.id, item.why) for item in plan.excluded] == [("a", "duplicate of a")]


def test_a_plan_is_a_table() -> None:
    log = Conversation(agent_turns(30))
    log.pin("tone", "Short answers.", ttl=3)
    plan = Manager("gpt-4o").plan(log, prompt_budget=500)
    frame = plan.to_frame()
    assert len(frame) == len(plan.included) + len(plan.excluded) and "Frame(" in repr(frame)
    pyarrow = pytest.importorskip("pyarrow")
    table = frame.to_pyarrow()
    assert table.equals(pyarrow.table(frame)) and table.column_names == frame.column_names
    assert table.schema.equals(pyarrow.schema(frame))
    rows = table.to_pylist()
    for row, item in zip(rows, [*plan.included, *plan.excluded]):
        assert row["included"] == (item in plan.included)
        for name in set(frame.column_names) - {"included"}:
            if hasattr(item, name):
                assert row[name] == getattr(item, name), name
    assert sum(row["ttl"] == 3 for row in rows) == 1
    assert pickle.loads(pickle.dumps(frame)).to_pyarrow().equals(table)


def test_frames_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Manager("gpt-4o").plan(Conversation(agent_turns(3)))
    frame = plan.to_frame()
    pandas = pytest.importorskip("pandas")
    made = frame.to_pandas()
    assert isinstance(made, pandas.DataFrame) and list(made["id"]) == [item.id for item in plan.included]
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"to_{name} needs {name}, which is not installed: pip install {name}"):
            getattr(frame, f"to_{name}")()


def test_a_notebook_shows_the_page() -> None:
    plan = Manager("gpt-4o").plan(Conversation([{"role": "user", "content": 'Is "<b>" & more free?'}]))
    shown = plan._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.count('"') == 6 and "&lt;b&gt;" in shown.replace("&amp;", "&")


def test_other_threads_run_while_a_plan_is_made() -> None:
    manager, log = Manager("gpt-4o"), Conversation(agent_turns(4_000, 60))
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    manager.plan(log, prompt_budget=900_000, model_context_len=1_000_000)
    done.set()
    thread.join()
    # If counting held the interpreter lock, the other thread would hardly run.
    assert ticks > 1_000


def test_an_unknown_limit_switches_levels_and_compaction_off() -> None:
    manager = Manager("some-model-that-nobody-knows")
    log = Conversation(agent_turns(40))
    plan = manager.plan(log, unknown_limit=True)
    assert "unknown_limit" in [notice["code"] for notice in plan.notices]
    usage = manager.usage(log, unknown_limit=True)
    assert (usage["limit"], usage["level"]) == (0, "normal")
    assert manager.compaction_due(log, unknown_limit=True) is None


def test_compaction_archives_and_deletes_nothing() -> None:
    manager = Manager("gpt-4o", config={"compaction": {"percent": 60, "target": 30}})
    log = Conversation(agent_turns(40))
    total = len(log)
    job = manager.compaction_due(log, model_context_len=4_000, max_completion_tokens=500, safety_buffer=0)
    assert job is not None and job.archived_ids and job.messages() and "<conversation>" in job.messages()[0]["content"]
    with pytest.raises(cw.NoSummaryError):
        manager.apply_summary(log, job, "  ")
    record = manager.apply_summary(log, job, "They asked many questions.")
    assert record["number"] == 1 and len(log) == total
    plan = manager.plan(log, model_context_len=4_000, max_completion_tokens=500, safety_buffer=0)
    assert any(item.kind == "summary" for item in plan.included)
    with pytest.raises(cw.StaleError):
        manager.apply_summary(log, job, "Again.")
    assert log.undo_compaction() == 1
    assert manager.compact_if_due(Conversation([QUESTION])) is None
    assert manager.compaction_due(Conversation(agent_turns(40)), first="m1", last="m8") is not None


def test_stores_and_journals_keep_conversations(tmp_path: Path) -> None:
    store = cw.Store(f"sqlite:{tmp_path / 'sessions.db'}")
    log = Conversation(agent_turns(3))
    revision = store.save("talk", log, 0)
    other, seen = store.load("talk")
    assert (other, seen) == (log, revision)
    other.push(QUESTION)
    newer = store.save("talk", other, seen)
    log.push({"role": "user", "content": "Me too"})
    with pytest.raises(cw.ConflictError) as raised:
        store.save("talk", log, revision)
    assert (raised.value.session, raised.value.expected, raised.value.found) == ("talk", revision, newer)
    store.fork("talk", revision, "fork")
    assert {one["id"] for one in store.list()} == {"talk", "fork"} and store.load("fork")[0] != other
    store.delete("fork")
    assert store.summary("fork") is None and store.load_or_new("fork")[1] == 0
    assert pickle.loads(pickle.dumps(store)).load("talk")[0] == other
    journal, empty = cw.Journal.open(tmp_path / "talk.log")
    assert len(empty) == 0
    journal.save(other)
    del journal
    assert cw.Journal.open(tmp_path / "talk.log")[1] == other


def test_items_of_a_session_are_read_from_its_end(tmp_path: Path) -> None:
    store = cw.Store(tmp_path / "sessions.db")
    assert store.newest_items("talk") == [] and store.pop_item("talk") is None
    store.push_items("talk", [f'{{"n": {n}}}' for n in range(40)])
    store.push_items("talk", ['"\\ud800"', "{}"], kind="other")
    assert store.newest_items("talk", limit=2) == ['{"n": 38}', '{"n": 39}'] and len(store.newest_items("talk")) == 40
    assert [store.pop_item("talk") for _ in range(3)] == [f'{{"n": {n}}}' for n in (39, 38, 37)]
    assert store.newest_items("talk", kind="other") == [], "what is behind a removed item is removed, too"
    store.push_items("talk", ["40", "41"])
    assert store.newest_items("talk", limit=4) == ['{"n": 35}', '{"n": 36}', "40", "41"]
    log, revision = store.load("talk")
    # Another writer, who rewinds by positions and starts afresh.
    log.rewind_before("entry-30")
    revision = store.save("talk", log, revision)
    assert store.newest_items("talk", limit=1) == ['{"n": 29}']
    log.start_fresh()
    revision = store.save("talk", log, revision)
    assert store.newest_items("talk") == [] and store.pop_item("talk") is None
    log.undo_compaction()
    store.save("talk", log, revision)
    assert store.newest_items("talk", limit=0) == []
    with pytest.raises(cw.InputError, match="expected a whole number"):
        store.newest_items("talk", limit=-1)
    before = store.load("talk")
    with pytest.raises(cw.InputError, match=r"items\[1\]: expected ident"):
        store.push_items("talk", ["1", "no JSON"])
    assert store.load("talk") == before
    with pytest.raises(cw.InputError, match="is empty"):
        store.push_items("", ["x"])


def test_a_refused_plan_is_planned_smaller() -> None:
    manager, log = Manager("gpt-4o"), Conversation(agent_turns(40))
    plan = manager.plan(log, prompt_budget=2_000)
    assert cw.is_context_overflow(
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000"
    )
    smaller = manager.plan_after_overflow(log, plan, prompt_budget=2_000)
    assert smaller.estimated_tokens_total < plan.estimated_tokens_total * 3 / 4 + 1
    left = smaller.excluded[0]
    explained = smaller.explain(left.last_id or left.id)
    assert not explained.included and explained.reason and pickle.loads(pickle.dumps(smaller)) == smaller


def test_a_plan_is_compared_while_others_write() -> None:
    manager, log = Manager("gpt-4o"), Conversation(agent_turns(5))
    plans = [manager.plan(log, prompt_budget=budget) for budget in (300, 400)]
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            log.set_ttl("m1", 5)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    compared: list[int] = []
    reader = threading.Thread(
        target=lambda: compared.extend(len(plans[0].diff(plans[1])) for _ in range(200)), daemon=True
    )
    reader.start()
    reader.join(60)
    done.set()
    assert not reader.is_alive() and len(compared) == 200


def test_files_of_other_tools_are_read() -> None:
    talk = (
        '[{"role": "user", "content": [{"text": "Is the Heron free?"}]}, {"role": "user", "content": [{"knots": 5}]}]'
    )
    with pytest.raises(cw.InputError, match=r"\[1\].content\[0\]"):
        Conversation.from_session(talk, read_as="bedrock")
    with pytest.warns(UserWarning, match="left out"):
        log = Conversation.from_session(talk, read_as="bedrock", lenient=True)
    assert log.messages()[0]["content"] == "Is the Heron free?"
    with pytest.raises(cw.InputError, match="did you mean `bedrock`"):
        Conversation.from_session(talk, read_as="bedrok")


def test_responses_sessions_and_ids() -> None:
    manager, log = Manager("gpt-4o"), Conversation([{"id": "first", **QUESTION}])
    plan = manager.plan(log)
    answered = {"choices": [{"message": {"role": "assistant", "content": "5 days."}}], "usage": {"prompt_tokens": 9}}
    log.push_reply(plan, answered)
    assert log.messages()[1]["content"] == "5 days." and log.ids() == ["first", "m1"]
    assert Conversation.from_session(manager.session_json(log)) == log
    with pytest.raises(cw.InputError, match="expected the role assistant"):
        log.push_reply(plan, QUESTION)
    log.push_reply(plan, "half \ud83d")
    spoken = Conversation([{"role": "system", "content": "S"}, QUESTION]).body("anthropic")
    assert spoken["system"][0]["text"] == "S"
    assert not Manager("my-model").known and manager.known
    assert cw.is_context_overflow(ValueError("This model's maximum context length is 5 tokens, you requested 9 tokens"))


def test_options_come_as_a_dict_a_text_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "options.toml"
    path.write_text("[rag]\nmax_items = 1\n")
    documents = [("a", 0.9, "x"), ("b", 0.8, "y")]
    for config in ({"rag": {"max_items": 1}}, path.read_text(), path, str(path)):
        plan = Manager("gpt-4o", config=config).plan(Conversation([QUESTION]), documents=documents)
        assert [item.id for item in plan.excluded] == ["b"]
    with pytest.raises(cw.InputError, match="nowhere.toml: cannot be read"):
        Manager("gpt-4o", config="nowhere.toml")


def test_counts() -> None:
    manager = Manager("gpt-4o")
    assert cw.count("hello world") == manager.count("hello world") == 2
    assert cw.count("hello", "chars/4") == 2
    messages = agent_turns(3)
    assert (
        manager.count_messages(messages, tools=TOOLS)
        == manager.plan(Conversation(messages), tools=TOOLS).estimated_tokens_total
    )
    assert manager.retrieval_budget(Conversation([QUESTION]), prompt_budget=1_000)["most"] > 0
    assert any(model["name"] == "gpt-4o" for model in cw.models())


def test_import_is_light() -> None:
    script = (
        "import sys, time; t = time.perf_counter(); import context_window; ms = (time.perf_counter() - t) * 1e3;"
        "print(ms, sorted(name for name in sys.modules if name.split('.')[0] in {'pyarrow', 'asyncio', 'langchain_core', 'numpy'}))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(5)
    ]
    assert all(run.split(" ", 1)[1].strip() == "[]" for run in runs)
    print("import:", [run.split(" ", 1)[0] for run in runs], "ms")


def test_the_types_list_what_is_there() -> None:
    import ast

    text = (Path(cw.__file__).parent / "_core.pyi").read_text()
    stub = ast.parse(text)
    assert "Any" not in {node.id for node in ast.walk(stub) if isinstance(node, ast.Name)}
    listed = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    there = {name for name in vars(cw._core) if not name.startswith("_")}  # type: ignore[attr-defined]
    in_python = {"ContextWindowWarning", "PromptTooLargeError"}
    assert there <= listed and there == {name for name in cw.__all__ if not name.startswith("_")} - in_python
    for node in stub.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in there:
            real = getattr(cw, node.name)
            assert real.__doc__, f"{node.name} says nothing of itself"
            if isinstance(node, ast.ClassDef) and not issubclass(real, Exception):
                told = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                public = {name: value for name, value in vars(real).items() if not name.startswith("_")}
                assert set(public) == {name for name in told if not name.startswith("_")}, node.name
                for name, value in public.items():
                    assert value.__doc__, f"{node.name}.{name} says nothing of itself"


def test_docstrings_name_what_exists() -> None:
    named = re.findall(r"`(\w+)\(\)`", "\n".join(filter(None, (one.__doc__ for one in documented()))))
    assert "presets" in named and "models" in named
    every = {name for one in documented() if isinstance(one, type) for name in vars(one)} | set(cw.__all__)
    assert set(named) <= every | {"str"}
    assert set(cw.presets()) >= {"agent", "chat", "rag"} and Manager("gpt-4o", preset=cw.presets()[0])
    for name in ("InputError", "BudgetError", "TypeError", "overflow"):
        assert name in (Manager.plan.__doc__ or "")


def documented() -> list[Any]:
    """Returns the module's classes and functions, and the members of the classes."""
    classes = [getattr(cw, name) for name in cw.__all__]
    return [*classes, *(value for one in classes if isinstance(one, type) for value in vars(one).values())]


def test_ranked_lists_are_fused_and_rows_have_their_ranks() -> None:
    manager = cw.Manager("gpt-4o")
    log = cw.Conversation([{"role": "user", "content": "How long do refunds take?"}])
    words = [("refunds", 31.0, "Refunds take 5 days."), ("hours", 30.0, "We open at 9.")]
    meaning = [
        cw.Document("hours", 0.9, "We open at 9.", date=1_700_000_000),
        {"id": "post", "score": 0.8, "text": "Postage is 4 crowns.", "position": 3, "span": (10, 30)},
    ]
    plan = manager.plan(log, documents={"words": words, "meaning": meaning})
    rows = {row.id: row for row in plan.included if row.kind == "document"}
    assert list(rows) == ["hours", "refunds", "post"]
    assert rows["hours"].ranks == {"words": 2, "meaning": 1}
    assert rows["refunds"].ranks == {"words": 1}
    assert rows["post"].continues is None
    with pytest.raises(cw.InputError, match=r"documents\.meaning\[0\]: has no `id`"):
        manager.plan(log, documents={"meaning": [{"score": 1.0, "text": "No id."}]})


def test_overlapping_chunks_are_one_text() -> None:
    manager = cw.Manager("gpt-4o")
    log = cw.Conversation([{"role": "user", "content": "How long do refunds take?"}])
    text = "Refunds take five working days after the parcel has arrived at our warehouse near the old harbour gate."
    first = cw.Document("guide#1", 0.9, text[:70], source="guide.md", position=1)
    second = cw.Document("guide#2", 0.8, text[30:], source="guide.md", position=2)
    plan = manager.plan(log, documents=[first, second])
    rows = [row for row in plan.included if row.kind == "document"]
    assert [row.continues for row in rows] == [None, "guide#1"]
    assert text in json.dumps(plan.messages())
    assert pickle.loads(pickle.dumps(second)) == second


def test_a_neighbour_is_sent_beside_its_chunk() -> None:
    log = cw.Conversation([{"role": "user", "content": "How long do refunds take?"}])
    chunk = cw.Document("terms#4", 0.9, "Refunds take 5 days.")
    beside = cw.Document("terms#5", 0.0, "On Sundays, 6.", requires=["terms#4"])
    manager = cw.Manager("gpt-4o")
    both = manager.plan(log, documents=[chunk, beside])
    assert [row.id for row in both.included if row.kind == "document"] == ["terms#4", "terms#5"]
    written = {"id": "terms#5", "score": 1.0, "text": "On Sundays, 6.", "requires": ["terms#4"]}
    alone = manager.plan(log, documents=[written])
    assert str(alone.excluded[0].why) == "sent only beside terms#4, which is not in the prompt"
    assert pickle.loads(pickle.dumps(beside)) == beside and beside.requires == ["terms#4"]
    with pytest.raises(cw.InputError, match="RAG items require each other: a -> b -> a"):
        manager.plan(
            log, documents=[{**written, "id": "a", "requires": ["b"]}, {**written, "id": "b", "requires": ["a"]}]
        )


def test_a_group_is_sent_whole_or_not_at_all() -> None:
    log = cw.Conversation([{"role": "user", "content": "Which prices?"}])
    pages = [cw.Document(f"prices#{at}", 0.9 - at, f"Page {at}. " * 20, group="prices") for at in range(2)]
    written = [{"id": page.id, "score": page.score, "text": page.text, "group": "prices"} for page in pages]
    for given in (pages, written):
        plans = [cw.Manager("gpt-4o").plan(log, documents=given, prompt_budget=budget) for budget in (150, 400)]
        assert [sum(row.kind == "document" for row in plan.included) for plan in plans] == [0, 2]
        assert str(plans[0].excluded[0].why).startswith("too large with its whole group;")
    assert pickle.loads(pickle.dumps(pages[0])) == pages[0] and pages[0].group == "prices"


def test_a_shorter_form_is_sent_if_the_whole_text_does_not_fit() -> None:
    log = cw.Conversation([{"role": "user", "content": "How long do refunds take?"}])
    text = "Refunds take 5 days. A clerk checks the invoice first. " * 9
    document = cw.Document("refunds", 0.9, text, variants=[("summary", "Refunds take 5 days."), ("title", "Refunds")])
    written = {"id": "refunds", "score": 0.9, "text": text, "variants": [{"name": "summary", "text": "5 days."}]}
    for given, form in ((document, "summary"), (written, "summary"), (("refunds", 0.9, text), None)):
        short = cw.Manager("gpt-4o").plan(log, documents=[given], prompt_budget=80)
        whole = cw.Manager("gpt-4o").plan(log, documents=[given], prompt_budget=800)
        assert [row.form for row in short.included if row.kind == "document"] == [form] * (form is not None)
        assert [row.form for row in whole.included if row.kind == "document"] == [None]
    assert pickle.loads(pickle.dumps(document)) == document and document.variants[1] == ("title", "Refunds")
    with pytest.raises(cw.InputError, match="`variants` is not a list of pairs"):
        cw.Manager("gpt-4o").plan(log, documents=[{**written, "variants": ["5 days."]}])
