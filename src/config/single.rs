//! Tables with a single option, represented by a field of the enclosing table.

use super::{DefaultModel, TtlPolicy};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Default maximum tokens of a digest (rule C6).
pub(super) const DIGEST_TOKENS: u64 = 1_500;

/// Defines a serde module that reads and writes a table with a single option as the value of that option.
macro_rules! single {
    ($(#[$doc:meta])* $module:ident, $table:ident, $option:ident: $kind:ty = $default:expr) => {
        $(#[$doc])*
        pub(super) mod $module {
            use super::*;

            #[derive(Serialize, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            struct $table {
                $option: $kind,
            }

            impl Default for $table {
                fn default() -> Self {
                    Self { $option: $default }
                }
            }

            pub(crate) fn serialize<S: Serializer>(value: &$kind, serializer: S) -> Result<S::Ok, S::Error> {
                $table { $option: value.clone() }.serialize(serializer)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$kind, D::Error> {
                Ok($table::deserialize(deserializer)?.$option)
            }
        }
    };
}

single!(
    /// The table `[model]`.
    model, ModelOptions, default: DefaultModel = DefaultModel::default()
);
single!(
    /// The table `[ttl]`.
    ttl, TtlOptions, policy: TtlPolicy = TtlPolicy::default()
);
single!(
    /// The table `[compaction.digest]` (rule C6).
    digest, DigestOptions, max_tokens: u64 = DIGEST_TOKENS
);
