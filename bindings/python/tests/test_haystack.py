"""Haystack with its real classes: an Agent of 60 turns, its CompactionHook, saved components."""

from __future__ import annotations

import copy
import json
from typing import Annotated, Any, cast

import pytest

pytest.importorskip("haystack")
from context_window import Manager, Plan
from context_window.haystack import (
    ContextWindowChatGenerator,
    ContextWindowCompactor,
    ContextWindowTokenCounter,
    to_wire,
)
from haystack import component, default_from_dict, default_to_dict
from haystack.components.agents import Agent
from haystack.core.serialization_security import allow_deserialization_module
from haystack.dataclasses import (
    ChatMessage,
    ChatRole,
    FileContent,
    ImageContent,
    ReasoningContent,
    TextContent,
    ToolCall,
)
from haystack.hooks.compaction import CompactionHook
from haystack.tools import tool as as_tool
from support import same_as_rust, tool, valid_openai

pytestmark = pytest.mark.filterwarnings("ignore::haystack.utils.experimental.ExperimentalWarning")
BUDGET = 1_500
MANAGER = Manager("gpt-4o")
COUNTER = ContextWindowTokenCounter(MANAGER)
REFUSED = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."


@as_tool
def look(what: Annotated[str, "what to look up"]) -> str:
    """Looks something up."""
    return f"found {what} " * 30


WIRE = [{"type": "function", "function": look.tool_spec}]


