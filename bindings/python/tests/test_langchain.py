"""LangChain with its real classes: an agent with tools, its own middlewares, the drop-in replacements."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

pytest.importorskip("langchain")
from context_window import Manager, _wire
from context_window.langchain import (
    ContextWindowCompressor,
    ContextWindowMiddleware,
    TokenCounter,
    digest,
    trim_messages,
)
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as as_tool
from langgraph.checkpoint.memory import InMemorySaver
from support import same_as_rust, tool, valid_anthropic, valid_openai

BUDGET = 1_500


@as_tool
def look(what: str) -> str:
    """Looks something up."""
    return f"found {what} " * 30


class Fake(BaseChatModel):
    """A model that calls two tools at once for each question, then answers. It rejects more than `window`
    messages.
    """

    seen: list[list[BaseMessage]] = []
    window: int = 10_000
    reports: bool = True

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        if len(messages) > self.window:
            raise ValueError(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
            )
        self.seen.append(list(messages))
        number = len(self.seen)
        used = {"input_tokens": 900, "output_tokens": 5, "total_tokens": 905} if self.reports else None
        reply = AIMessage(f"Answer {number}.", usage_metadata=cast(Any, used))
        if isinstance(messages[-1], HumanMessage):
            calls = [{"id": f"{name}{number}", "name": "look", "args": {"what": f"{name}{number}"}} for name in "ab"]
            reply = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def wire(messages: list[BaseMessage]) -> list[dict[str, Any]]:
    return [_wire.langchain(one) for one in messages]


def check(model: Fake, history: list[BaseMessage], manager: Manager, budget: int, fewest: int) -> None:
    """Checks that requests are valid and within the budget, that messages were dropped, and that the
    history's objects were sent.
    """
    own = {id(one) for one in history}
    sizes = []
    for sent in model.seen:
        valid_openai(wire(sent))
        assert manager.count_messages(wire(sent)) <= budget
        sizes.append(len(sent))
        assert any(isinstance(one, HumanMessage) for one in sent)
    assert len(sizes) >= fewest and max(sizes) < len(history) / 2
    assert sum(id(one) in own for one in model.seen[-1]) >= len(model.seen[-1]) - 1


@pytest.mark.parametrize("kind", ["sync", "async", "checkpointer"])
async def test_an_agent_of_60_turns_with_tools(kind: str) -> None:
    model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
    saver = InMemorySaver() if kind == "checkpointer" else None
    agent = create_agent(model, [look], middleware=[middleware], system_prompt="You are brief.", checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "one"}}
    history: list[AnyMessage] = []
    for turn in range(60):
        question = HumanMessage(f"Question {turn}?")
        given = {"messages": [question] if saver else [*history, question]}
        before = [copy.deepcopy(one) for one in history]
        answered = await agent.ainvoke(given, config) if kind == "async" else agent.invoke(given, config)
        history = answered["messages"]
        assert [one.content for one in history[: len(before)]] == [one.content for one in before], (
            "the history is untouched"
        )
    assert len(history) == 60 * 5 and [one.type for one in history[:5]] == ["human", "ai", "tool", "tool", "ai"]
    check(model, history if saver is None else model.seen[-1] * 99, middleware.manager, BUDGET, 120)
    assert model.seen[-1][0] == SystemMessage("You are brief.")
    plan = middleware.plan
    assert plan is not None and plan.excluded and plan.estimated_tokens_total <= BUDGET
    assert len(middleware._histories._all) == 1, "one conversation is kept once"


def test_plans_are_those_of_rust() -> None:
    if tool() is None:
        pytest.skip("plan-inspect is not built")
    model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
    compared = []

    class Compare(ContextWindowMiddleware):
        """A middleware that compares each plan with Rust's before its reply is stored."""

        def _turn(self, request: Any) -> Any:
            turn = super()._turn(request)
            same_as_rust(self.manager, turn.history.log, turn.plan, **turn._request)
            compared.append(turn.plan.estimated_tokens_total)
            return turn

    middleware = Compare("gpt-4o", prompt_budget=BUDGET)
    agent = create_agent(model, [look], middleware=[middleware], system_prompt="You are brief.")
    history: list[AnyMessage] = []
    for turn in range(6):
        history = agent.invoke({"messages": [*history, HumanMessage(f"Question {turn}?")]})["messages"]
    assert len(compared) == 12


