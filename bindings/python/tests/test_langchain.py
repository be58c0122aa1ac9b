"""LangChain with its real classes: an agent with tools, its own middlewares, the drop-in replacements."""

from __future__ import annotations

import copy
import pickle
from typing import Any, cast

import pytest

pytest.importorskip("langchain")
from context_window import ContextWindowWarning, Manager, PromptTooLargeError, _wire
from context_window._langchain_messages import is_same_message
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
    unscored = [Document(f"text {at}", metadata={}) for at in range(3)]
    assert list(ContextWindowCompressor(manager="gpt-4o", budget=500).compress_documents(unscored, "What?")) == unscored


def test_media_of_langchain_are_counted_as_media() -> None:
    image = {"type": "image", "base64": "A" * 40_000, "mime_type": "image/png"}
    known = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 40_000}}
    counter = TokenCounter("gpt-4o")
    assert counter([HumanMessage([image])]) == counter([HumanMessage([known])]) < 2_000


@pytest.mark.parametrize("kind", ["empty", "too long", "raises", "no string", "async"])
async def test_a_summary_that_fails_is_warned_of_and_not_requested_again_at_once(kind: str) -> None:
    manager = Manager("gpt-4o", config={"compaction": {"percent": 60, "target": 30}})
    asked: list[Any] = []

    def summarise(job: Any) -> Any:
        asked.append(job)
        if kind == "raises":
            raise OSError("the model is away")
        return {"empty": " ", "too long": "word " * 20_000, "no string": None}[kind]

    async def asynchronous(job: Any) -> str:
        asked.append(job)
        raise OSError("the model is away")

    model = Fake(seen=[])
    middleware = ContextWindowMiddleware(
        manager,
        summarise=asynchronous if kind == "async" else summarise,
        model_context_len=2_500,
        max_completion_tokens=200,
        safety_buffer=0,
    )
    agent = create_agent(model, [look], middleware=[middleware])
    history: list[AnyMessage] = []
    with pytest.warns(ContextWindowWarning, match="no summary: .*is requested after 16 requests") as warned:
        for turn in range(40):
            given: Any = {"messages": [*history, HumanMessage(f"Question {turn}?")]}
            history = (await agent.ainvoke(given) if kind == "async" else agent.invoke(given))["messages"]
    assert len(history) == 200 and len(model.seen) == 80
    assert 4 <= len(asked) == len([one for one in warned if one.category is ContextWindowWarning]) <= 7


async def test_documents_and_summaries_may_be_asynchronous() -> None:
    async def documents(request: Any) -> list[Any]:
        return [("refunds", 0.9, "Refunds take 5 days.")]

    async def summarise(job: Any) -> str:
        return "They asked much."

    manager = Manager("gpt-4o", config={"compaction": {"percent": 60, "target": 30}})
    middleware = ContextWindowMiddleware(
        manager,
        documents=documents,
        summarise=summarise,
        model_context_len=2_500,
        max_completion_tokens=200,
        safety_buffer=0,
    )
    model = Fake(seen=[])
    agent = create_agent(model, [look], middleware=[middleware])
    history: list[AnyMessage] = []
    for turn in range(12):
        history = (await agent.ainvoke({"messages": [*history, HumanMessage(f"Question {turn}?")]}))["messages"]
    assert all("Refunds take 5 days." in str(sent) for sent in model.seen) and "They asked much." in str(model.seen[-1])
    with pytest.raises(TypeError, match="documents: this function is asynchronous"):
        agent.invoke({"messages": [HumanMessage("Question?")]})


