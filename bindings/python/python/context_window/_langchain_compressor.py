"""A document compressor for LangChain's retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict

from ._core import Conversation
from ._core import Document as Retrieved
from ._langchain_messages import to_document
from ._policy import manager_of


class ContextWindowCompressor(BaseDocumentCompressor):
    """Whole documents within a token budget, the best first, for a `ContextualCompressionRetriever`.

    The score is the document's `relevance_score` or `score`. Without either, its position in the list
    determines the score.
    """

    model_config = ConfigDict(extra="forbid")
    manager: Any
    budget: int

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        planner = manager_of(self.manager)
        log = Conversation([{"role": "user", "content": query}])
        own: dict[str, Document] = {}
        items: list[Any] = []
        for at, document in enumerate(documents):
            item = to_document(document, at)
            # Two documents with the same id would count as one.
            if item.id in own:
                item = Retrieved(f"{item.id}#{at}", item.score, item.text, item.source)
            own[item.id] = document
            items.append(item)
        question = planner.plan(log).estimated_tokens_total
        plan = planner.plan(log, documents=items, prompt_budget=question + self.budget)
        return [own[item.id] for item in plan.included if item.kind == "document"]
