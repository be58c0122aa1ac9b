from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, ModelResponse, RunConfig, Runner, Session, Usage, function_tool, set_tracing_disabled
from agents.models.chatcmpl_converter import Converter
from agents.models.interface import Model
from agents.run_config import CallModelData, ModelInputData
from context_window import Conversation, Manager, Store
from context_window.openai_agents import ContextWindowFilter, StoreSession, _to_wire, _tools, group_items
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem
from support import same_as_rust, valid_openai

set_tracing_disabled(True)
MANAGER, BUDGET = Manager("gpt-6-sol"), 2000


class Answers(Model):
    """A model that requests two lookups for a question, then answers."""

    def __init__(self) -> None:
        self.seen: list[tuple[str | None, list[Any]]] = []

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:
        self.seen.append((system_instructions, list(input)))
        n = len(self.seen)
        if input[-1].get("role") == "user":
            output: list[Any] = [ResponseReasoningItem(id=f"rs_{n}", type="reasoning", summary=[])]
            for id in (f"a{n}", f"b{n}"):
                call = {"id": f"fc_{id}", "call_id": id, "name": "look", "arguments": json.dumps({"what": id})}
                output.append(ResponseFunctionToolCall(type="function_call", **call))
        else:
            text: Any = {"type": "output_text", "text": f"Answer {n}. " * 10, "annotations": []}
            said: Any = {"role": "assistant", "status": "completed", "content": [text]}
            output = [ResponseOutputMessage(type="message", id=f"msg_{n}", **said)]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    stream_response: Any = None


class Watched(ContextWindowFilter):
    identical = True

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        given, before = list(data.model_data.input), json.dumps(data.model_data.input)
        made = await super().__call__(data)
        assert json.dumps(given) == before, "items that came in were changed"
        valid_openai(Converter.items_to_messages(made.input))
        whole = [{"role": "system", "content": made.instructions or ""}, *made.input]
        assert MANAGER.count_messages(whole, tools=_tools(data.agent), wire_format="openai_responses") <= BUDGET
        self.identical = self.identical and {id(item) for item in made.input} <= {id(item) for item in given}
        return made


@function_tool
def look(what: str) -> str:
    """Looks something up."""
    return f"found {what} " * 30


def conversation(turns: int) -> list[Any]:
    items = list[Any]()
    for n in range(turns):
        items += [{"role": "user", "content": f"Question {n}? " * 5}, {"type": "reasoning", "id": "rs", "summary": []}]
        items.append({"type": "function_call", "call_id": f"c{n}", "name": "look", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"c{n}", "output": f"found {n} " * 30})
        items.append({"role": "assistant", "content": f"Answer {n}."})
    return [*items, {"role": "user", "content": "And now?"}]


async def sent(planned: ContextWindowFilter, items: list[Any], system: str = "Be brief.") -> ModelInputData:
    return await planned(CallModelData(ModelInputData(list(items), system), Agent("a", tools=[look]), None))


@pytest.mark.parametrize("sync", [True, False])
def test_an_agent_of_sixty_turns(tmp_path: Path, sync: bool) -> None:
    model, planned = Answers(), Watched(MANAGER, prompt_budget=BUDGET)
    agent = Agent("helper", instructions="Be brief.", tools=[look], model=model)
    session = StoreSession(Store(f"sqlite:{tmp_path}/s.db"), "one")
    settings: dict[str, Any] = {"session": session, "run_config": RunConfig(call_model_input_filter=planned)}

    for question in (f"Question {n}?" for n in range(60)):
        Runner.run_sync(agent, question, **settings) if sync else asyncio.run(Runner.run(agent, question, **settings))
    assert len(model.seen) == 120 and planned.identical and {one for one, _ in model.seen} == {"Be brief."}
    assert planned.plan and planned.plan.excluded and planned.plan.repeated
    kept = asyncio.run(session.get_items())
    assert [one["content"] for one in kept if one.get("role") == "user"] == [f"Question {n}?" for n in range(60)]
    assert len(kept) == 60 * 7 and len(model.seen[-1][1]) < 100
    assert (
        len(planned._histories.get_or_create(group_items(kept)).log) == 60 * 5 - 1 and len(planned._histories._all) == 1
    )


async def test_the_plan_is_that_of_rust() -> None:
    planned, items = ContextWindowFilter(MANAGER, prompt_budget=BUDGET), conversation(40)
    await sent(planned, items[:-6])
    assert planned.plan is not None
    request = {"prompt_budget": BUDGET, "tools": _tools(Agent("a", tools=[look])), "previous": planned.plan.anchor()}
    await sent(planned, items)
    assert planned.plan.excluded and planned.plan.repeated
    same_as_rust(MANAGER, planned._histories.get_or_create(group_items(items)).log, planned.plan, **request)


