"""The rule that all adapters share: unknown options, prompts above their budget, the newest plan."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from context_window import ContextWindowWarning, Manager, PromptTooLargeError
from context_window._policy import Backoff, Policy, check_options, manager_of, warn

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
pytestmark = pytest.mark.filterwarnings("ignore::haystack.utils.experimental.ExperimentalWarning")

LONG = "word " * 5_000
BUDGET = 100

#: Creates an adapter from options, and sends a question through it. Returns the number of sent messages.
Build = Callable[..., tuple[Any, Callable[[], int]]]


def langchain(**options: Any) -> tuple[Any, Callable[[], int]]:
    from langchain.agents.middleware import ModelRequest
    from langchain_core.messages import AIMessage, HumanMessage

    pytest.importorskip("langchain")
    from context_window.langchain import ContextWindowMiddleware

    planner = ContextWindowMiddleware("gpt-4o", **options)
    seen: list[Any] = []

    def send() -> int:
        request: Any = ModelRequest(model=SimpleNamespace(), messages=[HumanMessage(LONG)])  # type: ignore[arg-type]
        planner.wrap_model_call(request, lambda one: seen.append(one) or AIMessage("Yes."))  # type: ignore[arg-type,return-value,func-returns-value]
        return len(seen[-1].messages)

    return planner, send


def openai_agents(**options: Any) -> tuple[Any, Callable[[], int]]:
    pytest.importorskip("agents")
    from agents import Agent
    from agents.run_config import CallModelData, ModelInputData
    from context_window.openai_agents import ContextWindowFilter

    planner = ContextWindowFilter("gpt-4o", **options)
    data = CallModelData(ModelInputData([{"role": "user", "content": LONG}], None), Agent("a"), None)
    return planner, lambda: len(asyncio.run(planner(data)).input)


def pydantic_ai(**options: Any) -> tuple[Any, Callable[[], int]]:
    pytest.importorskip("pydantic_ai")
    from context_window.pydantic_ai import ContextWindow
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    planner = ContextWindow("gpt-4o", **options)
    return planner, lambda: len(Agent(TestModel(), capabilities=[planner]).run_sync(LONG).all_messages()) - 1


def llama_index(**options: Any) -> tuple[Any, Callable[[], int]]:
    pytest.importorskip("llama_index.core")
    from context_window.llama_index import ContextWindowLLM
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.llms.mock import MockFunctionCallingLLM

    seen: list[Any] = []
    model = MockFunctionCallingLLM(
        response_generator=lambda given, **_: seen.append(given) or ChatMessage(role="assistant", content="Yes.")  # type: ignore[func-returns-value]
    )
    planner = ContextWindowLLM(model, "gpt-4o", **options)
    return planner, lambda: planner.chat([ChatMessage(role="user", content=LONG)]) and len(seen[-1])


def llama_index_memory(**options: Any) -> tuple[Any, Callable[[], int]]:
    pytest.importorskip("llama_index.core")
    from context_window.llama_index import ContextWindowMemory
    from llama_index.core.base.llms.types import ChatMessage

    planner = ContextWindowMemory.from_defaults([ChatMessage(role="user", content=LONG)], manager="gpt-4o", **options)
    return planner, lambda: len(planner.get())


def haystack(**options: Any) -> tuple[Any, Callable[[], int]]:
    pytest.importorskip("haystack")
    import test_haystack
    from context_window.haystack import ContextWindowChatGenerator
    from haystack.dataclasses import ChatMessage

    model = test_haystack.Model()
    planner = ContextWindowChatGenerator(model, "gpt-4o", **options)
    return planner, lambda: bool(planner.run([ChatMessage.from_user(LONG)])) and len(model.seen[-1])


def litellm(**options: Any) -> tuple[Any, Callable[[], int]]:
    from context_window.litellm import ContextWindowHook

    planner = ContextWindowHook(**options)
    return planner, lambda: len(planner.messages("gpt-4o", [{"role": "user", "content": LONG}]))


ADAPTERS: list[Build] = [langchain, openai_agents, pydantic_ai, llama_index, llama_index_memory, haystack, litellm]
adapters = pytest.mark.parametrize("build", ADAPTERS, ids=lambda build: build.__name__)


@adapters
def test_an_unknown_option_is_refused_at_construction(build: Build) -> None:
    with pytest.raises(
        TypeError, match="^ContextWindow[A-Za-z]* has no option 'prompt_budgt'; did you mean 'prompt_budget'"
    ):
        build(prompt_budgt=100)
    with pytest.raises(TypeError, match="'zzz'; expected one of .*on_overflow"):
        build(zzz=1)
    with pytest.raises(ValueError, match="(?s)on_overflow.*explode"):
        build(on_overflow="explode")


@adapters
def test_a_prompt_above_its_budget_is_raised_warned_of_or_sent(build: Build) -> None:
    planner, send = build(prompt_budget=BUDGET)
    assert planner.plan is None
    with pytest.warns(ContextWindowWarning, match=r"need 5,\d\d\d tokens, and the prompt's budget is 100") as warned:
        assert send() == 1
    assert not warned[0].filename.endswith("context_window/_policy.py") and planner.plan.overflow
    planner, send = build(prompt_budget=BUDGET, on_overflow="raise")
    with pytest.raises(PromptTooLargeError, match="5,") as error:
        send()
    assert error.value.plan is planner.plan and planner.plan.overflow
    planner, send = build(prompt_budget=BUDGET, on_overflow="send")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ContextWindowWarning)
        assert send() == 1
        assert planner.plan.overflow
        planner, send = build(prompt_budget=8_000, on_overflow="raise")
        assert send() == 1 and planner.plan.overflow is None


def test_the_compactor_and_the_compressors_refuse_unknown_options() -> None:
    pytest.importorskip("haystack")
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    from context_window.haystack import ContextWindowCompactor
    from context_window.langchain import ContextWindowCompressor
    from context_window.llama_index import ContextWindowPostprocessor
    from haystack.dataclasses import ChatMessage

    compactor: Any = ContextWindowCompactor
    for option in ("focs", "prompt_budget"):
        with pytest.raises(TypeError, match=option):
            compactor("gpt-4o", **{option: 1})
    with pytest.raises(ValueError, match="budgett"):
        ContextWindowCompressor(manager="gpt-4o", budget=5, budgett=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'toop_k'"):
        ContextWindowPostprocessor("gpt-4o", 5, toop_k=5)
    import test_haystack

    given = [ChatMessage.from_user("old " * 50), ChatMessage.from_assistant("ok"), ChatMessage.from_user(LONG)]
    with pytest.raises(PromptTooLargeError):
        compactor("gpt-4o", on_overflow="raise").compact(given, 100, test_haystack.COUNTER)
    with pytest.warns(ContextWindowWarning, match="They are returned nevertheless"):
        kept = compactor("gpt-4o").compact(given, 100, test_haystack.COUNTER)
    assert kept == given[2:]


def test_a_policy_without_adapters() -> None:
    with pytest.warns(ContextWindowWarning, match="'gpt4-oo' is no known model"):
        assert not manager_of("gpt4-oo").known
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert manager_of(own := Manager("my-own-model")) is own and manager_of("gpt-4o").known
    with pytest.raises(TypeError, match="did you mean 'focus'"):
        check_options(Policy, {"focsu": 1})
    with pytest.warns(ContextWindowWarning, match="hello") as warned:
        warn("hello")
    assert warned[0].filename == __file__
    assert Policy("raise").__reduce__() == (Policy, ("raise",))


def test_pauses_double_and_end() -> None:
    pause = Backoff(most=8)
    asked = []
    for request in range(40):
        if pause.is_over():
            asked.append(request)
            pause.extend()
    assert asked == [0, 3, 8, 17, 26, 35] and pause.extend() == 8
    pause.end()
    assert pause.is_over() and pause.extend() == 2