@pytest.mark.parametrize("kind", ["tool", "provider", "class"])
def test_the_schema_of_a_structured_output_is_counted(kind: str) -> None:
    from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
    from pydantic import BaseModel, Field

    class Answer(BaseModel):
        """An answer."""

        text: str = Field(description="The text of the answer. " * 60)

    class Structured(Fake):
        def _generate(self, messages: Any, *rest: Any, **more: Any) -> ChatResult:
            self.seen.append(list(messages))
            calls: Any = [{"id": f"c{len(self.seen)}", "name": "Answer", "args": {"text": "Yes."}}]
            reply = AIMessage('{"text": "Yes."}') if kind == "provider" else AIMessage("", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=reply)])

    formats: dict[str, Any] = {"tool": ToolStrategy(Answer), "provider": ProviderStrategy(Answer), "class": Answer}
    model, middleware = Structured(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
    agent: Any = create_agent(model, [], middleware=[middleware], response_format=formats[kind])
    history: list[AnyMessage] = [one for at in range(60) for one in (HumanMessage(f"q {at} " * 9), AIMessage("a"))]
    assert agent.invoke({"messages": [*history, HumanMessage("And?")]})["structured_response"].text == "Yes."
    assert middleware.plan is not None and middleware.plan.estimated_tokens_total <= BUDGET
    assert middleware.plan.estimated_tokens_total - middleware.manager.count_messages(wire(model.seen[-1])) > 250


def dicts(messages: list[Any]) -> list[Any]:
    """Returns messages as a client without state keeps them: dicts of OpenAI Chat without ids."""
    return [_wire.langchain(one) for one in messages]


def stay(seen: list[list[BaseMessage]]) -> int:
    """Returns the number of prompts that begin with the whole previous prompt."""
    texts = [[str(one) for one in wire(sent)] for sent in seen]
    return sum(later[: len(sooner)] == sooner for sooner, later in zip(texts, texts[1:]))


def test_a_client_without_state_has_the_prompts_of_one_with_a_checkpointer() -> None:
    found: dict[str, Any] = {}
    for kind in ("checkpointer", "dicts", "random threads"):
        model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
        saver = InMemorySaver() if kind == "checkpointer" else None
        agent = create_agent(model, [look], middleware=[middleware], system_prompt="You are brief.", checkpointer=saver)
        history: list[Any] = []
        for turn in range(30):
            question = {"role": "user", "content": f"Question {turn}?"}
            thread = f"thread {turn}" if kind == "random threads" else "one"
            config: Any = {"configurable": {"thread_id": thread}} if kind != "dicts" else None
            answered = agent.invoke({"messages": [question] if saver else [*history, question]}, config)["messages"]
            history = dicts(answered)
        found[kind] = stay(model.seen), [wire(sent) for sent in model.seen]
        assert len(middleware._histories._all) == 1
    assert found["checkpointer"] == found["dicts"] == found["random threads"] and found["dicts"][0] > 40


def test_a_conversation_with_pins_is_continued_by_its_key_alone() -> None:
    model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
    agent = create_agent(model, [], middleware=[middleware])
    middleware.conversation("one").pin("tone", "Rhyme.")
    history = agent.invoke({"messages": [HumanMessage("Hello?")]}, {"configurable": {"thread_id": "one"}})["messages"]
    more: Any = {"messages": [*history, HumanMessage("And?")]}
    for config, has_note in ((None, False), ({"configurable": {"thread_id": "two"}}, False)):
        agent.invoke(more, config)  # type: ignore[arg-type]
        assert ("Rhyme." in str(model.seen[-1])) is has_note
    agent.invoke(more, {"configurable": {"thread_id": "one"}})
    assert "Rhyme." in str(model.seen[-1])


def test_blocks_of_a_system_message_are_kept_with_notes() -> None:
    model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
    blocks: list[Any] = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    agent = create_agent(model, [], middleware=[middleware], system_prompt=SystemMessage(blocks, name="rules"))
    middleware.conversation("one").pin("tone", "Rhyme.")
    agent.invoke({"messages": [HumanMessage("Hello?")]}, {"configurable": {"thread_id": "one"}})
    system = model.seen[-1][0]
    assert system.content == [*blocks, {"type": "text", "text": "Rhyme."}] and system.name == "rules"


def test_an_early_message_that_changes_is_kept_in_few_versions() -> None:
    model, middleware = Fake(seen=[]), ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET)
    agent = create_agent(model, [], middleware=[middleware])
    base = [one for at in range(100) for one in (HumanMessage(f"old {at} " * 9), AIMessage(f"answer {at}"))]
    config: Any = {"configurable": {"thread_id": "one"}}
    middleware.conversation("one").pin("tone", "Rhyme.")
    sizes = []
    for turn in range(30):
        agent.invoke({"messages": [HumanMessage(f"It is {turn}."), *base, HumanMessage("Well?")]}, config)
        sizes.append(len(middleware.conversation("one")))
        assert "Rhyme." in str(model.seen[-1])
    assert max(sizes) <= 5 * 203


