"""LiteLLM: the hook in the real SDK and router, equal prompts for equal messages, and `trim_messages`."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from support import same_as_rust, valid_openai

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
litellm: Any = pytest.importorskip("litellm")

from context_window import ContextWindowWarning, InputError, Manager, PromptTooLargeError  # noqa: E402
from context_window.litellm import ContextWindowHook, encode_messages, hook, trim_messages  # noqa: E402
from litellm.integrations.custom_logger import CustomLogger  # noqa: E402

BUDGET = 900
MODEL = "fake/gpt-4o"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
COUNT = Manager("gpt-4o").count_messages

pytestmark = pytest.mark.filterwarnings("ignore:.*ReadOnly.*:UserWarning")


class Fake(litellm.CustomLLM):  # type: ignore[misc]
    """A model that calls its tool, then answers. It records its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[Any]] = []
        self.failures = 0
        self.check: Any = None

    async def acompletion(self, *_: Any, **call: Any) -> Any:
        return self.completion(**call)

    def completion(self, *_: Any, **call: Any) -> Any:
        messages = call["messages"]
        self.seen.append(messages)
        if self.check is not None:
            self.check()
        if self.failures:
            self.failures -= 1
            raise litellm.RateLimitError("slow down", llm_provider="fake", model="gpt-4o")
        answer = litellm.mock_completion(model="gpt-4o", messages=[], mock_response=f"Answer {len(self.seen)}.")
        if messages[-1]["role"] == "user" and call["optional_params"].get("tools"):
            calls = [tool_call(f"c{len(self.seen)}")]
            answer.choices[0].message = litellm.Message(role="assistant", content=None, tool_calls=calls)
        return answer


