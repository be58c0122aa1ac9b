"""LlamaIndex with its real classes: a FunctionAgent of 60 turns, a chat engine, the memory, the
postprocessor.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

pytest.importorskip("llama_index.core")
from context_window import Manager, Plan
from context_window._llama_index_messages import to_wire
from context_window.llama_index import ContextWindowLLM, ContextWindowMemory, ContextWindowPostprocessor
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms import types as li
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.memory import BaseMemory
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from support import same_as_rust, tool, valid_openai

# LlamaIndex's workflows read every attribute of an agent with `inspect`, four deprecated ones included, in each run.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning:inspect")
BUDGET = 1_500
MANAGER = Manager("gpt-4o")
REFUSED = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."


def look(what: str) -> str:
    """Looks something up."""
    return f"found {what} " * 30


LOOK = FunctionTool.from_defaults(look)
TOOLS = [LOOK.metadata.to_openai_tool()]


class Model:
    """A model that calls two tools at once for each question, then answers. It records its requests and
    calls `last`.
    """

    def __init__(self, window: int = 10_000) -> None:
        self.seen: list[list[ChatMessage]] = []
        self.window = window
        self.last: Any = None
        self.llm = MockFunctionCallingLLM(response_generator=self.answer)

    def answer(self, messages: list[ChatMessage], **kwargs: Any) -> ChatMessage:
        if len(messages) > self.window:
            raise ValueError(REFUSED)
        self.seen.append(list(messages))
        if self.last is not None:
            self.last()
        number = len(self.seen)
        if kwargs.get("tools") and messages[-1].role == MessageRole.USER:
            ids = [f"{name}{number}" for name in "ab"]
            calls = [ToolCallBlock(tool_call_id=id, tool_name="look", tool_kwargs={"what": id}) for id in ids]
            return ChatMessage(role="assistant", blocks=calls)
        return ChatMessage(role="assistant", content=f" Answer {number}. ")


def newest(planned: ContextWindowLLM | ContextWindowMemory) -> Any:
    """Returns the conversation of the newest request."""
    return list(planned._planner._all.values())[-1]


def wire(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    return [one for message in messages for one in to_wire(message)]


def check(model: Model, history: list[ChatMessage], fewest: int, tools: Any = TOOLS) -> None:
    """Checks that requests are valid and within the budget, that most messages were dropped, and that the
    history's objects were sent.
    """
    assert len(model.seen) >= fewest
    own = {id(one) for one in history}
    for sent in model.seen:
        valid_openai(wire(sent))
        assert MANAGER.count_messages(wire(sent), tools=tools) <= BUDGET
    assert max(map(len, model.seen)) < len(history) / 2
    assert all(id(one) in own for one in model.seen[-1] if one.role not in (MessageRole.SYSTEM,))


def planned(by: ContextWindowLLM | ContextWindowMemory) -> Plan:
    assert by.plan is not None
    return by.plan


def loop(llm: ContextWindowLLM, history: list[ChatMessage], stream: bool) -> None:
    """Runs an agent's loop with a model, without `async`."""
    while True:
        given = {"chat_history": [ChatMessage(role="system", content="You are brief."), *history]}
        ask = llm.stream_chat_with_tools if stream else llm.chat_with_tools
        answered: Any = ask([LOOK], **given)
        response = [*answered][-1] if stream else answered
        history.append(response.message)
        calls = llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
        for call in calls:
            said = {"tool_call_id": call.tool_id}
            history.append(ChatMessage(role="tool", content=look(**call.tool_kwargs), additional_kwargs=said))
        if not calls:
            return


@pytest.mark.parametrize("kind", ["agent", "streaming agent", "sync", "sync stream"])
async def test_60_turns_with_a_tool(kind: str) -> None:
    model = Model()
    llm = ContextWindowLLM(model.llm, MANAGER, prompt_budget=BUDGET)
    memory = ContextWindowMemory.from_defaults(llm=llm)
    agent = FunctionAgent(llm=llm, tools=[LOOK], system_prompt="You are brief.", streaming=kind == "streaming agent")
    history: list[ChatMessage] = []
    for turn in range(60):
        before = [(one, copy.deepcopy(one)) for one in history]
        if turn == 59 and tool() is not None:
            log = newest(llm).log
            model.last = lambda: same_as_rust(MANAGER, log, planned(llm), tools=TOOLS, prompt_budget=BUDGET)
        if "agent" in kind:
            await agent.run(f"Question {turn}?", memory=memory)
            history = memory.get_all()
        else:
            history.append(ChatMessage(role="user", content=f"Question {turn}?"))
            loop(llm, history, "stream" in kind)
        assert all(one is now and was == now for (one, was), now in zip(before, history)), "the history is untouched"
    assert len(history) == 60 * 5
    assert [one.role.value for one in history[:5]] == ["user", "assistant", "tool", "tool", "assistant"]
    check(model, history, 120)
    assert llm.plan is not None and llm.plan.repeated is not None and len(llm._planner._all) == 1


