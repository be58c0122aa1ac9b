from __future__ import annotations

import asyncio
import base64
import dataclasses
import operator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from context_window import Manager, Store
from context_window.pydantic_ai import ContextWindow, StoreConversations
from pydantic_ai import Agent, ModelHTTPError, RunContext
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider
from support import same_as_rust, valid_openai

MANAGER, BUDGET = Manager("gpt-4o"), 2500
OPENAI = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="none"))


class Answers:
    """A model that requests two lookups for a question, then answers. It checks each request in the format
    of OpenAI.
    """

    def __init__(self, result: str = "found it " * 30, **request: Any) -> None:
        self.planned = ContextWindow(MANAGER, prompt_budget=BUDGET, **request)
        self.seen: list[list[ModelMessage]] = []
        self.instructions: str | None = None
        self.refusals, self.rust_at, self.system, self.aside = 0, -1, "Be brief.", ""
        self.agent = Agent(FunctionModel(self.answer), capabilities=[self.planned], system_prompt="You help.")
        self.agent.instructions(lambda: self.system)

        @self.agent.tool
        def look(ctx: RunContext[None], what: str) -> str:
            """Looks something up."""
            if self.aside:
                ctx.enqueue(self.aside)
            return result

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        self.instructions = info.instructions
        wire: list[Any] = await OPENAI._map_messages(messages, ModelRequestParameters())
        valid_openai(wire)
        [look] = info.function_tools
        told = {"name": look.name, "description": look.description, "parameters": look.parameters_json_schema}
        tools = [{"type": "function", "function": told}]
        assert MANAGER.count_messages(wire, tools=tools) <= BUDGET
        n = len(self.seen)
        if n == self.rust_at:
            assert self.planned.plan is not None and self.planned.plan.excluded
            log = self.planned.conversation(str(messages[-1].conversation_id))
            same_as_rust(MANAGER, log, self.planned.plan, tools=tools, prompt_budget=BUDGET)
        if self.refusals:
            self.refusals -= 1
            raise ModelHTTPError(400, "gpt-4o", {"code": "context_length_exceeded"})
        if isinstance(messages[-1].parts[0], ToolReturnPart):
            return ModelResponse([TextPart(f"Answer {n}. " * 10)])
        calls = [ToolCallPart("look", {"what": letter}, tool_call_id=f"{letter}{n}") for letter in "ab"]
        return ModelResponse([ThinkingPart("Both."), *calls])


dumped = ModelMessagesTypeAdapter.dump_json


def whole(model: Answers, turns: int, sync: bool = True) -> list[ModelMessage]:
    history = list[ModelMessage]()
    for n in range(turns):
        old, before, run = history, dumped(history), model.agent.run_sync if sync else model.agent.run
        made: Any = run(f"Question {n}?", message_history=old)
        history = (made if sync else asyncio.run(made)).all_messages()
        assert all(map(operator.is_, history, old)) and dumped(old) == before
    return history


@pytest.mark.parametrize("sync", [True, False])
def test_an_agent_of_sixty_turns(sync: bool) -> None:
    model = Answers()
    model.rust_at = 120
    history = whole(model, 60, sync=sync)
    assert len(history) == 60 * 4 and len(model.seen) == 120 and len(model.seen[-1]) < 60
    own = {id(one) for one in history}
    for seen in model.seen:
        # Only the first request is split: its system prompt stays, its question is dropped.
        assert all(id(one) in own for one in seen[1:]) and seen[0].parts[0] is history[0].parts[0]
    assert model.planned.plan and model.planned.plan.repeated and len(model.planned._histories._all) == 1


def test_a_history_that_changed() -> None:
    model = Answers()
    history = whole(model, 20)
    edited = [ModelRequest([UserPromptPart("Edited.")], conversation_id=history[0].conversation_id), *history[1:]]
    model.agent.run_sync("And?", message_history=edited)
    model.agent.run_sync("And?", message_history=history[:4])
    assert model.seen[-2][0] is history[0] and len(model.seen[-2]) == 5
    assert "Edited." not in str(model.planned.plan and model.planned.plan.messages())