def test_another_history_another_prompt_another_conversation() -> None:
    model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
    agent = create_agent(model, [look], middleware=[middleware], system_prompt="You are brief.")
    one = agent.invoke({"messages": [HumanMessage("One?")]})["messages"]
    two = agent.invoke({"messages": [HumanMessage("Two?")]})["messages"]
    one = agent.invoke({"messages": [*one, HumanMessage("One again?")]})["messages"]
    assert [m.text for m in model.seen[-1] if m.type == "human"] == ["One?", "One again?"]
    edited = [HumanMessage("One, edited?"), *one[1:5], HumanMessage("And?")]
    agent.invoke({"messages": edited})
    assert [m.text for m in model.seen[-1] if m.type == "human"] == ["One, edited?", "And?"]
    shorter = create_agent(model, [look], middleware=[middleware], system_prompt="You are long.")
    shorter.invoke({"messages": [*two, HumanMessage("Two again?")]})
    assert [m.text for m in model.seen[-1]][0] == "You are long."
    assert "brief" not in str(model.seen[-1])


def test_notes_documents_and_summaries_are_included() -> None:
    model, asked = Fake(seen=[]), []

    def documents(request: Any) -> list[Document]:
        asked.append(request)
        return [Document("Refunds take 5 days.", id="refunds", metadata={"score": 0.9, "source": "faq"})]

    def summarise(job: Any) -> str:
        return f"They asked {len(job.archived_ids)} things."

    manager = Manager("gpt-4o", config={"compaction": {"percent": 60, "target": 30}})
    limits = {"model_context_len": 2_500, "max_completion_tokens": 200, "safety_buffer": 0}
    middleware = ContextWindowMiddleware(manager, documents=documents, summarise=summarise, **limits)
    agent = create_agent(model, [look], middleware=[middleware], system_prompt="You are brief.")
    history: list[AnyMessage] = [HumanMessage("Question?")]
    config: Any = {"configurable": {"thread_id": "one"}}
    middleware.conversation("one").pin("tone", "Rhyme.")
    for turn in range(20):
        history = [*agent.invoke({"messages": history}, config)["messages"], HumanMessage(f"Question {turn}?")]
    texts = [[one.text for one in sent] for sent in model.seen]
    assert texts[0][0] == "You are brief.\n\nRhyme."
    assert all(any("Refunds take 5 days." in text for text in sent) for sent in texts) and asked
    assert any("They asked" in text for text in texts[-1])
    assert len(history) == 20 * 5 + 1
    for sent in model.seen:
        valid_openai(wire(sent))


def test_a_refused_request_is_sent_smaller() -> None:
    model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=6_000)
    agent = create_agent(model, [look], middleware=[middleware])
    history: list[AnyMessage] = []
    for turn in range(12):
        history = agent.invoke({"messages": [*history, HumanMessage(f"Question {turn}?")]})["messages"]
    model.window = len(model.seen[-1]) - 10
    agent.invoke({"messages": [*history, HumanMessage("Last?")]})
    assert len(model.seen[-1]) <= model.window
    model.window = 0
    with pytest.raises(ValueError, match="maximum context length"):
        agent.invoke({"messages": [*history, HumanMessage("Too much?")]})


def test_its_own_summarization_counts_with_ours() -> None:
    model, counter = Fake(seen=[]), TokenCounter("gpt-4o")
    theirs = SummarizationMiddleware(
        model, trigger=("tokens", 1_200), keep=("messages", 6), token_counter=counter, summarizer=digest("gpt-4o")
    )
    agent = create_agent(model, [look], middleware=[theirs])
    history: list[AnyMessage] = []
    for turn in range(12):
        history = agent.invoke({"messages": [*history, HumanMessage(f"Question {turn}?")]})["messages"]
    assert len(history) < 30 and "Question" in history[0].text
    messages = [HumanMessage("Hello"), AIMessage("Hi"), HumanMessage("Hello")]
    assert counter(messages) == Manager("gpt-4o").count_messages(wire(messages))
    assert counter(messages[1:]) < counter(messages) < counter(messages, tools=[look])