@pytest.mark.parametrize("kind", ["chat", "achat", "stream_chat", "astream_chat"])
async def test_a_chat_engine_with_the_memory_alone(kind: str) -> None:
    model = Model()
    memory = ContextWindowMemory.from_defaults(manager="gpt-4o", prompt_budget=BUDGET)
    engine = SimpleChatEngine.from_defaults(llm=model.llm, memory=memory, system_prompt="You are brief. " * 20)
    for turn in range(60):
        answered = getattr(engine, kind)(f"Question {turn}? " * 15)
        if kind[0] == "a":
            answered = await answered
        if kind == "stream_chat":
            assert "".join(answered.response_gen)
        elif kind == "astream_chat":
            assert "".join([text async for text in answered.async_response_gen()])
    assert len(memory.get_all()) == 120
    check(model, memory.get_all(), 60, None)
    if tool() is not None:
        sent = memory.get()
        assert sent[-1] is memory.get_all()[-1]
        same_as_rust(MANAGER, newest(memory).log, planned(memory), prompt_budget=BUDGET)


async def test_a_model_in_a_chat_engine_whose_streams_are_written_into_their_last_message() -> None:
    model = Model()
    llm = ContextWindowLLM(model.llm, MANAGER, prompt_budget=BUDGET)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=ContextWindowMemory.from_defaults(llm=llm))
    for turn in range(60):
        answered = engine.stream_chat(f"Question {turn}? " * 15)
        assert "".join(answered.response_gen)
        log = newest(llm).log.messages()
    assert model.seen[-1][-2].content == "Answer 59." and log[-3]["content"] == "Answer 59.", "the text as it is now"
    check(model, engine.chat_history, 60, None)


async def test_a_refused_request_is_sent_smaller() -> None:
    model = Model(window=9)
    llm = ContextWindowLLM(model.llm, MANAGER, retries=6, prompt_budget=BUDGET)
    history = [ChatMessage(role=role, content=f"{role} {at}") for at in range(20) for role in ("user", "assistant")]
    given = [*history, ChatMessage("And now?")]
    assert llm.chat(given).message.content and (await llm.achat(given)).message.content
    assert list(llm.stream_chat(given)) and [one async for one in await llm.astream_chat(given)]
    assert len(model.seen) == 4 and all(2 <= len(sent) <= 9 and sent[-1] is given[-1] for sent in model.seen)
    model.window = 0
    with pytest.raises(ValueError, match="maximum context length"):
        llm.chat(given)

    def breaks(*_: Any, **__: Any) -> Any:
        yield ChatMessage(role="assistant", content="I ")
        raise ValueError(REFUSED)

    async def abreaks(*_: Any, **__: Any) -> Any:
        for one in breaks():
            yield one

    broken = ContextWindowLLM(MockFunctionCallingLLM(response_generator=breaks), MANAGER, prompt_budget=BUDGET)
    begun = broken.stream_chat(given)
    assert next(begun).message.content == "I "
    with pytest.raises(ValueError, match="maximum context length"):
        next(begun)
    broken.llm.response_generator = lambda *_, **__: abreaks()  # type: ignore[attr-defined]
    abegun = await broken.astream_chat(given)
    assert (await anext(abegun)).message.content == "I "
    with pytest.raises(ValueError, match="maximum context length"):
        await anext(abegun)


def test_a_conversation_that_begins_alike_is_asked_while_another_one_is_refused() -> None:
    model = Model(window=5)
    llm = ContextWindowLLM(model.llm, MANAGER, retries=6, prompt_budget=BUDGET)
    one, other = ([*[ChatMessage(f"{name} {at}") for at in range(8)], ChatMessage("Go on.")] for name in "ab")
    others = [other]

    def answer(messages: list[ChatMessage], **given: Any) -> ChatMessage:
        if others:
            llm.chat(others.pop())
        return model.answer(messages, **given)

    model.llm.response_generator = answer
    llm.chat(one)
    for sent, own in zip(model.seen, (other, one), strict=True):
        assert {id(message) for message in sent} <= {id(message) for message in own} and 2 <= len(sent) <= 5


