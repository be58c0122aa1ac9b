//! What a model is and takes: its limits and prices, the texts and wire formats it is sent, what they cost in tokens.

pub(crate) mod model;
pub(crate) mod wording;
pub(crate) mod conform;
pub mod render;
pub(crate) mod meter;

#[cfg(feature = "chat-template")]
pub use model::ChatTemplate;
pub use model::{
    CacheKind, CacheRule, CallIds, KeptReasoning, Limits, LimitsSource, Model, ModelEntry, Price,
    ProviderConstraints, Registry, RequestLimits, SystemPlace, TokenizerFit,
};
