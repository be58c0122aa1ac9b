"""A language model of LlamaIndex with a token budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms import types as li
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseAsyncGen, ChatResponseGen
from llama_index.core.bridge.pydantic import Field, PrivateAttr, SerializeAsAny
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM, ToolSelection
from llama_index.core.tools import BaseTool

from ._core import Manager, Plan
from ._llama_index_messages import Messages
from ._llama_index_turn import Managed, ModelOptions, PlannedTurn, Planner, split_fields
from ._policy import OnOverflow, Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack

Call = Callable[[list[ChatMessage]], Any]


class ContextWindowLLM(FunctionCallingLLM):
    """A language model whose chat requests fit a token budget. Tool calls keep their results, and the
    question stays.

    `llm` is the inner model, and `manager` is a `Manager` or a model's name. The other arguments are those of
    `Manager.plan` (`prompt_budget` in tokens, `max_completion_tokens`, `focus`, ...). Tools are counted. If
    the provider rejects a request as too long, a smaller one is planned and sent, at most `retries` times. A
    stream that has begun is not repeated. Everything except chat (`complete`, attributes) is passed to the
    inner model.

    One instance serves several conversations and keeps the `most` last used ones. `plan` is the plan of the
    newest request. Raises `BudgetError` if the budget is 0. If the required messages exceed the budget,
    `on_overflow` raises (`"raise"`), warns (`"warn"`) or sends them without a warning (`"send"`).
    """

    llm: SerializeAsAny[LLM]
    manager: Managed
    on_overflow: OnOverflow = "warn"
    retries: int = 2
    most: int = 64
    request: dict[str, Any] = Field(default_factory=dict)
    _planner: Planner = PrivateAttr()
    _tools: tuple[list[Any], list[dict[str, Any]]] = PrivateAttr(default=([], []))
    _policy: Policy = PrivateAttr()

    def __init__(self, llm: LLM, manager: Manager | str, **given: Unpack[ModelOptions]) -> None:
        # Prompts and programs read these fields of a model, so they equal those of the inner model.
        fields = {key: getattr(llm, key) for key in LLM.model_fields}
        super().__init__(**{**fields, **split_fields(type(self), dict(given)), "llm": llm, "manager": manager})
        self._planner = Planner(self.manager, self.most)
        self._policy = Policy(self.on_overflow)

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_" or "llm" not in self.__dict__:
            return super().__getattr__(name)  # type: ignore[misc]
        return getattr(self.llm, name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("callback_manager", "rate_limiter"):
            setattr(self.llm, name, value)

    @classmethod
    def class_name(cls) -> str:
        return "ContextWindowLLM"

    @property
    def plan(self) -> Plan | None:
        """The plan of the newest request, or None before the first one."""
        return self._policy.plan

    @property
    def metadata(self) -> li.LLMMetadata:
        return self.llm.metadata

    def chat(self, messages: Messages, **kwargs: Any) -> ChatResponse:
        return self._send(messages, kwargs.get("tools"), lambda planned: self.llm.chat(planned, **kwargs))

    async def achat(self, messages: Messages, **kwargs: Any) -> ChatResponse:
        return await self._asend(messages, kwargs.get("tools"), lambda planned: self.llm.achat(planned, **kwargs))

    def stream_chat(self, messages: Messages, **kwargs: Any) -> ChatResponseGen:
        return self._stream(messages, kwargs.get("tools"), lambda planned: self.llm.stream_chat(planned, **kwargs))

    async def astream_chat(self, messages: Messages, **kwargs: Any) -> ChatResponseAsyncGen:
        return self._astream(messages, kwargs.get("tools"), lambda planned: self.llm.astream_chat(planned, **kwargs))

    def chat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponse:
        return self._send(*_tool_request(self._calling.chat_with_tools, tools, *args, **kwargs))

    async def achat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponse:
        return await self._asend(*_tool_request(self._calling.achat_with_tools, tools, *args, **kwargs))

    def stream_chat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponseGen:
        return self._stream(*_tool_request(self._calling.stream_chat_with_tools, tools, *args, **kwargs))

    async def astream_chat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponseAsyncGen:
        return self._astream(*_tool_request(self._calling.astream_chat_with_tools, tools, *args, **kwargs))

    def complete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponse:
        return self.llm.complete(prompt, *args, **kwargs)

    async def acomplete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponse:
        return await self.llm.acomplete(prompt, *args, **kwargs)

    def stream_complete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponseGen:
        return self.llm.stream_complete(prompt, *args, **kwargs)

    async def astream_complete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponseAsyncGen:
        return await self.llm.astream_complete(prompt, *args, **kwargs)

    def get_tool_calls_from_response(self, *args: Any, **kwargs: Any) -> list[ToolSelection]:
        return self._calling.get_tool_calls_from_response(*args, **kwargs)

    def _prepare_chat_with_tools(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._calling._prepare_chat_with_tools(*args, **kwargs)

    @property
    def _calling(self) -> FunctionCallingLLM:
        if not hasattr(self.llm, "chat_with_tools"):
            raise TypeError(f"{type(self.llm).__name__} calls no tools; expected a FunctionCallingLLM")
        return cast(FunctionCallingLLM, self.llm)

    def _turn(self, given: Messages, tools: Any) -> PlannedTurn:
        extra = dict(self.request)
        if isinstance(tools, (list, tuple)) and tools:
            known, wire = self._tools
            if len(known) != len(tools) or any(one is not other for one, other in zip(known, tools)):
                counted = (one for one in tools if isinstance(one, (BaseTool, dict)))
                wire = [one if isinstance(one, dict) else one.metadata.to_openai_tool(True) for one in counted]
                self._tools = (list(tools), wire)
            extra["tools"] = wire
        return PlannedTurn(self._planner, given, extra, self._policy, self.retries)

    def _send(self, given: Messages, tools: Any, call: Call) -> ChatResponse:
        turn = self._turn(given, tools)
        while True:
            try:
                response = call(turn.messages)
            except Exception as error:
                turn.shrink(error)
            else:
                return turn.commit_response(response)

    async def _asend(self, given: Messages, tools: Any, call: Call) -> ChatResponse:
        turn = await asyncio.to_thread(self._turn, given, tools)
        while True:
            try:
                response = await call(turn.messages)
            except Exception as error:
                await asyncio.to_thread(turn.shrink, error)
            else:
                return await asyncio.to_thread(turn.commit_response, response)

    def _stream(self, given: Messages, tools: Any, call: Call) -> ChatResponseGen:
        turn, last = self._turn(given, tools), None
        while last is None:
            try:
                for last in call(turn.messages):
                    yield last
                break
            except Exception as error:
                if last is not None:
                    raise
                turn.shrink(error)
        if last is not None:
            turn.commit_response(last)

    async def _astream(self, given: Messages, tools: Any, call: Call) -> ChatResponseAsyncGen:
        turn, last = await asyncio.to_thread(self._turn, given, tools), None
        while last is None:
            try:
                async for last in await call(turn.messages):
                    yield last
                break
            except Exception as error:
                if last is not None:
                    raise
                await asyncio.to_thread(turn.shrink, error)
        if last is not None:
            await asyncio.to_thread(turn.commit_response, last)


def _tool_request(
    call: Any, tools: Sequence[Any], user_msg: Any = None, chat_history: Any = None, *args: Any, **kwargs: Any
) -> tuple[list[ChatMessage], Sequence[Any], Call]:
    """Returns the arguments for a request with tools: all messages, the tools, and a function that calls
    the model with other messages.
    """
    last = ChatMessage(content=user_msg) if isinstance(user_msg, str) and user_msg else user_msg
    given = [*(chat_history or []), *([last] if last else [])]
    return given, tools, lambda planned: call(tools, None, planned, *args, **kwargs)