def tool_call(id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.fixture
def fake() -> Iterator[Fake]:
    model = Fake()
    litellm.custom_provider_map = [{"provider": "fake", "custom_handler": model}]
    litellm.suppress_debug_info = True
    yield model
    litellm.callbacks, litellm.custom_provider_map = [], []


def registered(**settings: Any) -> Any:
    made = hook(CustomLogger, **{"prompt_budget": BUDGET, **settings})
    litellm.callbacks = [made]
    return made


async def agent(messages: list[Any], turns: int, call: Any, first: int = 0) -> None:
    """Runs `turns` turns: a question, a call, its result, an answer. Replies stay objects in the history."""
    for turn in range(first, first + turns):
        messages.append({"role": "user", "content": f"Question {turn}: what is number {turn}?"})
        reply = (await call(messages)).choices[0].message
        messages.append(reply)
        while reply.tool_calls:
            for one in reply.tool_calls:
                messages.append({"role": "tool", "tool_call_id": one.id, "content": f"found {turn} " * 20})
            reply = (await call(messages)).choices[0].message
            messages.append(reply)


def sdk(messages: list[Any]) -> Any:
    return litellm.acompletion(model=MODEL, messages=messages, tools=[TOOL])


def plain(messages: list[Any]) -> list[Any]:
    return [one if isinstance(one, dict) else one.model_dump(exclude_none=True) for one in messages]


def check_sent(fake: Fake) -> None:
    for sent in fake.seen:
        valid_openai(plain(sent))
        assert COUNT(plain(sent), tools=[TOOL]) <= BUDGET


def rust_agrees(made: Any, messages: list[Any]) -> None:
    log = (
        made._models.get_or_create(MODEL)
        .get_or_create(encode_messages(messages, {"prompt_budget": BUDGET, "tools": [TOOL]}))
        .log
    )
    same_as_rust(Manager(MODEL), log, made.plan, prompt_budget=BUDGET, tools=[TOOL])


async def test_an_agent_of_60_turns(fake: Fake) -> None:
    made = registered()
    messages: list[Any] = [{"role": "system", "content": "You are brief."}]
    await agent(messages, 59, sdk)
    before = copy.deepcopy(plain(messages))
    fake.check = lambda: rust_agrees(made, messages)
    await agent(messages, 1, sdk, first=59)
    assert len(fake.seen) == 120 and len(messages) == 241 and plain(messages)[: len(before)] == before
    check_sent(fake)
    assert len(fake.seen[-1]) < 60
    # The hook returns the caller's own objects; LiteLLM itself converts them to dicts afterwards.
    planned = made.messages(MODEL, messages[:-1], [TOOL])
    assert all(any(one is own for own in messages) for one in planned) and plain(planned) == plain(fake.seen[-1])
    # The window moves occasionally, not with every request.
    heads = [json.dumps(plain(sent)[1]) for sent in fake.seen]
    assert 3 < sum(one != other for one, other in zip(heads, heads[1:])) < 20


async def test_the_same_messages_are_the_same_prompt(fake: Fake) -> None:
    registered()
    messages: list[Any] = [{"role": "system", "content": "You are brief."}]
    await agent(messages, 30, sdk)
    requests, fake.seen = fake.seen, []
    told = [json.dumps(plain(sent)) for sent in requests]
    ends = [at for at, one in enumerate(plain(messages)) if one["role"] == "assistant"]
    # Plans the requests again in reverse order in the same process, then with new hooks. The messages are
    # dicts, as in a proxy.
    for at in reversed(ends):
        await sdk(plain(messages)[:at])
    assert [json.dumps(sent) for sent in reversed(fake.seen)] == told
    fake.seen = []
    for at in ends[::7]:
        registered()
        await sdk(plain(messages)[:at])
    assert [json.dumps(sent) for sent in fake.seen] == told[::7]
    # If the window does not move, the next request begins with the whole previous one.
    stays = [plain(later)[: len(sent)] == plain(sent) for sent, later in zip(requests, requests[1:])]
    assert stays.count(False) < 10 and len(stays) == 59


async def test_a_router_and_its_retries_send_the_same_bytes(fake: Fake) -> None:
    made = registered()
    named = {"model_name": "group", "litellm_params": {"model": MODEL}}
    router = litellm.Router(model_list=[named], num_retries=2, retry_after=0)

    def call(messages: list[Any]) -> Any:
        return router.acompletion(model="group", messages=messages, tools=[TOOL])

    messages: list[Any] = []
    await agent(messages, 20, call)
    fake.seen, fake.failures = [], 2
    messages.append({"role": "user", "content": "And now?"})
    await call(messages)
    assert len(fake.seen) == 3 and len({json.dumps(plain(sent)) for sent in fake.seen}) == 1
    check_sent(fake)
    # At this point, the deployment is chosen.
    assert made.plan.model == MODEL and len(fake.seen[0]) < len(messages)


async def test_changed_histories_and_two_conversations(fake: Fake) -> None:
    made = registered()
    one, other = [[{"role": "system", "content": text}] for text in ("One.", "Other.")]
    for turn in range(15):
        await agent(one, 1, sdk, first=turn)
        await agent(other, 1, sdk, first=turn)
    check_sent(fake)
    texts = [json.dumps(plain(sent)) for sent in fake.seen]
    assert all(("One." in text) != ("Other." in text) for text in texts)
    # The same objects are edited in place. Their earlier plans must have no effect.
    asked = [{"role": "user", "content": f"Question {at}"} for at in range(200)]
    for messages, at in ((one, 0), *((other, turn) for turn in range(5, 60, 4)), (asked, 150)):
        messages.append({"role": "user", "content": "And?"})
        made.messages(MODEL, messages, [TOOL])
        messages[at]["content"] = "Edited " * 40
        fresh = hook(CustomLogger, prompt_budget=BUDGET).messages(MODEL, messages, [TOOL])
        assert made.messages(MODEL, messages, [TOOL]) == fresh
    # A rewind.
    del one[9:]
    fake.seen = []
    await agent(one, 1, sdk, first=99)
    check_sent(fake)
    assert fake.seen[0][0]["content"] == "Edited " * 40 and fake.seen[0][-1]["content"].startswith("Question 99")
    rust_agrees(made, one[:-1])
    with pytest.raises(InputError):
        await litellm.acompletion(model=MODEL, messages=[{"role": "nobody", "content": "x"}])


async def test_the_hook_gets_model_and_messages(fake: Fake) -> None:
    asked: list[str] = []

    def manager_for(model: str) -> Manager:
        asked.append(model)
        return Manager("gpt-4o")

    made = registered(manager_for=manager_for)
    long = [{"role": "user", "content": f"Question {at}"} for at in range(200)]
    # The model may be passed by position. Messages passed by position cannot be replaced.
    await litellm.acompletion(MODEL, messages=long)
    with pytest.warns(ContextWindowWarning, match="pass its messages by keyword"):
        await litellm.acompletion(MODEL, long)
    assert asked == [MODEL] and len(fake.seen[0]) < 200 and len(fake.seen[1]) == 200
    await litellm.acompletion(model="gpt-4o", messages=long, mock_response="Hi.")
    assert asked == [MODEL, "gpt-4o"]
    data: dict[str, Any] = {"model": "group", "messages": long}
    assert await made.async_pre_call_hook(None, None, data, "acompletion") is None
    assert await made.async_pre_call_deployment_hook(data, litellm.types.utils.CallTypes.aembedding) is None
    early = hook(CustomLogger, prompt_budget=BUDGET, before_routing=True)

    class Hook(ContextWindowHook, CustomLogger):
        pass

    # The proxy's own condition: it ignores inherited methods.
    made_so = (early, Hook(prompt_budget=BUDGET, before_routing=True))
    assert all("async_pre_call_hook" in vars(type(one)) and issubclass(type(one), CustomLogger) for one in made_so)
    planned = await early.async_pre_call_hook(user_api_key_dict=None, cache=None, data=data, call_type="acompletion")
    assert len(planned["messages"]) < 200 and data["messages"] is long
    assert await early.async_pre_call_deployment_hook(planned, "acompletion") is None

    # Without a budget, the window keeps room for the completion.
    wide = Hook()
    await wide.async_pre_call_deployment_hook({**data, "model": "gpt-4o", "max_tokens": 4096}, "acompletion")
    assert wide.plan is not None and 115_000 < wide.plan.prompt_budget <= 128_000 - 4096 and wide.message_logging


def test_copies_where_something_changed() -> None:
    result: dict[str, Any] = {"role": "tool", "tool_call_id": "c0", "content": "found " * 5000}
    question = {"role": "user", "content": "?"}
    messages: list[Any] = [question, {"role": "assistant", "tool_calls": [tool_call("c0")]}, result]
    before = copy.deepcopy(messages)
    clipped = ContextWindowHook(prompt_budget=BUDGET).messages("gpt-4o", messages)
    assert COUNT(clipped) <= BUDGET and messages == before and clipped[:2] == messages[:2] and clipped[1] is messages[1]
    assert clipped[2]["tool_call_id"] == "c0" and clipped[2]["content"] != result["content"]
    note = {"role": "system", "content": "Mind.", "x": 1}
    (_, said, _) = ContextWindowHook().messages("claude-sonnet-4-5", [question, note, question])
    assert said["role"] == "user" and "Mind." in said["content"] and said["x"] == 1 and note["role"] == "system"


def test_trim_messages_returns_the_shapes_of_litellm() -> None:
    theirs = litellm.utils.trim_messages
    history: list[Any] = [{"role": "system", "content": "You are brief."}]
    for turn in range(40):
        history.append({"role": "user", "content": f"Question {turn}?"})
        history.append({"role": "assistant", "content": None, "tool_calls": [tool_call(f"c{turn}")]})
        history.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "found " * 20})
        history.append({"role": "assistant", "content": "Yes."})
    before, asked = copy.deepcopy(history), [*history, {"role": "user", "content": "And?"}]
    ours = trim_messages(asked, "gpt-4o", max_tokens=400)
    assert type(ours) is type(theirs(asked, "gpt-4o", max_tokens=400)) is list
    valid_openai(ours)
    assert 200 < COUNT(ours) <= 400 and all(any(one is own for own in asked) for one in ours) and history == before
    kept, left = trim_messages(asked, "gpt-4o", return_response_tokens=True, max_tokens=400)
    assert kept == ours and left == 400 - COUNT(ours)
    assert isinstance(theirs(asked, "gpt-4o", return_response_tokens=True, max_tokens=400), tuple)
    # Messages that fit, or that have no limit, stay complete.
    given: list[dict[str, Any]] = [{"model": "gpt-4o"}, {"max_tokens": 90_000}, {}, {"model": "nobody-knows-it"}]
    with pytest.warns(ContextWindowWarning, match="all messages are returned"):
        assert all(trim_messages(asked, **one) == theirs(asked, **one) == asked for one in given)
    assert trim_messages([], max_tokens=100) == theirs([], max_tokens=100) == []
    ratio = trim_messages(asked, "gpt-4o", trim_ratio=0.003)
    assert COUNT(ratio) <= int(128_000 * 0.003) and len(ratio) < len(asked)