async def test_a_history_that_changed() -> None:
    planned, items = Watched(MANAGER, prompt_budget=BUDGET), conversation(40)
    edited = [{"role": "user", "content": "Edited."}, *items[1:]]
    await sent(planned, items)
    await sent(planned, edited)
    assert planned.plan and "Edited." not in str(planned.plan.messages()) and planned.plan.excluded
    rewound = items[:20] + items[-1:]
    assert list(map(id, (await sent(planned, rewound)).input)) == list(map(id, rewound)) and planned.identical


async def test_two_conversations_and_a_new_system_text() -> None:
    planned = Watched(MANAGER, prompt_budget=BUDGET)
    two = [conversation(30), json.loads(json.dumps(conversation(30)).replace("Question", "Query"))]
    for turn in range(5, 31):
        for items in two:
            made = await sent(planned, items[: turn * 5 + 1], "Be brief." if turn < 30 else "Be long. " * 100)
            assert {id(one) for one in made.input} <= {id(one) for one in items}
    plan, histories = planned.plan, planned._histories._all
    assert plan and plan.excluded and len(histories) == 2 and made.instructions == "Be long. " * 100


async def test_a_result_that_is_too_long_is_a_copy() -> None:
    @function_tool
    def long() -> str:
        """Gives much."""
        return "line\n" * 5000

    class Calls(Answers):
        async def get_response(self, *given: Any, **more: Any) -> ModelResponse:
            made: Any = await super().get_response(*given, **more)
            for call in made.output[1:]:
                call.name, call.arguments = "long", "{}"
            return made

    model, planned = Calls(), Watched(MANAGER, prompt_budget=BUDGET)
    run = RunConfig(call_model_input_filter=planned)
    agent = Agent("a", instructions="Be brief. " * 30, tools=[long], model=model)
    made = await Runner.run(agent, "Go on.", run_config=run)
    outputs = [one["output"] for one in made.to_input_list() if one.get("type") == "function_call_output"]
    short = [one["output"] for one in model.seen[-1][1] if one.get("type") == "function_call_output"]
    assert not planned.identical and [len(one) for one in outputs] == [25_000] * 2
    assert len(short) == 2 and all(one.startswith("line\n") and len(one) < 5_000 for one in short)


async def test_documents_and_conversations_stored_by_a_server() -> None:
    async def found(data: CallModelData[Any]) -> list[Any]:
        return [("refunds", 0.9, "Refunds take 5 days.")]

    items = [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "How long?"}]
    planned = ContextWindowFilter(MANAGER, documents=found)
    made = await sent(planned, items)
    assert "5 days" in json.dumps(made.input) and [one for one in made.input if one in items] == items
    assert made.instructions == "Be brief." and "Be brief." not in json.dumps(made.input)
    rest = [{"type": "function_call_output", "call_id": "c1", "output": "x"}]
    assert (await sent(planned, rest)).input == rest


def test_a_group_is_one_message() -> None:
    kinds: list[Any] = [{"role": role, "content": "x"} for role in ("user", "assistant")]
    kinds += [{"type": "reasoning", "id": "r", "summary": []}, {"type": "web_search_call", "id": "w"}]
    for tool in ("function", "computer"):
        kinds.append({"type": f"{tool}_call", "call_id": "c", "name": "f", "arguments": "{}"})
        kinds.append({"type": f"{tool}_call_output", "call_id": "c", "output": "x"})
    chance = random.Random(7)
    for _ in range(300):
        groups = group_items(chance.choices(kinds, k=8))
        alone, together = Conversation(), Conversation()
        for group in groups:
            assert len(alone.push(_to_wire(group), "openai_responses")) == 1
        together.push([item for group in groups for item in _to_wire(group)], "openai_responses")
        assert alone == together


async def test_repeated_call_ids_stay_with_their_results() -> None:
    call, result = conversation(1)[2:4]
    approval = {"type": "mcp_approval_request", "id": "m", "name": "x", "arguments": "{}", "server_label": "s"}
    answer = {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True}
    items: list[Any] = [{"role": "user", "content": "q"}, approval, call, call, answer, result, result]
    made: list[Any] = (await sent(ContextWindowFilter(MANAGER), items)).input
    assert made[1] is approval and made[4] is answer
    assert [one["call_id"] for one in made if "call_id" in one] == ["c0", "c0#2", "c0", "c0#2"]


