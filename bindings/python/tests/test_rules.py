"""Lasting rules of the user: they stay in the prompt once their messages leave it."""

from __future__ import annotations

import context_window as cw
import pytest
from context_window import Conversation, Manager

RULE = "Never touch the migrations folder."


def talk(turns: int = 40) -> Conversation:
    log = Conversation([{"role": "user", "content": f"Fix the tests. {RULE}"}])
    for part in range(turns):
        log.push({"role": "assistant", "content": f"Part {part} is done, and all of its tests pass."})
        log.push({"role": "user", "content": f"Go on with part {part + 1}, please."})
    return log


def sent(plan: cw.Plan) -> list[str]:
    rules = [item for item in plan.included if item.kind == "rule"]
    texts = [str(message["content"]) for message in plan.messages()]
    assert all(item.reason == "rule" and item.section == "system_pinned" for item in rules)
    return [text for text in texts if text.startswith("Standing rule: ")]


def manager(policy: str) -> Manager:
    return Manager("gpt-4o", config={"compaction": {"rules": policy}})


def test_a_rule_is_kept_word_for_word() -> None:
    log, keeps = talk(), manager("keep")
    assert sent(keeps.plan(log, prompt_budget=400)) == [f"Standing rule: {RULE}"]
    assert sent(keeps.plan(log, prompt_budget=100_000)) == []
    assert sent(manager("off").plan(log, prompt_budget=400)) == []
    assert keeps.plan(log, prompt_budget=400).rules == [
        {"id": "rule:m0:1", "text": RULE, "message": "m0", "source": "cue_words"}
    ]


def test_a_user_confirms_edits_and_drops_rules() -> None:
    log, asks = talk(), manager("ask")
    plan = asks.plan(log, prompt_budget=400)
    (notice,) = [notice for notice in plan.notices if notice["code"] == "rule_question"]
    assert sent(plan) == [] and notice["ids"] == ["rule:m0:1"]
    (rule,) = plan.rules
    log.keep_rule(rule["id"], rule["text"], message=rule["message"])
    assert sent(asks.plan(log, prompt_budget=400)) == [f"Standing rule: {RULE}"]
    log.keep_rule("rule:m0:1", "Never touch folder 7.")
    log.keep_rule("tone", "Be brief.")
    assert [rule["text"] for rule in log.rules()] == ["Never touch folder 7.", "Be brief."]
    assert log.drop_rule("rule:m0:1") and not log.drop_rule("rule:m0:1")
    read = Conversation.from_events(log.events())
    assert sent(asks.plan(read, prompt_budget=400)) == ["Standing rule: Be brief."]
    with pytest.raises(cw.ContextWindowError, match="not the user's"):
        log.keep_rule("x", "Be brief.", message="m1")
