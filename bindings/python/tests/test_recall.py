"""Recall: earlier messages that a question needs come back as documents."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import context_window as cw
import pytest
from context_window import Conversation, Manager, Recall
from support import same_as_rust, tool

#: A budget in tokens that holds the last few turns of `talk`.
SMALL = 800
DAY = 1_700_000_000


def talk(turns: int = 40) -> Conversation:
    """Returns a conversation whose question is about its first message."""
    log = Conversation([{"id": "ida", "role": "user", "content": "My sister Ida moved to Trondheim last spring."}])
    log.push({"role": "assistant", "content": "Then you have a good reason to see the fjords."})
    for day in range(turns):
        log.push({"role": "user", "content": f"Write the summary of day {day}."})
        log.push({"role": "assistant", "content": f"Day {day} was spent on the quarterly report, as planned."})
    log.push({"role": "user", "content": "In which city does my sister live?"})
    return log


def recalled(plan: cw.Plan) -> list[cw.IncludedItem]:
    return [item for item in plan.included if item.reason == "recalled"]


@pytest.fixture(scope="module")
def manager() -> Manager:
    return Manager("gpt-4o", tokenizer="chars/4")


def test_a_message_that_left_the_window_comes_back(manager: Manager) -> None:
    log = talk()
    without = manager.plan(log, prompt_budget=SMALL)
    assert "Trondheim" not in json.dumps(without.messages())
    plan = manager.plan(log, prompt_budget=SMALL, recall=Recall(log))
    row = recalled(plan)[0]
    assert (row.id, row.kind, row.section) == ("recall:ida", "document", "rag")
    assert row.quoted_messages == ("ida", "ida")
    assert "Trondheim" in json.dumps(plan.messages()) and "recalled: ida" in str(plan)
    others = [item for item in plan.included if item.reason != "recalled"]
    assert others and all(item.quoted_messages is None for item in others)
    assert plan.estimated_tokens_total <= SMALL
    # An index for one plan finds the same, and so does a plan in another thread.
    assert manager.plan(log, prompt_budget=SMALL, recall=True) == plan
    assert asyncio.run(_planned(manager, log)) == plan
    for none in (None, False):
        assert manager.plan(log, prompt_budget=SMALL, recall=none) == without


async def _planned(manager: Manager, log: Conversation) -> cw.Plan:
    return await manager.plan_async(log, prompt_budget=SMALL, recall=True)


def test_documents_and_recalled_messages_are_planned_together(manager: Manager) -> None:
    log = talk()
    lists = {"words": [("guide", 3.0, "A guide to Norway.")], "meaning": [("guide", 0.9, "A guide to Norway.")]}
    for documents in (lists, [("guide", 3.0, "A guide to Norway.")]):
        plan = manager.plan(log, prompt_budget=SMALL, documents=documents, recall=True)
        found = {item.id: item for item in plan.included if item.kind == "document"}
        assert {"guide", "recall:ida"} <= set(found)
        assert found["recall:ida"].ranks == {"recall": 1} and "recall" not in found["guide"].ranks


def test_plans_with_recalled_messages_are_those_of_rust() -> None:
    if tool() is None:
        pytest.skip("plan-inspect is not built")
    manager, log = Manager("gpt-4o"), talk()
    recall = Recall(log)
    plan = manager.plan(log, prompt_budget=SMALL, recall=recall)
    assert recalled(plan)
    same_as_rust(manager, log, plan, prompt_budget=SMALL, recall=recall)


def test_figures_of_a_request_count_recalled_messages(manager: Manager) -> None:
    log = talk()
    recall = Recall(log)
    session = json.loads(manager.session_json(log, prompt_budget=SMALL, recall=recall))
    assert "recall:ida" in json.dumps(session["rag"])
    again = Conversation.from_session(json.dumps(session))
    assert again.ids() == log.ids()
    assert manager.usage(log, recall=recall)["limit"] > 0
    assert manager.retrieval_budget(log, prompt_budget=SMALL, recall=recall)["most"] > 0
    smaller = manager.plan_after_overflow(log, manager.plan(log, recall=recall), recall=recall)
    assert smaller.prompt_budget > 0


def test_a_plan_keeps_the_messages_that_it_recalled(manager: Manager) -> None:
    log = talk()
    recall = Recall(log)
    plan = manager.plan(log, prompt_budget=SMALL, recall=recall)
    before, page = [str(one) for one in plan.explain_all()], plan.html(explain=False)
    assert plan.explain("recall:ida").included
    log.push_reply(plan, "In Trondheim.", {"prompt_tokens": 700, "completion_tokens": 3})
    log.push({"role": "user", "content": "And the sister of my sister, in Trondheim or in Oslo?"})
    recall.forget(["ida"])
    later = manager.plan(log, prompt_budget=SMALL, recall=recall)
    assert [str(one) for one in plan.explain_all()] == before and plan.html(explain=False) == page
    assert any(change.document for change in plan.diff(later))
    again: cw.Plan = pickle.loads(pickle.dumps(plan))
    assert again == plan and again.json() == plan.json()
    rows = recalled(again)
    assert rows and pickle.loads(pickle.dumps(rows)) == rows == recalled(plan)
    assert all(row.quoted_messages is not None for row in rows)


def test_searches_return_hits() -> None:
    log = talk()
    recall = Recall(log, dates={"ida": DAY})
    assert recall.opened is None and repr(recall) == "Recall(83 messages)"
    hit = recall.search("Trondheim")[0]
    assert hit.id == "recall:ida" and hit.ids[0] == "ida" and hit.messages[0] == 0
    assert hit.messages[1] == len(hit.ids) and hit.score > 0 and hit.date == DAY
    assert hit.text.startswith("user, 2023-11-14: My sister Ida moved to Trondheim last spring.\n")
    assert repr(hit).startswith("Hit('recall:ida', ") or repr(hit).startswith('Hit("recall:ida", ')
    assert pickle.loads(pickle.dumps(hit)) == hit == recall.search("Trondheim")[0]
    assert recall.search("submarine") == []
    assert len(Recall(log, max_hits=1).search("day report")) == 1 < len(recall.search("day report"))
    # New messages are indexed by an update, or by the next search.
    log.push({"role": "assistant", "content": "In Trondheim."})
    log.push({"role": "user", "content": "My brother Ole built a submarine."})
    log.push({"role": "assistant", "content": "Impressive."})
    assert recall.update() == 3 and recall.update() == 0
    hit = recall.search("submarine")[0]
    assert "submarine" in hit.text and hit.date is None
    recall.add_dates({hit.ids[0]: DAY + 1})
    assert recall.search("submarine")[0].date == DAY + 1


def test_options_decide_about_hits(manager: Manager) -> None:
    log = talk()
    assert not recalled(manager.plan(log, prompt_budget=SMALL, recall=Recall(log, max_hits=0)))
    assert not recalled(manager.plan(log, prompt_budget=SMALL, recall=Recall(log, min_score=60_000)))
    assert recalled(manager.plan(log, prompt_budget=SMALL, recall=Recall(log, min_score=0, max_hits=100)))
    none = Manager("gpt-4o", tokenizer="chars/4", config={"rag": {"recall_share": 0}})
    assert not recalled(none.plan(log, prompt_budget=SMALL, recall=True))


def test_forgotten_messages_do_not_come_back(manager: Manager, tmp_path: Path) -> None:
    log, path = talk(), tmp_path / "talk.recall"
    recall = Recall(log, path)
    recall.save()
    assert b"trondheim" in path.read_bytes().lower()
    assert recall.forget(["ida", "nobody"]) == 1
    assert recall.search("Trondheim") == []
    plan = manager.plan(log, prompt_budget=SMALL, recall=recall)
    assert "recall:ida" not in [row.id for row in recalled(plan)]
    assert "Trondheim" not in json.dumps(plan.messages("openai"))
    recall.save()
    assert b"trondheim" not in path.read_bytes().lower()
    again = Recall(log, path)
    assert again.opened == {"outcome": "loaded", "messages": 0, "reason": None}
    assert again.search("Trondheim") == []


def test_an_index_file_is_opened_again_and_may_be_lost(tmp_path: Path) -> None:
    log, path = talk(), tmp_path / "talk.recall"
    recall = Recall(log, str(path))
    assert recall.opened == {"outcome": "rebuilt", "messages": 83, "reason": "missing"}
    assert "talk.recall" in repr(recall) and not path.exists()
    recall.save()
    assert Recall(log, path).opened == {"outcome": "loaded", "messages": 0, "reason": None}
    log.push({"role": "assistant", "content": "In Trondheim."})
    later = Recall(log, path)
    assert later.opened == {"outcome": "caught_up", "messages": 1, "reason": None}
    assert later.search("Trondheim") == Recall(log).search("Trondheim")
    other = Conversation([{"role": "user", "content": "Another talk."}])
    opened: Any = Recall(other, path).opened
    assert (opened["outcome"], opened["messages"], opened["reason"]) == ("rebuilt", 1, "other_conversation")
    path.write_bytes(b"no index")
    opened = Recall(log, path).opened
    assert opened["reason"] == "damaged" and opened["messages"] == len(log)
    recall = Recall(log, path)
    recall.save()
    assert Recall(log, path).opened == {"outcome": "loaded", "messages": 0, "reason": None}


def test_errors_name_the_argument_or_the_file(manager: Manager, tmp_path: Path) -> None:
    log = talk(2)
    with pytest.raises(cw.InputError, match="recall: expected a Recall, True or None, not str"):
        manager.plan(log, recall="yes")  # type: ignore[arg-type]
    with pytest.raises(cw.InputError, match="recall: is of another conversation"):
        manager.plan(log, recall=Recall(copy.deepcopy(log)))
    with pytest.raises(cw.InputError, match="dates: expected a dict of seconds"):
        Recall(log, dates={"ida": "yesterday"})  # type: ignore[dict-item]
    with pytest.raises(cw.InputError, match="expected a whole number"):
        Recall(log, max_hits=-1)
    with pytest.raises(cw.InputError, match="ids: expected a list, not str"):
        Recall(log).forget("ida")
    with pytest.raises(cw.InputError, match=r"ids\[1\]: expected a string, not int"):
        Recall(log).forget(["ida", 3])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        Recall("talk")  # type: ignore[arg-type]
    with pytest.raises(cw.RecallError, match="cannot be read") as caught:
        Recall(log, tmp_path)
    assert isinstance(caught.value, cw.ContextWindowError)
    recall = Recall(log, tmp_path / "missing" / "talk.recall")
    with pytest.raises(cw.RecallError, match="cannot be written"):
        recall.save()
    (tmp_path / "missing").mkdir()
    recall.save()


def test_threads_share_a_recall(manager: Manager) -> None:
    log = talk()
    recall, failed = Recall(log), []

    def work(number: int) -> None:
        try:
            for at in range(30):
                if number == 0:
                    log.push({"role": "user", "content": f"My sister sends card {at} from Trondheim."})
                    log.push({"role": "assistant", "content": "How kind."})
                recall.search("Trondheim")
                manager.plan(log, prompt_budget=SMALL, recall=recall)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed and not any(thread.is_alive() for thread in threads)
    assert recall.update() == 0 and recall.search("Trondheim") == Recall(log).search("Trondheim")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_indexes_are_released_with_their_plans_and_conversations(manager: Manager) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def plans(count: int) -> None:
        log = talk(30)
        recall = Recall(log)
        for at in range(count):
            if at % 4 == 0:
                log = talk(30) if at % 100 == 0 else copy.deepcopy(log)
                recall = Recall(log)
            plan = manager.plan(log, prompt_budget=600, recall=recall if at % 2 else True)
        assert recalled(plan)

    plans(500)
    before = resident()
    plans(4_000)
    # If the indexes of the copies were kept, they would have 22 MB.
    assert resident() - before < 16 << 20, "indexes are kept"


def test_large_results_stay_outside_and_are_read_back() -> None:
    manager = Manager("gpt-4o", config={"conversation": {"tool_results": "offload"}})
    log = Conversation([{"role": "user", "content": "Which file is the 2,000th?"}])
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    log.push({"role": "assistant", "content": None, "tool_calls": [call]})
    log.push({"role": "tool", "tool_call_id": "c1", "content": "".join(f"file {at}\n" for at in range(1, 4_001))})
    whole = manager.plan(log)
    assert [notice["code"] for notice in whole.notices] == ["results_not_offloaded"]
    tools = [Recall.tool()]
    plan = manager.plan(log, tools=tools)
    assert [notice["code"] for notice in plan.notices] == ["results_offloaded"]
    assert plan.estimated_tokens_total < whole.estimated_tokens_total // 10
    assert "call recall with the handle m2" in json.dumps(plan.messages())

    recall = Recall(log)
    result = recall.answer(plan, "c2", {"handle": "m2", "first_line": 1_999, "last_line": 2_000})
    assert result == {
        "role": "tool",
        "tool_call_id": "c2",
        "content": "[m2: lines 1999 to 2000 of 4000]\nfile 1999\nfile 2000\n",
    }
    assert recall.answer(plan, "c2", '{"handle": "m2", "first_line": 1999, "last_line": 2000}') == result
    short = recall.answer(plan, "c2", {"handle": "m2"}, max_tokens=80)["content"]
    assert isinstance(short, str) and manager.count(short) <= 80 and "[more lines from" in short
    assert "no JSON object" in str(recall.answer(plan, "c2", "[]")["content"])
    log.push_reply(
        plan,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**call, "id": "c2", "function": {"name": "recall", "arguments": "{}"}}],
        },
    )
    log.push(result)
    then = manager.plan(log, tools=tools)
    assert then.repeated is not None and "file 2000" in json.dumps(then.messages())


def test_a_ranking_of_the_application_joins_the_one_by_words(manager: Manager) -> None:
    log = talk()
    log.push({"role": "assistant", "content": "In Norway."})
    log.push({"role": "user", "content": "Repeat the summary of day 7, day 8 and day 9."})
    recall = Recall(log)
    by_words = {row.id for row in recalled(manager.plan(log, prompt_budget=SMALL, recall=recall))}
    assert by_words and "recall:ida" not in by_words
    ranked = recall.with_ranking(["ida"], weight=2)
    plan = manager.plan(log, prompt_budget=SMALL, recall=ranked)
    assert "recall:ida" in [row.id for row in recalled(plan)]
    more = ranked.with_ranking(["m2", "m3"])
    assert repr(more) == "RankedRecall(2 rankings)"
    assert {"recall:ida", "recall:m2"} <= {
        row.id for row in recalled(manager.plan(log, prompt_budget=SMALL, recall=more))
    }
    with pytest.raises(cw.InputError, match="of another conversation"):
        manager.plan(talk(), prompt_budget=SMALL, recall=ranked)
