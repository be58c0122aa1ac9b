//! Errors for functions that this build of the tool does not contain.

/// Returns an error that names the missing feature and the command to build with it.
pub(crate) fn fail<T>(form: &str, feature: &str) -> anyhow::Result<T> {
    anyhow::bail!(
        "{form}: this plan-inspect was built without it; build it with `--features {feature}`, or with everything by \
         `cargo install --path crates/plan-inspect --locked --features full`"
    )
}
