"""A node postprocessor of LlamaIndex within a token budget."""

from __future__ import annotations

from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from ._core import Conversation, Document, Manager
from ._llama_index_turn import Managed
from ._policy import refuse_unknown


class ContextWindowPostprocessor(BaseNodePostprocessor):
    """Whole nodes within `budget` tokens, the highest scores first. Duplicate texts are included once.

    A node without a score gets one from its position in the list.
    """

    manager: Managed
    budget: int

    def __init__(self, manager: Manager | str, budget: int, **given: Any) -> None:
        fields = type(self).model_fields
        refuse_unknown(type(self).__name__, given, fields, fields)
        super().__init__(**{**given, "manager": manager, "budget": budget})

    @classmethod
    def class_name(cls) -> str:
        return "ContextWindowPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        scores = [node.score if node.score is not None else 1 / (1 + at) for at, node in enumerate(nodes)]
        texts = [node.get_content(MetadataMode.LLM) for node in nodes]
        documents = [Document(f"{at}", score, text) for at, (score, text) in enumerate(zip(scores, texts))]
        log = Conversation([{"role": "user", "content": query_bundle.query_str if query_bundle else "?"}])
        plan = self.manager.plan(
            log, documents=documents, prompt_budget=self.manager.plan(log).estimated_tokens_total + self.budget
        )
        return [nodes[int(item.id)] for item in plan.included if item.kind == "document"]