def conversation(turns: int = 50) -> list[BaseMessage]:
    messages: list[BaseMessage] = [SystemMessage("You are brief.")]
    for turn in range(turns):
        calls: Any = [{"id": f"c{turn}", "name": "look", "args": {}}]
        messages += [HumanMessage(f"Question {turn}?"), AIMessage("", tool_calls=calls)]
        messages += [ToolMessage("found " * 40, tool_call_id=f"c{turn}"), AIMessage(f"Answer {turn}.")]
    return [*messages, HumanMessage("And now?")]


@pytest.mark.filterwarnings("ignore::context_window.ContextWindowWarning")
@pytest.mark.parametrize("include_system", [True, False])
@pytest.mark.parametrize("start_on", [None, "human"])
def test_trim_messages_never_returns_more_than_its_budget(include_system: bool, start_on: Any) -> None:
    """Compares with LangChain's own function and the same counter, at each budget."""
    from langchain_core.messages import trim_messages as theirs

    count = TokenCounter("gpt-4o")
    settings: Any = {"include_system": include_system, "start_on": start_on}
    histories = [conversation(6), [SystemMessage("rule " * 80), HumanMessage("Hello?")], [HumanMessage("word " * 99)]]
    histories += [conversation(3)[:-2], [SystemMessage("Be brief."), HumanMessage("word " * 99)], conversation(1)[:4]]
    for messages in histories:
        for budget in [*range(1, 60), *range(60, 700, 17)]:
            ours = trim_messages(messages, max_tokens=budget, token_counter="gpt-4o", **settings)
            own = theirs(messages, max_tokens=budget, token_counter=count, **settings)
            assert not ours or count(ours) <= budget, (budget, ours)
            if len(own) == len(messages):
                assert ours == own, "all of it fits"
            if not ours and count(own) <= budget:
                assert not any(isinstance(one, HumanMessage) for one in own), "no question fits"
            if own == messages[:1] and include_system and own[0].type == "system" and count(own) <= budget:
                assert ours[:1] == own


def test_trim_messages_that_do_not_fit_are_warned_of_or_raised() -> None:
    messages = [SystemMessage("Be brief."), HumanMessage("word " * 5_000)]
    settings: Any = {"max_tokens": 100, "token_counter": "gpt-4o"}
    with pytest.warns(ContextWindowWarning, match=r"need 5,0\d\d tokens.* is 100. The system message alone") as warned:
        assert trim_messages(messages, include_system=True, **settings) == messages[:1]
    assert warned[0].filename == __file__
    assert trim_messages.plan is not None and trim_messages.plan.overflow
    with pytest.warns(ContextWindowWarning, match="An empty list is returned"):
        assert trim_messages(messages, **settings) == []
    with pytest.warns(ContextWindowWarning, match="An empty list is returned"):
        assert trim_messages([SystemMessage("word " * 200), messages[1]], include_system=True, **settings) == []
    with pytest.raises(PromptTooLargeError) as error:
        trim_messages(messages, on_overflow="raise", **settings)
    assert error.value.plan is trim_messages.plan
    assert trim_messages(messages, on_overflow="send", **settings) == []
    chain = trim_messages(on_overflow="raise", **settings)
    with pytest.raises(PromptTooLargeError):
        chain.invoke(messages)


def test_trim_messages_refuses_what_theirs_refuses() -> None:
    untyped: Any = trim_messages
    messages = [HumanMessage("Hello")]
    for given in (messages, None):
        with pytest.raises(TypeError, match="'include_sytem'; did you mean 'include_system'"):
            untyped(given, max_tokens=9, token_counter="gpt-4o", include_sytem=True)
        with pytest.raises(TypeError, match="max_tokens is missing"):
            untyped(given, token_counter="gpt-4o")
        with pytest.raises(TypeError, match="token_counter is missing"):
            untyped(given, max_tokens=9)
        with pytest.raises(ValueError, match="Invalid token_counter shortcut 'invalid'"):
            untyped(given, max_tokens=9, token_counter="invalid")
        with pytest.raises(ValueError, match="on_overflow"):
            untyped(given, max_tokens=9, token_counter="gpt-4o", on_overflow="explode")
    assert untyped(messages, max_tokens=50, token_counter=len) == messages and untyped.plan is None
    assert pickle.loads(pickle.dumps(untyped)) is untyped
    assert trim_messages(messages, max_tokens=50, token_counter=Manager("my-own-model")) == messages


