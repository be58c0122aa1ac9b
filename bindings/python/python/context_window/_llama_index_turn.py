"""A planned request of LlamaIndex, and the options of its classes."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.bridge.pydantic import BaseModel
from pydantic import BeforeValidator, PlainSerializer

from ._core import Manager
from ._history import Histories, Turn, known_usage
from ._llama_index_messages import Messages, build_prompt, split_system, to_wire
from ._policy import DocumentOptions, OnOverflow, Policy, manager_of, refuse_unknown

#: A manager, or a model's name. In JSON it is the name; a pickle contains the whole manager.
Managed = Annotated[
    Manager,
    BeforeValidator(lambda given: manager_of(given) if isinstance(given, str) else given),
    PlainSerializer(lambda manager: manager.name),
]


def usage(response: ChatResponse) -> dict[str, Any] | None:
    """Returns the billed tokens of a reply, or None if the integration does not report them."""
    raw = response.raw.get("usage") if isinstance(response.raw, dict) else getattr(response.raw, "usage", None)
    raw = raw.model_dump(exclude_none=True) if isinstance(raw, BaseModel) else raw
    report = known_usage(raw) or known_usage(response.additional_kwargs)
    return {key: value for key, value in report.items() if isinstance(value, (int, dict))} if report else None


class Planner(Histories[ChatMessage]):
    """The planned conversations. A pickle contains none of them: they are read again."""

    def __init__(self, manager: Manager, most: int) -> None:
        super().__init__(manager, partial(to_wire, provider=manager.wire_format), most=most)

    def __reduce__(self) -> Any:
        return type(self), (self.manager, self._most)


class PlannedTurn(Turn[ChatMessage]):
    """A request of LlamaIndex in progress. A pickle contains None instead."""

    def __init__(
        self,
        planner: Planner,
        given: Messages,
        extra: dict[str, Any],
        policy: Policy,
        retries: int = 0,
        key: Any = None,
    ) -> None:
        self._given = given
        system, rest = split_system(given)
        super().__init__(planner.get_or_create(rest, key), rest, system, extra, retries, policy)

    @property
    def messages(self) -> list[ChatMessage]:
        """The messages to send."""
        return build_prompt(self.sent, self._given, self.history.manager.wire_format)

    def commit_response(self, response: ChatResponse) -> ChatResponse:
        """Stores the reply and returns the response."""
        # A copy is stored, because chat engines write the whole text into the last message of a stream.
        self.commit(response.message.model_copy(deep=True), usage(response))
        return response

    def __reduce__(self) -> Any:
        return type(None), ()


class ModelOptions(DocumentOptions, total=False):
    """The keyword arguments of `ContextWindowLLM`."""

    on_overflow: OnOverflow
    retries: int
    most: int
    request: dict[str, Any]


class MemoryOptions(DocumentOptions, total=False):
    """The keyword arguments of `ContextWindowMemory`."""

    on_overflow: OnOverflow
    planned: bool
    request: dict[str, Any]
    chat_store: Any
    chat_store_key: str


class StoredMemoryOptions(DocumentOptions, total=False):
    """The keyword arguments of `ContextWindowMemory.from_defaults`."""

    on_overflow: OnOverflow
    planned: bool


def split_fields(owner: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    """Splits arguments into the fields of a class and the arguments of a request, which become the field
    `request`. Raises `TypeError` for an unknown one, with the nearest known name.
    """
    own = {key: given.pop(key) for key in list(given) if key in owner.model_fields}
    request = {**own.get("request", {}), **given}
    options = DocumentOptions.__annotations__
    refuse_unknown(owner.__name__, request, options, {*owner.model_fields, *options})
    return {**own, "request": request}