def test_edited_and_rewound_histories_two_conversations_and_another_system_text() -> None:
    model = Model()
    llm = ContextWindowLLM(model.llm, MANAGER, prompt_budget=300)
    system = ChatMessage(role="system", content="You are brief.")
    one, other = ([ChatMessage("Hello?")] for _ in range(2))
    for turn in range(30):
        for history in (one, other):
            history.append(llm.chat([system, *history]).message)
            assert model.seen[-1][0] is system and model.seen[-1][-1] is history[-2]
            own = {id(message) for message in history}
            assert all(id(message) in own for message in model.seen[-1][1:]), "nothing of the other conversation"
            history.append(ChatMessage(f"Question {turn} of {id(history)}? " * 4))
    assert 2 <= len(llm._planner._all) <= 3 and len(model.seen[-1]) < 20
    del one[40:]
    one[-1] = ChatMessage("Another question?")
    llm.chat([system, *one])
    assert model.seen[-1][-1] is one[-1] and model.seen[-1][-2] is one[-2]
    changed = ChatMessage(role="system", content="You are long.")
    second = ChatMessage(role="system", content="It is Monday.")
    llm.chat([changed, second, *one])
    assert model.seen[-1][:2] == [changed, second] and all(map(lambda a, b: a is b, model.seen[-1], [changed, second]))
    ContextWindowLLM(model.llm, MANAGER, focus="say please").chat([changed, second, *one])
    told = model.seen[-1][0].content or ""
    assert told.startswith("You are long.\n") and "say please" in told and changed.content == "You are long."


def test_the_memory_is_saved_set_and_reset() -> None:
    memory = ContextWindowMemory.from_defaults([ChatMessage("Hello?")], manager=MANAGER, prompt_budget=100)
    assert isinstance(memory, BaseMemory)
    memory.put_messages([ChatMessage(role=r, content="word " * 30) for _ in range(5) for r in ("assistant", "user")])
    for again in (pickle.loads(pickle.dumps(memory)), ContextWindowMemory.from_dict(memory.to_dict())):
        assert again.get_all() == memory.get_all() and again.get() == memory.get() and len(again.get()) < 6
    assert MANAGER.count_messages(wire(memory.get(initial_token_count=40))) <= 52
    model = ContextWindowLLM(MockFunctionCallingLLM(), "gpt-4o", prompt_budget=9)
    again = pickle.loads(pickle.dumps(model))
    assert again.request == {"prompt_budget": 9} and again.manager.name == "gpt-4o" and again.response_generator
    memory.set([ChatMessage("New.")])
    assert [one.content for one in memory.get()] == ["New."]
    memory.reset()
    assert memory.get() == memory.get_all() == []


async def test_a_state_that_the_agent_writes_into_the_newest_message() -> None:
    model = Model()
    memory = ContextWindowMemory.from_defaults(manager=MANAGER, prompt_budget=BUDGET)
    agent = FunctionAgent(llm=model.llm, tools=[LOOK], initial_state={"mood": "good " * 40})
    for turn in range(6):
        await agent.run(f"Question {turn}?", memory=memory)
    assert "good good" in str(memory.get_all()[0].content)
    assert MANAGER.count_messages(wire(memory.get())) <= BUDGET, "counted as it is now"


def test_changed_messages_are_copies() -> None:
    calls = [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}] * 2
    twice = ChatMessage(role="assistant", additional_kwargs={"tool_calls": calls})
    blocks = [ThinkingBlock(content="hm"), *[ToolCallBlock(tool_call_id="y", tool_name="f", tool_kwargs="{}")] * 2]
    results = [ChatMessage(role="tool", content="r", additional_kwargs={"tool_call_id": id}) for id in "xxyy"]
    given = [ChatMessage("q"), twice, *results[:2], ChatMessage(role="assistant", blocks=blocks), *results[2:]]
    model = Model()
    ContextWindowLLM(model.llm, MANAGER, prompt_budget=BUDGET).chat(given)
    valid_openai(wire(model.seen[-1]))
    assert [one["id"] for one in model.seen[-1][1].additional_kwargs["tool_calls"]] == ["x", "x#2"]
    assert [block.block_type for block in model.seen[-1][4].blocks] == ["tool_call"] * 2, "gpt-4o takes no reasoning"
    assert twice.additional_kwargs["tool_calls"] == calls and len(given[4].blocks) == 3


