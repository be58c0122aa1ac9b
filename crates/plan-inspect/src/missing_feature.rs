//! Forms that a smaller build of the tool lacks.

/// Fails because this build lacks the feature that a form needs.
pub(crate) fn fail<T>(form: &str, feature: &str) -> anyhow::Result<T> {
    anyhow::bail!(
        "{form}: this plan-inspect was built without it; build it with `--features {feature}`, or with everything by \
         `cargo install --path crates/plan-inspect --locked --features full`"
    )
}