def test_two_conversations_and_a_new_system_text() -> None:
    model = Answers()
    two: list[list[ModelMessage]] = [[], []]
    for n in range(12):
        model.system = "Be brief." if n < 11 else "Be long." * 100
        for at, name in enumerate(("cats", "dogs")):
            two[at] = model.agent.run_sync(f"About {name} {n}?", message_history=two[at]).all_messages()
            assert all(one in two[at] for one in model.seen[-1][1:])
            assert ("cats" in str(model.seen[-1]), "dogs" in str(model.seen[-1])) == (name == "cats", name == "dogs")
    assert model.instructions == "Be long." * 100 and len(two[1]) == 48
    assert model.planned.plan and model.planned.plan.excluded and len(model.planned._histories._all) == 2


def test_a_result_that_is_too_long_is_a_copy() -> None:
    model = Answers("line\n" * 5000)
    history = whole(model, 1)
    full = [part.content for one in history for part in one.parts if isinstance(part, ToolReturnPart)]
    short = [part.content for one in model.seen[-1] for part in one.parts if isinstance(part, ToolReturnPart)]
    assert full == ["line\n" * 5000] * 2 and [0 < str(one).count("line\n") < 1200 for one in short] == [True] * 2


def test_a_refused_request_is_sent_smaller() -> None:
    model = Answers()
    history = whole(model, 20)
    model.refusals = 2
    made = model.agent.run_sync("And?", message_history=history).all_messages()
    first, second, third = map(len, model.seen[40:43])
    assert first > second > third and model.seen[42][-1] is made[80] and made[:80] == history
    model.refusals = 3
    with pytest.raises(ModelHTTPError):
        model.agent.run_sync("And?", message_history=history)


async def test_documents_files_and_a_run_without_a_prompt() -> None:
    async def found(ctx: Any) -> list[Any]:
        return [("refunds", 0.9, "Refunds take 5 days.")]

    model = Answers(documents=found)
    # A page, and a picture of one pixel. A picture at a URL would have an unknown size and count as the
    # largest.
    picture = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    )
    shown = [
        BinaryContent(b"%PDF", media_type="application/pdf"),
        BinaryContent(picture, media_type="image/png"),
        "How long?",
    ]
    made = await model.agent.run(shown)
    assert "5 days" in str(model.seen[0]) and "5 days" not in str(made.all_messages())
    assert any(getattr(part, "content", None) == shown for one in model.seen[-1] for part in one.parts)
    silent = Agent(TestModel(custom_output_text="Hello."), instructions="Greet.", capabilities=[ContextWindow(MANAGER)])
    assert (await silent.run()).output == "Hello."


def test_additional_tool_content_keeps_the_log() -> None:
    model, history = Answers(), list[ModelMessage]()
    model.aside = "By the way."
    for n in range(3):
        history = model.agent.run_sync("And?", message_history=history, conversation_id="one").all_messages()
        if n == 0:
            log = model.planned.conversation("one")
    # When the run continues, it puts results first. These are the same messages, so the history is not reset.
    assert model.planned.conversation("one") is log