def test_litellm_is_not_imported() -> None:
    script = "import sys, context_window.litellm; sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_a_synchronous_request_is_planned_by_a_wrapper_or_warned_of(fake: Fake) -> None:
    made = registered()
    long = [{"role": "user", "content": f"Question {at}"} for at in range(200)]
    completion = made.wrap(litellm.completion)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ContextWindowWarning)
        completion(model=MODEL, messages=long, tools=[TOOL])
        completion(MODEL, long, tools=[TOOL])
        completion(MODEL, messages=long, tools=[TOOL])
    assert len(fake.seen) == 3 and made.plan.excluded
    for sent in fake.seen:
        valid_openai(plain(sent))
        assert COUNT(plain(sent), tools=[TOOL]) <= BUDGET
    assert completion.__name__ == "completion" and len(long) == 200
    with pytest.raises(TypeError, match="by keyword"):
        completion(MODEL, long, 5)
    with pytest.raises(TypeError, match="expected a synchronous function"):
        made.wrap(litellm.acompletion)
    named = {"model_name": "group", "litellm_params": {"model": MODEL}}
    router = litellm.Router(model_list=[named])
    with pytest.warns(ContextWindowWarning, match="'group' is no known model"):
        made.wrap(router.completion)(model="group", messages=long)
    assert len(fake.seen[-1]) < 200
    made.log_pre_api_call(MODEL, long, {"call_type": "acompletion"})
    with pytest.warns(ContextWindowWarning, match="was not planned"):
        made.log_pre_api_call(MODEL, long, {"call_type": "completion"})