def test_trim_messages_is_a_drop_in() -> None:
    messages: list[BaseMessage] = [SystemMessage("You are brief.")]
    for turn in range(50):
        messages += [
            HumanMessage(f"Question {turn}?"),
            AIMessage("", tool_calls=[{"id": f"c{turn}", "name": "look", "args": {}}]),
            ToolMessage("found " * 40, tool_call_id=f"c{turn}"),
            AIMessage(f"Answer {turn}."),
        ]
    messages.append(HumanMessage("And now?"))
    trimmed = trim_messages(messages, max_tokens=600, token_counter="gpt-4o", include_system=True)
    assert trimmed[0] is messages[0] and trimmed[-1] is messages[-1] and len(trimmed) < 50
    valid_openai(wire(trimmed))
    assert TokenCounter("gpt-4o")(trimmed) <= 600
    assert all(any(one is other for other in messages) for one in trimmed)
    assert trim_messages(messages[:2], max_tokens=600, token_counter="gpt-4o") == messages[:2]
    without = trim_messages(
        messages, max_tokens=600, token_counter=Manager("gpt-4o"), start_on="human", end_on=("human", "tool")
    )
    assert without[0].type == "human" and not any(one.type == "system" for one in without)
    chain = trim_messages(max_tokens=600, token_counter="gpt-4o", include_system=True)
    assert [one.content for one in chain.invoke(messages)] == [one.content for one in trimmed]
    first = trim_messages(messages, max_tokens=300, token_counter="gpt-4o", strategy="first")
    assert first[1] == messages[1] and first[-1] != messages[-1]
    assert trim_messages([("human", "Hello")], max_tokens=50, token_counter="gpt-4o")[0].content == "Hello"
    assert trim_messages(messages, max_tokens=5, token_counter=len)[-1] == messages[-1]


def test_documents_are_compressed_whole() -> None:
    documents = [Document("word " * 50, id=f"d{at}", metadata={"score": at / 10}) for at in range(10)]
    kept = ContextWindowCompressor(manager="gpt-4o", budget=200).compress_documents(documents, "What?")
    assert 1 <= len(kept) <= 3 and kept[0] is documents[9]
    same = [Document(f"text {at}", metadata={}) for at in range(3)]
    assert list(ContextWindowCompressor(manager="gpt-4o", budget=500).compress_documents(same, "What?")) == same


def test_media_of_langchain_are_counted_as_media() -> None:
    image = {"type": "image", "base64": "A" * 40_000, "mime_type": "image/png"}
    known = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 40_000}}
    counter = TokenCounter("gpt-4o")
    assert counter([HumanMessage([image])]) == counter([HumanMessage([known])]) < 2_000


def test_an_invalid_summary_stops_nothing() -> None:
    manager = Manager("gpt-4o", config={"compaction": {"percent": 60, "target": 30}})
    limits = {"model_context_len": 2_500, "max_completion_tokens": 200, "safety_buffer": 0}
    model, middleware = Fake(seen=[]), ContextWindowMiddleware(manager, summarise=lambda job: " ", **limits)
    agent = create_agent(model, [look], middleware=[middleware])
    history: list[AnyMessage] = []
    for turn in range(12):
        history = agent.invoke({"messages": [*history, HumanMessage(f"Question {turn}?")]})["messages"]
    assert len(history) == 60


def test_requests_are_valid_for_anthropic_too() -> None:
    """Formats the requests with LangChain's own integration."""
    claude = pytest.importorskip("langchain_anthropic.chat_models")
    # Synthetic usage reports would calibrate the counter, which is an estimate for this model.
    model, middleware = Fake(seen=[], reports=False), ContextWindowMiddleware("claude-sonnet-4-5", prompt_budget=BUDGET)
    agent = create_agent(model, [look], middleware=[middleware], system_prompt="You are brief.")
    history: list[AnyMessage] = []
    for turn in range(60):
        history = agent.invoke({"messages": [*history, HumanMessage(f"Question {turn}?")]})["messages"]
    for sent in model.seen:
        system, messages = claude._format_messages(sent, model="claude-sonnet-4-5")
        valid_anthropic(messages)
        assert "You are brief." in str(system)
    assert max(map(len, model.seen)) < len(history) / 2