def test_an_agent_recalls_what_left_its_window() -> None:
    fake = Fake(seen=[], reports=False)
    middleware = ContextWindowMiddleware("gpt-4o", prompt_budget=BUDGET, recall=True)
    agent = create_agent(fake, tools=[look], middleware=[middleware], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "recall"}}
    agent.invoke({"messages": [("human", "My sister Ida moved to Trondheim last spring.")]}, config)
    for day in range(40):
        agent.invoke({"messages": [("human", f"Write the summary of day {day}, please. " + "word " * 20)]}, config)
    agent.invoke({"messages": [("human", "In which city does my sister Ida live?")]}, config)
    assert middleware.plan is not None
    recalled = [item for item in middleware.plan.included if item.reason == "recalled"]
    assert recalled and any("Trondheim" in str(message.content) for message in fake.seen[-1])


def test_trim_messages_keeps_signed_reasoning() -> None:
    thought = {"type": "thinking", "thinking": "hmm", "signature": "c2ln"}
    calls: Any = [{"id": "t1", "name": "look", "args": {}}]
    called = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    messages = [HumanMessage("q"), AIMessage([thought, called], tool_calls=calls), ToolMessage("r", tool_call_id="t1")]
    old = [one for at in range(99) for one in (HumanMessage(f"old {at}"), AIMessage("ok"))]
    for name in ("gpt-4o", "claude-sonnet-4-5"):
        kept = trim_messages(messages, max_tokens=100_000, token_counter=name)
        assert all(one is own for one, own in zip(kept, messages, strict=True))
        kept = trim_messages([*old, *messages], max_tokens=300, token_counter=name)
        assert len(kept) < 100 and kept[-2] is messages[1]


def test_trim_messages_keeps_the_beginning_of_its_prompts() -> None:
    from langchain_core.messages import trim_messages as theirs

    whole, kept = conversation(100), dict[str, list[list[BaseMessage]]](ours=[], theirs=[], again=[])
    settings: Any = {"max_tokens": 800, "include_system": True, "start_on": "human"}
    ends = [at for at, one in enumerate(whole) if one.type in ("human", "tool")]
    for at in ends:
        kept["ours"].append(trim_messages(whole[: at + 1], token_counter="gpt-4o", **settings))
        kept["theirs"].append(theirs(whole[: at + 1], token_counter=TokenCounter("gpt-4o"), **settings))
    # The result depends only on the messages, so another process returns the same.
    for at in ends[::9]:
        again = trim_messages(copy.deepcopy(whole[: at + 1]), token_counter=Manager("gpt-4o"), **settings)
        kept["again"].append(again)
    assert kept["again"] == kept["ours"][::9]
    assert stay(kept["ours"]) > 150 and stay(kept["ours"]) > stay(kept["theirs"]) + 20


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


def test_contents_are_compared_without_ids_and_shapes_of_text() -> None:
    calls: Any = [{"id": "c1", "name": "look", "args": {"what": "a"}}]
    parts = AIMessage([{"type": "text", "text": "Yes, "}, {"type": "text", "text": "sure."}], id="x")
    assert is_same_message(parts, AIMessage("Yes, sure.", id="y", response_metadata={"model": "z"}))
    assert not is_same_message(parts, AIMessage("No.")) and not is_same_message(parts, HumanMessage("Yes, sure."))
    assert not is_same_message(AIMessage("", tool_calls=calls), AIMessage(""))
    assert not is_same_message(ToolMessage("a", tool_call_id="1"), ToolMessage("a", tool_call_id="2"))
    picture = {"type": "image_url", "image_url": {"url": "https://a"}}
    assert not is_same_message(HumanMessage([picture]), HumanMessage("")) and is_same_message(
        HumanMessage([picture]), HumanMessage([picture])
    )
    thought = AIMessage("a", additional_kwargs={"reasoning_content": "b"})
    assert not is_same_message(thought, AIMessage("a")) and is_same_message(
        thought, thought.model_copy(update={"id": "c"})
    )