def test_the_schema_of_a_response_is_counted() -> None:
    pydantic = pytest.importorskip("pydantic")
    answer = pydantic.create_model("Answer", text=(str, pydantic.Field(description="The text. " * 90)))
    schema = {"type": "json_schema", "json_schema": {"name": "Answer", "schema": answer.model_json_schema()}}
    long = [{"role": "user", "content": f"Question {at} " * 5} for at in range(200)]
    sizes = []
    for given in (None, {"type": "json_object"}, schema, answer):
        made = ContextWindowHook(prompt_budget=BUDGET)
        data = {"model": "gpt-4o", "messages": long, "response_format": given, "tools": [TOOL]}
        planned: Any = asyncio.run(made.async_pre_call_deployment_hook(data, "acompletion"))
        sizes.append(COUNT(planned["messages"]))
    assert sizes[0] == sizes[1] and sizes[2] == sizes[3] < sizes[0] - 150


def test_trim_messages_never_returns_more_than_its_budget() -> None:
    system = {"role": "system", "content": "Be brief."}
    history: list[Any] = [system]
    for turn in range(6):
        history.append({"role": "user", "content": f"Question {turn}?"})
        history.append({"role": "assistant", "content": None, "tool_calls": [tool_call(f"c{turn}")]})
        history.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "found " * 20})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextWindowWarning)
        for budget in range(1, 300):
            kept, left = trim_messages(history, "gpt-4o", max_tokens=budget, return_response_tokens=True)
            assert left == budget - (COUNT(kept) if kept else 0) >= 0
    asked = [system, {"role": "user", "content": "word " * 5_000}]
    with pytest.warns(ContextWindowWarning, match=r"need 5,0\d\d tokens.* The system messages alone are returned"):
        assert trim_messages(asked, "gpt-4o", max_tokens=100) == [system]
    assert trim_messages.plan is not None and trim_messages.plan.overflow
    with pytest.warns(ContextWindowWarning, match="An empty list is returned"):
        assert trim_messages(asked[1:], "gpt-4o", max_tokens=100) == []
    with pytest.raises(PromptTooLargeError):
        trim_messages(asked, "gpt-4o", max_tokens=100, on_overflow="raise")
    assert trim_messages(asked, "gpt-4o", max_tokens=100, on_overflow="send") == [system]
    untyped: Any = trim_messages
    with pytest.raises(TypeError, match="'max_token'; did you mean 'max_tokens'"):
        untyped(asked, "gpt-4o", max_token=100)


def test_trim_messages_keeps_reasoning() -> None:
    blocks = [{"type": "thinking", "thinking": "hmm", "signature": "c2ln"}]
    said = {"role": "assistant", "content": None, "thinking_blocks": blocks, "tool_calls": [tool_call("c0")]}
    said["reasoning_content"] = "hmm"
    messages: list[Any] = [{"role": "user", "content": "?"}, said]
    messages.append({"role": "tool", "tool_call_id": "c0", "content": "found"})
    old = [{"role": role, "content": f"old {at}"} for at in range(99) for role in ("user", "assistant")]
    assert trim_messages(messages, "gpt-4o", max_tokens=9_000) == messages
    kept = trim_messages([*old, *messages], "gpt-4o", max_tokens=200)
    assert len(kept) < 99 and kept[-2] is said
