#![doc = include_str!("links.in")]
#![doc = include_str!("README.md")]
#![allow(clippy::doc_markdown, reason = "names of products are prose")]

// `links.in` defines the rustdoc targets of the pages' links. The first of two definitions of a link is used,
// so that file comes before each page. A page ends with the definitions for readers of the repository.

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/quick-start.md")]
pub mod quick_start {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/embedding.md")]
pub mod embedding {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/budgets.md")]
pub mod budgets {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/pins.md")]
pub mod pins {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/tools.md")]
pub mod tools {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/rag.md")]
pub mod rag {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/compaction.md")]
pub mod compaction {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/observing.md")]
pub mod observing {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/refusals.md")]
pub mod refusals {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/stores.md")]
pub mod stores {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/caching.md")]
pub mod caching {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/counting.md")]
pub mod counting {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/debugging.md")]
pub mod debugging {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/evaluating.md")]
pub mod evaluating {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/rag-chat.md")]
pub mod rag_chat {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/snapshots.md")]
pub mod snapshots {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/from-trim-messages.md")]
pub mod from_trim_messages {}

#[doc = include_str!("links.in")]
#[doc = include_str!("guide/from-a-loop.md")]
pub mod from_a_loop {}

#[doc = include_str!("links.in")]
#[doc = include_str!("rules.md")]
pub mod rules {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/options.md")]
pub mod options {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/events.md")]
pub mod events {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/session.md")]
pub mod session {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/formats.md")]
pub mod formats {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/tool.md")]
pub mod tool {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/screen.md")]
pub mod screen {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/providers.md")]
pub mod providers {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/explaining.md")]
pub mod explaining {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/compaction.md")]
pub mod compaction_reference {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/counting.md")]
pub mod counting_reference {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/media.md")]
pub mod media {}

#[doc = include_str!("links.in")]
#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/examples.md")]
pub mod examples {}

#[doc = include_str!("links.in")]
#[doc = include_str!("reference/glossary.md")]
pub mod glossary {}

#[doc = include_str!("links.in")]
#[doc = include_str!("planning.md")]
pub mod planning {}

#[doc = include_str!("links.in")]
#[doc = include_str!("contributing.md")]
pub mod contributing {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/README.md")]
pub mod python {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/langchain.md")]
pub mod python_langchain {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/openai-agents.md")]
pub mod python_openai_agents {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/pydantic-ai.md")]
pub mod python_pydantic_ai {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/llama-index.md")]
pub mod python_llama_index {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/haystack.md")]
pub mod python_haystack {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/litellm.md")]
pub mod python_litellm {}

#[doc = include_str!("links.in")]
#[doc = include_str!("python/batches.md")]
pub mod python_batches {}

// The programs of the READMEs are tests too.
#[cfg(doctest)]
mod readmes {
    #[doc = include_str!("../README.md")]
    struct Core;

    #[doc = include_str!("../crates/tokens/README.md")]
    struct Tokens;

    #[doc = include_str!("../crates/formats/README.md")]
    struct Formats;

    #[doc = include_str!("../crates/store/README.md")]
    struct Store;

    #[doc = include_str!("../crates/report/README.md")]
    struct Report;

    #[doc = include_str!("../crates/recall/README.md")]
    struct Recall;

    #[doc = include_str!("../crates/eval/README.md")]
    struct Eval;

    #[doc = include_str!("../crates/ratatui/README.md")]
    struct Ratatui;

    #[doc = include_str!("../crates/genai/README.md")]
    struct Genai;
}