@pytest.mark.parametrize("texts", [["word " * 3_000], ["word " * 3_000, "end"]])
def test_a_result_that_does_not_fit_is_sent_shortened(texts: list[str]) -> None:
    blocks = [TextBlock(text=text) for text in texts]
    call = ToolCallBlock(tool_call_id="z", tool_name="look", tool_kwargs={})
    result = ChatMessage(role="tool", blocks=blocks, additional_kwargs={"tool_call_id": "z"})
    model, before = Model(), copy.deepcopy(result)
    given = [ChatMessage("q"), ChatMessage(role="assistant", blocks=[call]), result]
    ContextWindowLLM(model.llm, MANAGER, prompt_budget=400).chat(given)
    valid_openai(wire(model.seen[-1]))
    assert str(model.seen[-1][-1].content).startswith("word word") and result == before
    assert 200 < MANAGER.count_messages(wire(model.seen[-1])) <= 400


def test_blocks_on_the_wire() -> None:
    image = li.ImageBlock(image=b"\x89PNG\r\n\x1a\n0000", detail="low")
    pdf = li.DocumentBlock(data=b"%PDF-1.4", title="t", document_mimetype="application/pdf")
    cited = li.CitableBlock(title="c", source="s", content=[TextBlock(text="cited")])
    said = ChatMessage(role="user", blocks=[TextBlock(text="a"), image, pdf, cited])
    kinds = [part["type"] for part in to_wire(said)[0]["content"]]
    assert kinds == ["text", "image_url", "file", "text"]
    assert to_wire(said, "anthropic")[0]["content"][2]["type"] == "document"
    assert ContextWindowMemory.from_defaults([said], manager="claude-sonnet-4-5").get()[0] is said
    sealed = ThinkingBlock(content="hm", additional_information={"signature": "s"})
    assert to_wire(ChatMessage(role="assistant", blocks=[sealed]))[0]["content"][0]["signature"] == "s"
    call = ToolCallBlock(tool_call_id="z", tool_name="look", tool_kwargs={})
    result = ChatMessage(role="tool", blocks=[said.blocks[0], image], additional_kwargs={"tool_call_id": "z"})
    given, model = [ChatMessage("q"), ChatMessage(role="assistant", blocks=[sealed, call]), result], Model()
    ContextWindowLLM(model.llm, "claude-sonnet-4-5").chat(given)
    assert all(sent is own for sent, own in zip(model.seen[-1], given, strict=True)), "Claude takes all of it"
    ContextWindowLLM(model.llm, MANAGER).chat(given)
    sent = model.seen[-1][-1].blocks
    assert sent[0] is said.blocks[0] and isinstance(sent[1], TextBlock), "gpt-4o takes no image in a result"
    selection = {"tool_id": "i", "tool_name": "f", "tool_kwargs": {"a": "é"}}
    called = to_wire(ChatMessage(role="assistant", additional_kwargs={"tool_calls": [selection]}))[0]["tool_calls"]
    assert called == [{"id": "i", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}}]


def test_nodes_within_a_budget_the_best_first() -> None:
    nodes = [NodeWithScore(node=TextNode(text=f"node {at} " * 10), score=at / 10) for at in range(10)]
    kept = ContextWindowPostprocessor(manager="gpt-4o", budget=150).postprocess_nodes(nodes, query_str="Which?")
    assert 2 <= len(kept) <= 4 and all(one is nodes[9 - at] for at, one in enumerate(kept))
    assert MANAGER.count("".join(one.text for one in kept)) <= 150


def test_a_model_that_calls_no_tools() -> None:
    llm = ContextWindowLLM(MockLLM(max_tokens=2), MANAGER, prompt_budget=BUDGET)
    assert llm.chat([ChatMessage("Hello?")]).message.content == "text text" and llm.complete("x").text == "text text"
    assert llm.max_tokens == 2 and not llm.metadata.is_function_calling_model
    with pytest.raises(TypeError, match="calls no tools"):
        llm.chat_with_tools([LOOK], "Hello?")