@component
class Model:
    """A model that calls two tools at once for each question, then answers. It records its requests and
    calls `last`.
    """

    def __init__(self, window: int = 10_000, usage: bool = False, steps: int = 0) -> None:
        self.seen: list[list[ChatMessage]] = []
        self.steps = steps
        self.window, self.usage, self.asynchronous = window, usage, 0
        self.first: Any = lambda: None
        self.last: Any = lambda: None

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(self, window=self.window, usage=self.usage)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Model:
        return default_from_dict(cls, data)

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        self.first()
        if len(messages) > self.window:
            raise ValueError(REFUSED)
        self.seen.append(list(messages))
        self.last()
        number = len(self.seen)
        used = {"prompt_tokens": COUNTER.count(messages, tools), "completion_tokens": 9}
        said: dict[str, Any] = {"meta": {"usage": used} if self.usage else {"model": "x"}}
        if tools and (messages[-1].is_from(ChatRole.USER) or number <= self.steps):
            said["tool_calls"] = [ToolCall("look", {"what": f"{name}{number}"}, id=f"{name}{number}") for name in "ab"]
        else:
            said["text"] = f"Answer {number}."
        return {"replies": [ChatMessage.from_assistant(**said)]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        self.asynchronous += 1
        return self.run(messages, tools)


def wire(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    return [one for message in messages for one in to_wire(message)]


def check(model: Model, budget: int, fewest: int) -> None:
    """Checks that every request is valid and within the budget."""
    assert len(model.seen) >= fewest
    for sent in model.seen:
        valid_openai([one.to_openai_dict_format() for one in sent])
        assert MANAGER.count_messages(wire(sent), tools=WIRE) <= budget


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("usage", [False, True])
async def test_an_agent_of_60_turns_with_a_tool(asynchronous: bool, usage: bool) -> None:
    model = Model(usage=usage)
    generator = ContextWindowChatGenerator(model, MANAGER, prompt_budget=BUDGET)
    agent = Agent(chat_generator=generator, tools=[look], system_prompt="You are brief.")
    history: list[ChatMessage] = []
    for turn in range(60):
        before = [(one, copy.deepcopy(one)) for one in history]
        if turn == 59 and tool() is not None:
            log = generator._histories.get_or_create(history).log
            model.last = lambda: same_as_rust(
                MANAGER, log, cast(Plan, generator.plan), tools=WIRE, prompt_budget=BUDGET
            )
        given = [*history, ChatMessage.from_user(f"Question {turn}?")]
        answered = await agent.run_async(given) if asynchronous else agent.run(given)
        history = answered["messages"][1:]
        assert all(one is now and was == now for (one, was), now in zip(before, history)), "the history is untouched"
    assert len(history) == 60 * 5 and [one.role.value for one in history[:4]] == ["user", "assistant", "tool", "tool"]
    check(model, BUDGET, 120)
    assert bool(model.asynchronous) is asynchronous and max(map(len, model.seen)) < 60
    own = {id(one) for one in history}
    assert all(id(one) in own for one in model.seen[-1][1:]) and model.seen[-1][0].text == "You are brief."
    assert generator.plan is not None and generator.plan.repeated is not None


def test_one_run_of_60_steps_stays_within_the_budget() -> None:
    model = Model(steps=60)
    agent = Agent(chat_generator=ContextWindowChatGenerator(model, MANAGER, prompt_budget=BUDGET), tools=[look])
    answered = agent.run([ChatMessage.from_user("Look everything up.")])
    assert len(answered["messages"]) == 1 + 60 * 3 + 1 and len(model.seen) == 61
    check(model, BUDGET, 61)
    assert all(sent[0] is answered["messages"][0] for sent in model.seen), "the question stays"


@pytest.mark.parametrize("usage", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_compaction_hook_with_both(asynchronous: bool, usage: bool) -> None:
    model = Model(usage=usage)
    hook = CompactionHook(ContextWindowCompactor("gpt-4o"), context_window=2_000, compact_to=0.4, token_counter=COUNTER)
    agent = Agent(chat_generator=model, tools=[look], hooks={"before_llm": [hook]})
    history: list[ChatMessage] = []
    for turn in range(60):
        given = [*history, ChatMessage.from_user(f"Question {turn}?")]
        before = copy.deepcopy(given)
        history = (await agent.run_async(given) if asynchronous else agent.run(given))["messages"]
        assert given == before
    check(model, 1_399, 120)
    assert COUNTER.count(history, [look]) == MANAGER.count_messages(wire(history), tools=WIRE)
    assert len(history) < 60, "the state is what was kept"
    sent = [MANAGER.count_messages(wire(one), tools=WIRE) for one in model.seen]
    assert sum(later < sooner for sooner, later in zip(sent, sent[1:])) > 10
    own = {id(one) for one in history}
    assert all(id(one) in own for one in model.seen[-1])


def test_a_compactor_keeps_to_the_counter_it_is_given() -> None:
    class Twice(ContextWindowTokenCounter):
        def count(self, messages: list[ChatMessage], tools: Any = None) -> int:
            return 2 * super().count(messages, tools)

    compactor = ContextWindowCompactor(MANAGER)
    calls = [ToolCall("look", {}, id=id) for id in "ab"]
    turn = [ChatMessage.from_user("word " * 50), ChatMessage.from_assistant(tool_calls=calls)]
    turn += [ChatMessage.from_tool("r " * 40, call) for call in calls] + [ChatMessage.from_assistant("ok")]
    given = [ChatMessage.from_system("Be brief."), *[one for _ in range(20) for one in copy.deepcopy(turn)]]
    given.append(ChatMessage.from_user("And now?"))
    for counter in (COUNTER, Twice(MANAGER)):
        kept = compactor.compact(given, 500, counter)
        assert kept is not None and 250 < counter.count(kept) <= 500 and kept[0] is given[0] and kept[-1] is given[-1]
        valid_openai(wire(kept))
    assert compactor.compact(given, 100_000, COUNTER) is None and compactor.compact([], 10, COUNTER) is None
    assert compactor.compact(given, 0, COUNTER) == [given[0], given[-1]], "as close as it can"


async def test_a_refused_request_is_sent_smaller() -> None:
    model = Model(window=9)
    generator = ContextWindowChatGenerator(model, MANAGER, retries=6, prompt_budget=BUDGET)
    history = [make(f"{at}") for at in range(20) for make in (ChatMessage.from_user, ChatMessage.from_assistant)]
    given = [*history, ChatMessage.from_user("And now?")]
    assert generator.run(given)["replies"] and (await generator.run_async(given))["replies"]
    assert all(2 <= len(sent) <= 9 and sent[-1] is given[-1] for sent in model.seen) and len(model.seen) == 2
    model.window = 0
    with pytest.raises(ValueError, match="maximum context length"):
        generator.run("Hello?")


def test_a_conversation_that_begins_alike_is_asked_while_another_one_is_refused() -> None:
    model = Model(window=5)
    generator = ContextWindowChatGenerator(model, MANAGER, retries=6, prompt_budget=BUDGET)
    one, other = ([ChatMessage.from_user(f"{name} {at}") for at in range(8)] for name in ("one", "other"))
    for history in (one, other):
        history.append(ChatMessage.from_user("Go on."))
    others = [other]
    model.first = lambda: others and generator.run(others.pop())
    generator.run(one)
    for sent, own in zip(model.seen, (other, one), strict=True):
        assert {id(message) for message in sent} <= {id(message) for message in own} and 2 <= len(sent) <= 5


def test_edited_and_rewound_histories_two_conversations_and_another_system_text() -> None:
    model = Model()
    generator = ContextWindowChatGenerator(model, MANAGER, prompt_budget=300)
    system = ChatMessage.from_system("You are brief.")
    one, other = ([ChatMessage.from_user("Hello?")] for _ in range(2))
    for turn in range(30):
        for history in (one, other):
            history.extend(generator.run([system, *history])["replies"])
            own = {id(message) for message in [system, *history]}
            assert all(id(message) in own for message in model.seen[-1]), "nothing of the other conversation"
            history.append(ChatMessage.from_user(f"Question {turn} of {id(history)}? " * 4))
    assert len(model.seen[-1]) < 20 and 2 <= len(generator._histories._all) <= 3
    del one[40:]
    one[-1] = ChatMessage.from_user("Another question?")
    generator.run([system, *one])
    assert model.seen[-1][-1] is one[-1] and model.seen[-1][-2] is one[-2]
    head = [ChatMessage.from_system("You are long.", {"a": 1}, "rules"), ChatMessage.from_system("It is Monday.")]
    generator.run([*head, *one])
    assert all(sent is given for sent, given in zip(model.seen[-1], head))
    ContextWindowChatGenerator(model, MANAGER, focus="say please").run([*head, *one])
    system = model.seen[-1][0]
    text = system.text or ""
    assert text.startswith("You are long.\n\n") and "say please" in text and head[0].text == "You are long."
    assert (system.name, system.meta) == ("rules", {"a": 1})


def test_changed_messages_are_copies_and_content_is_valid_on_the_wire() -> None:
    calls = [ToolCall("f", {"a": "é"}, id="x")] * 2
    thought = ChatMessage.from_assistant(tool_calls=calls, reasoning="hm")
    given = [ChatMessage.from_user("q"), thought, *[ChatMessage.from_tool("r", call) for call in calls]]
    model = Model()
    ContextWindowChatGenerator(model, MANAGER, prompt_budget=BUDGET).run(given)
    assert [call.id for call in model.seen[-1][1].tool_calls] == ["x", "x#2"] and not model.seen[-1][1].reasonings
    assert cast(Any, model.seen[-1][3].tool_call_result).origin.id == "x#2"
    assert given[1].tool_calls == calls and thought.reasonings
    assert [one["tool_calls"][0]["function"] for one in to_wire(thought)] == [{"name": "f", "arguments": '{"a": "é"}'}]
    image = ImageContent("iVBORw0KGgowMDAw", mime_type="image/png", validation=False)
    pdf = FileContent("JVBERi0xLjQ=", mime_type="application/pdf", validation=False)
    said = ChatMessage.from_user(content_parts=["a", image, pdf])
    assert to_wire(said) == [said.to_openai_dict_format() | {"content": to_wire(said)[0]["content"]}]
    assert [part["type"] for part in to_wire(said)[0]["content"]] == ["text", "image_url", "file"]
    claude, model = Manager("claude-sonnet-4-5"), Model()
    text = {"reasoning_text": {"text": "hm", "signature": "s"}}
    sealed = ReasoningContent("hm", extra={"reasoning_contents": [{"reasoning_content": text}]})
    result = ChatMessage.from_tool([TextContent("seen"), image], ToolCall("f", {}, id="x"))
    assert to_wire(ChatMessage.from_assistant("a", reasoning=sealed))[0]["content"][0]["signature"] == "s"
    live = [said, ChatMessage.from_assistant(tool_calls=[ToolCall("f", {}, id="x")], reasoning=sealed), result]
    ContextWindowChatGenerator(model, claude).run(live)
    assert all(sent is own for sent, own in zip(model.seen[-1], live, strict=True)), "Claude takes all of it"
    ContextWindowChatGenerator(model, MANAGER).run(live)
    parts = cast(Any, model.seen[-1][-1].tool_call_result).result
    assert parts[0] == TextContent("seen") and isinstance(parts[1], TextContent), "gpt-4o takes no image in a result"


@pytest.mark.parametrize("said", ["word " * 3_000, [TextContent("word " * 3_000), TextContent("end")]])
def test_a_result_that_does_not_fit_is_sent_shortened(said: Any) -> None:
    call, model = ToolCall("look", {}, id="z"), Model()
    given = [ChatMessage.from_user("q"), ChatMessage.from_assistant(tool_calls=[call])]
    given.append(ChatMessage.from_tool(said, call))
    before = copy.deepcopy(given)
    ContextWindowChatGenerator(model, MANAGER, prompt_budget=400).run(given)
    check(model, 500, 1)
    sent = cast(Any, model.seen[-1][-1].tool_call_result)
    assert given == before and sent.result.startswith("word word") and sent.origin == call
    assert 200 < MANAGER.count_messages(wire(model.seen[-1])) <= 400


def test_saved_and_loaded() -> None:
    for module in ("context_window.haystack", __name__):
        allow_deserialization_module(module)
    generator = ContextWindowChatGenerator(Model(window=7), MANAGER, retries=3, prompt_budget=BUDGET)
    compactor = ContextWindowCompactor(MANAGER, max_completion_tokens=9)
    hook = CompactionHook(compactor, context_window=2_000, token_counter=COUNTER)
    agent = Agent(chat_generator=generator, tools=[look], hooks={"before_llm": [hook]})
    saved = agent.to_dict()
    assert saved["init_parameters"]["chat_generator"]["init_parameters"]["prompt_budget"] == BUDGET
    again = Agent.from_dict(json.loads(json.dumps(saved)))
    assert again.to_dict() == saved and again.chat_generator.window == 7  # type: ignore[attr-defined]
    assert len(again.run([ChatMessage.from_user("Question?")])["messages"]) == 5


def test_the_schema_of_a_response_is_counted() -> None:
    from pydantic import BaseModel, Field

    class Answer(BaseModel):
        text: str = Field(description="The text. " * 90)

    @component
    class Structured:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage], tools: Any = None, generation_kwargs: Any = None) -> dict[str, Any]:
            return {"replies": [ChatMessage.from_assistant("{}")]}

    given = [ChatMessage.from_user("Well?")]
    sizes = []
    for settings in (None, {"response_format": Answer}):
        generator = ContextWindowChatGenerator(Structured(), MANAGER, prompt_budget=BUDGET)
        generator.run(given, generation_kwargs=settings)
        sizes.append(cast(Plan, generator.plan).estimated_tokens_total)
        inner = Structured()
        inner.generation_kwargs = settings  # type: ignore[attr-defined]
        generator = ContextWindowChatGenerator(inner, MANAGER, prompt_budget=BUDGET)
        generator.run(given)
        sizes.append(cast(Plan, generator.plan).estimated_tokens_total)
    assert sizes[0] == sizes[1] < sizes[2] - 150 and sizes[2] == sizes[3]
