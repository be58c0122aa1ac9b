"""The common base of all adapters: a framework's list, synchronized with the planner's log."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from context_window import Conversation, InputError, Manager, bytes_handed_over
from context_window._history import SYSTEM, Histories, History, Turn, manager_of

Message = dict[str, Any]


def to_wire(message: Message) -> list[dict[str, Any]]:
    return [message]


def said(*texts: str) -> list[Message]:
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


def sent(turn: Turn[Message]) -> list[str]:
    return [one.own["content"] if one.own is not None else one.item.text for one in turn.sent]


def histories() -> Histories[Message]:
    return Histories(Manager("gpt-4o"), to_wire)


def test_only_new_messages_are_handed_over() -> None:
    history = History(Manager("gpt-4o"), to_wire)
    messages = said(*(f"word {at} " * 20 for at in range(2_001)))
    history.plan(messages, prompt_budget=2_000)
    for at in range(20):
        before = bytes_handed_over()
        # A framework that reads its history from a database creates new objects each time.
        messages = [dict(one) for one in messages] + said("x", f"Answer {at}.")[1:] + said(f"And {at}?")
        plan = history.plan(messages, prompt_budget=2_000)
        assert bytes_handed_over() - before < 200
        assert plan.estimated_tokens_total <= 2_000 and history.sent(plan)[-1].own is messages[-1]


def test_any_list_gives_the_plan_of_a_new_history() -> None:
    """Changes a history in random ways. Its plan must equal that of a new history with the same messages."""
    chance, manager = random.Random(7), Manager("gpt-4o")
    history: History[Message] = History(manager, to_wire)
    messages = said("a", "b", "c")
    for step in range(120):
        change = chance.randrange(4)
        if change == 0 and len(messages) > 1:
            messages = messages[: chance.randrange(1, len(messages))]
        elif change == 1:
            at = chance.randrange(len(messages))
            messages = [*messages[:at], {**messages[at], "content": f"edited {step}"}, *messages[at + 1 :]]
        else:
            messages = [*messages, {"role": chance.choice(("user", "assistant")), "content": f"more {step} " * 9}]
        system = chance.choice((None, "Be brief.", "Be long."))
        plan = history.plan(messages, system, prompt_budget=150, previous=None)
        fresh: History[Message] = History(manager, to_wire)
        anew = fresh.plan(messages, system, prompt_budget=150)
        assert plan.messages() == anew.messages(), step
        assert [one.own for one in history.sent(plan)] == [one.own for one in fresh.sent(anew)]


def test_two_conversations_that_begin_alike_are_not_mixed() -> None:
    """Both conversations end with the same message, and the second is read into the first one's history in
    between.
    """
    all = histories()
    one, two = (said(name * 20, "yes", f"{name} asks", f"{name} is told", "go on") for name in ("first", "second"))
    all.get_or_create(one).sync(one)
    first = Turn(all.get_or_create(one), one, None, {"prompt_budget": 500}, retries=1)
    second = Turn(all.get_or_create(two), two, None, {"prompt_budget": 500})
    assert sent(first)[0] == "first" * 20 and sent(second)[0] == "second" * 20
    first.shrink(Exception("This model's maximum context length is 10 tokens, however you requested 20 tokens"))
    assert sent(first) == ["first asks", "first is told", "go on"]
    first.commit({"role": "assistant", "content": "one's answer"}, {"prompt_tokens": 3, "completion_tokens": 1})
    second.commit({"role": "assistant", "content": "two's answer"})
    third = Turn(
        all.get_or_create(two),
        [*two, {"role": "assistant", "content": "two's answer"}, *said("and?")],
        None,
        {"prompt_budget": 500},
    )
    assert "one's answer" not in sent(third) and "first asks" not in sent(third)


def test_other_errors_than_refusals_are_raised() -> None:
    turn = Turn(histories().get_or_create([]), said("a"), None, {}, retries=1)
    with pytest.raises(ValueError, match="other"):
        turn.shrink(ValueError("other"))
    refusal = ValueError("This model's maximum context length is 10 tokens, however you requested 20 tokens")
    turn.shrink(refusal)
    with pytest.raises(ValueError, match="maximum context"):
        turn.shrink(refusal)


def test_a_long_system_text_is_counted_and_never_dropped() -> None:
    history = History(Manager("gpt-4o"), to_wire)
    system = "rule " * 300
    plan = history.plan(said("a", "b " * 200, "c"), system, prompt_budget=400)
    assert [item.id for item in plan.included][0] == SYSTEM and plan.estimated_tokens_total <= 400
    assert history.plan(said("a", "b " * 200, "c"), system, prompt_budget=200).overflow is not None
    shorter = history.plan(said("a", "b " * 200, "c"), "rule", prompt_budget=400)
    assert len(shorter.included) == 4 and history.log.event_count() < 12


def test_results_inside_of_a_message_belong_to_it() -> None:
    history = History(Manager("claude-haiku-5-5"), to_wire)
    messages: list[Message] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "text", "text": "Well?"},
            ],
        },
    ]
    plan = history.plan(messages)
    assert [one.own for one in history.sent(plan)] == messages


def test_the_conversations_used_last_are_kept() -> None:
    all: Histories[Message] = Histories(Manager("gpt-4o"), to_wire, most=2)
    for name in "abc":
        all.get_or_create(said(name), name).sync(said(name))
    assert len(all.get_or_create(said("b"), "b")) == 1 and len(all.get_or_create(said("a"), "a")) == 0
    assert isinstance(all.get_or_create(said("b"), "b").log, Conversation)


def test_pinned_notes_survive_an_edit() -> None:
    history = History(Manager("gpt-4o"), to_wire)
    history.plan(said("a", "b", "c", "d", "e"))
    history.log.pin("tone", "Rhyme.")
    plan = history.plan(said("a", "b", "c, edited"))
    assert [one["content"] for one in plan.messages()] == ["Rhyme.", "a", "b", "c, edited"]
    calls = [{"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    results: list[Message] = [*said("a"), {"role": "assistant", "tool_calls": calls}]
    result = {"role": "tool", "tool_call_id": "x", "content": "one"}
    history.plan([*results, result, *said("b")])
    again = history.plan([*results, {**result, "content": "two"}, *said("b")])
    assert [one["content"] for one in again.messages() if one["role"] == "tool"] == ["two"]


def test_a_turn_that_fails_halfway_is_not_sent_twice() -> None:
    history = History(Manager("gpt-4o"), lambda one: [one, dict(one)] if one.get("twice") else [one])
    bad: list[Message] = [{"role": "user", "content": "a", "twice": True}, {"role": "user", "content": 7}]
    with pytest.raises(InputError):
        history.plan(bad)
    plan = history.plan([bad[0], *said("b")])
    assert [one["content"] for one in plan.messages()] == ["a", "a", "b"]


def test_the_next_plan_continues_from_the_last() -> None:
    history = History(Manager("gpt-4o"), to_wire)
    messages = said(*(f"word {at} " * 20 for at in range(101)))
    first = history.plan(messages, prompt_budget=500, after_last=True)
    later = history.plan([*messages, *said("x", "y")[1:], *said("z")], prompt_budget=600, after_last=True)
    assert first.repeated is None and later.repeated is not None


def test_a_model_is_named_or_planned_for() -> None:
    with pytest.raises(TypeError, match="model's name, not a list"):
        manager_of([])  # type: ignore[arg-type]


def test_a_log_of_changed_messages_is_renewed_with_its_pins() -> None:
    history = History(Manager("gpt-4o"), to_wire)
    base = said(*(f"text {at}" for at in range(1, 121)))
    history.plan([*said("first"), *base[1:]])
    history.log.pin("tone", "Rhyme.", priority="high", ttl=500)
    history.log.pin_message("m0")
    history.log.pin("gone", "No.")
    history.log.unpin("gone")
    logs, longest = set(), 0
    for step in range(60):
        messages = [*said("first"), *said("x", f"answer {step}")[1:], *base]
        plan = history.plan(messages, "Be brief.")
        logs.add(id(history.log))
        longest = max(longest, len(history.log))
        texts = [one["content"] for one in plan.messages()]
        assert texts[:2] == ["Be brief.", "Rhyme."] and texts[2:4] == ["first", f"answer {step}"]
        assert len(texts) == 124 and "No." not in texts
    assert len(logs) > 5 and longest <= 5 * 122
    pinned = [json.loads(one)["entry"].get("event") for one in history.log.events()]
    assert {"message_pinned": {"id": "m0", "priority": "normal"}} in pinned
    fresh: History[Message] = History(history.manager, to_wire)
    fresh.log.pin("tone", "Rhyme.", priority="high", ttl=500)
    assert fresh.plan(messages, "Be brief.").messages()[2:] == plan.messages()[2:]


def test_equal_contents_are_one_conversation_without_a_key() -> None:
    def numbered(message: Message) -> list[Message]:
        return [{key: value for key, value in message.items() if key != "made_up"}]

    all: Histories[Message] = Histories(Manager("gpt-4o"), numbered)
    messages = said(*"abcde")
    first = all.get_or_create(messages)
    first.sync(messages)
    later = [{**one, "made_up": at} for at, one in enumerate([*messages, *said("x", "f")[1:]])]
    assert all.get_or_create(later) is first and first.count_known(later) == 5
    first.sync(later)
    assert (
        all.get_or_create(later, "made up", is_made_up=True) is first and all.get_or_create(later, "made up") is first
    )
    assert all.get_or_create(later, "other") is not first
    named = all.get_named("pinned")
    named.sync(later)
    assert all.get_or_create(later) is not named and all.get_or_create(later, "new", is_made_up=True) is not named
    assert all.get_or_create(later, "pinned") is named