@pytest.mark.parametrize("theirs", [True, False])
async def test_a_store_of_conversations(tmp_path: Path, theirs: bool) -> None:
    ours = StoreConversations(Store(f"sqlite:{tmp_path}/c.db"))
    store: ConversationStore = InMemoryConversationStore() if theirs else ours
    agent = Agent(TestModel(custom_output_text="Yes."))
    assert await store.load("one") is None and await store.list_conversations() == []
    conversation = Conversation(conversation_id="one")
    for n in range(3):
        made = await agent.run(f"Question {n}?", conversation=conversation)
        entries = await store.save(made, scope="me")
        conversation = await store.load("one", scope="me") or conversation
        assert len(entries) == 2 and conversation.messages == made.all_messages()
    assert conversation.usage.requests == 3 and await store.load("one", scope="you") is None
    assert len((await store.load("one", limit=2) or conversation).messages) == 2
    stale = await store.load("one") or conversation
    await store.save(await agent.run("And?", conversation=conversation))
    for late in (await agent.run("Or?", conversation=stale), Conversation(conversation_id="one", messages=[])):
        with pytest.raises(ConversationConflict):
            await store.save(late)
    left = (await store.load_entries("one") or [])[-1].id
    current = await store.load("one") or conversation
    branched = await store.branch("one", at=2, expected_revision=current.revision)
    assert branched.messages == stale.messages[:2]
    back = await store.branch("one", from_entry=left, expected_revision=branched.revision)
    assert back == dataclasses.replace(current, revision=back.revision) and back.revision != current.revision
    fork = await store.fork("one", at=4, new_conversation_id="two")
    await store.save(await agent.run("Else?", conversation=fork))
    assert [one.conversation_id for one in await store.list_conversations(scope="me")] == ["two", "one"]
    assert len(await store.list_conversations(limit=1)) == 1 and await store.list_conversations(scope="you") == []
    await store.delete("one")
    assert await store.load("one") is None and len((await store.load("two") or fork).messages) == 6
    with pytest.raises(LookupError):
        await store.read_entry(left)
    await store.save(dataclasses.replace(stale, revision=None, new_message_index=None))
    assert (await store.load("one") or conversation).messages == stale.messages


async def test_a_store_that_another_process_wrote(tmp_path: Path) -> None:
    store = Store(f"sqlite:{tmp_path}/c.db")
    one, other = StoreConversations(store), StoreConversations(store)
    entries = await one.save(await Agent(TestModel()).run("Question?"))
    assert await other.read_entry(entries[1].id) == entries[1]
    [record] = await other.list_conversations()
    late: Any = SimpleNamespace(load_or_new=lambda id: (store.load_or_new(id)[0], 0), save=store.save)
    for writer, expected in ((StoreConversations(late), record.revision), (one, None), (one, "other")):
        with pytest.raises(ConversationConflict):
            await writer.write_record(record, expected_revision=expected)
    # A process that ends before the deletion leaves a conversation that counts as missing.
    ended: Any = SimpleNamespace(load_or_new=store.load_or_new, save=store.save, delete=lambda id: None)
    await StoreConversations(ended).delete(record.conversation_id)
    assert await one.load(record.conversation_id) is None and store.list()
    with pytest.raises(ConversationConflict):
        await other.write_record(record, expected_revision=record.revision)
    await one.save(Conversation(conversation_id=record.conversation_id))
    await one.delete(record.conversation_id)
    assert store.list() == []


def test_a_client_without_state_continues_its_conversation() -> None:
    """Pydantic AI makes up a conversation's id and new times for a history that a client passes."""
    model, history, repeated = Answers(), list[ModelMessage](), 0
    for n in range(20):
        made = model.agent.run_sync(f"Question {n}?", message_history=history).all_messages()
        history = ModelMessagesTypeAdapter.validate_json(dumped(made))
        for at, one in enumerate(history):
            history[at] = dataclasses.replace(one, conversation_id=None, run_id=None)
            for part in one.parts:
                if hasattr(part, "timestamp"):
                    part.timestamp = part.timestamp.replace(year=2000 + n)
        repeated += bool(model.planned.plan and model.planned.plan.repeated)
    assert len(model.planned._histories._all) == 1 and repeated > 15


@pytest.mark.parametrize("native", [True, False])
def test_the_schema_of_an_output_is_counted(native: bool) -> None:
    from pydantic import BaseModel, Field
    from pydantic_ai import NativeOutput
    from pydantic_ai.profiles import ModelProfile

    class Answer(BaseModel):
        text: str = Field(description="The text. " * 90)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        call = ToolCallPart(info.output_tools[0].name, {"text": "Yes."}) if info.output_tools else None
        return ModelResponse([call or TextPart('{"text": "Yes."}')])

    planned = ContextWindow(MANAGER, prompt_budget=BUDGET)
    output: Any = NativeOutput(Answer) if native else Answer
    model = FunctionModel(answer, profile=ModelProfile(supports_json_schema_output=True))
    assert Agent(model, output_type=output, capabilities=[planned]).run_sync("Well?").output.text == "Yes."
    assert planned.plan is not None and planned.plan.estimated_tokens_total > 200