async def test_a_session_gives_back_what_was_added(tmp_path: Path) -> None:
    items: list[Any] = [{"role": "user", "content": "a\ud800é"}, {"type": "new", "n": 2**70, "x": 1.50, "none": None}]
    items += [{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "z"}, *conversation(2)]
    path = f"sqlite:{tmp_path}/s.db"
    session, other = StoreSession(Store(path), "one"), StoreSession(Store(path), "one")
    assert isinstance(session, Session) and await session.get_items() == [] and await session.pop_item() is None
    await session.add_items(items[:3])
    await session.add_items([])
    await other.add_items(items[3:])
    assert json.dumps(await session.get_items()) == json.dumps(items) and await session.get_items(0) == []
    assert await session.get_items(2) == items[-2:] and await session.get_items(99) == items
    assert [await session.pop_item(), await other.pop_item()] == items[:-3:-1]
    await session.add_items(items[:1])
    assert await other.get_items() == [*items[:-2], items[0]]
    await session.clear_session()
    await asyncio.gather(*(one.add_items([{"n": n}, {"n": n}]) for n in range(15) for one in (session, other)))
    kept = [one["n"] for one in await other.get_items()]
    assert sorted(kept) == sorted([n for n in range(15)] * 4) and kept[::2] == kept[1::2]


@pytest.mark.parametrize("size", [0, 30_000, 65_520, 65_536, 200_000])
async def test_items_of_every_size_are_given_back(tmp_path: Path, size: int) -> None:
    items: list[Any] = [{"n": n, "text": "é" * (n * size // 5)} for n in range(6)] + [{"n": n} for n in range(900)]
    session = StoreSession(Store(tmp_path / "s.db"), "one")
    await session.add_items(items)
    assert await session.get_items() == items and await session.get_items(903) == items[-903:]


async def test_a_result_without_its_call_does_not_turn_the_filter_off() -> None:
    orphan = {"type": "function_call_output", "call_id": "gone", "output": "x"}
    said = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"text {n} " * 50} for n in range(201)]
    for items in ([orphan, *said], [*said[:9], orphan, *said[9:]]):
        planned = ContextWindowFilter(MANAGER, prompt_budget=500)
        made = await sent(planned, items)
        assert planned.plan is not None and planned.plan.excluded and orphan not in made.input
        assert MANAGER.count_messages(made.input, wire_format="openai_responses") <= 500


async def test_a_result_without_its_call_is_not_sent_although_it_fits() -> None:
    orphan = {"type": "function_call_output", "call_id": "gone", "output": "x"}
    planned, said = ContextWindowFilter(MANAGER, prompt_budget=BUDGET), conversation(1)
    assert (await sent(planned, [orphan, *said])).input == said


async def test_only_new_items_of_a_conversation_on_the_server_are_planned() -> None:
    results = [{"type": "function_call_output", "call_id": f"c{n}", "output": f"found {n} " * 30} for n in range(2)]
    later = [{"role": "user", "content": "And this?"}]
    for items in (results, [*results, *later]):
        planned = ContextWindowFilter(MANAGER, prompt_budget=BUDGET, documents=lambda data: [("d", 0.9, "Text.")])
        made = await sent(planned, items)
        assert planned.plan is not None and list(map(id, made.input)) == list(map(id, items))
    planned = ContextWindowFilter(MANAGER, prompt_budget=300)
    made = await sent(planned, [{**results[0], "output": "line\n" * 5_000}])
    assert planned.plan is not None and planned.plan.estimated_tokens_total <= 300
    [short] = made.input
    assert short["call_id"] == "c0" and len(short["output"]) < 2_000  # type: ignore[typeddict-item,index]


async def test_a_client_without_ids_continues_its_conversation() -> None:
    planned, items = ContextWindowFilter(MANAGER, prompt_budget=BUDGET), list[Any]()
    for n in range(20):
        said = {"role": "user", "content": f"Question {n}? " * 5}
        await sent(planned, [*items, said])
        text = {"type": "output_text", "text": f"Answer {n}.", "annotations": []}
        answer = {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "content": [text]}
        await sent(planned, [*items, said, answer, {"role": "user", "content": "Go on."}])
        # The client keeps only texts.
        items += [said, {"role": "assistant", "content": f"Answer {n}."}, {"role": "user", "content": "Go on."}]
        items.append({"role": "assistant", "content": "Yes."})
    [history] = planned._histories._all.values()
    assert planned.plan is not None and planned.plan.repeated
    assert len(history.log) == len(history) == 79, "nothing was read twice"


def test_the_schema_of_an_output_is_counted() -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        text: str

    tools = _tools(Agent("a", tools=[look], output_type=Answer))
    assert [one["name"] for one in tools] == ["look", "Answer"] and "text" in tools[1]["parameters"]["properties"]
    assert [one["name"] for one in _tools(Agent("a", tools=[look], output_type=str))] == ["look"]


async def test_the_settings_of_a_session_may_be_a_dict(tmp_path: Path) -> None:
    settings: Any = {"limit": 2}
    session = StoreSession(Store(f"sqlite:{tmp_path}/s.db"), "one", session_settings=settings)
    await session.add_items([{"role": "user", "content": text} for text in "abc"])
    assert [one["content"] for one in await session.get_items()] == ["b", "c"]  # type: ignore[typeddict-item]
    assert session.session_settings is not None and session.session_settings.limit == 2
    assert len(await session.get_items(3)) == 3
