//! The arguments of `eval`.

#![expect(clippy::doc_markdown, reason = "comments here are help texts")]

use super::flags::{Costs, Models, at_least_one, tokens};
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use context_window_eval::{Baseline, Metric};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Sessions with questions: JSON lines, also with .gz, or - for standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Prompt budgets in tokens, as in 2048,4096 or 2k,4k; can be given several times
    #[arg(long = "budget", value_name = "N", value_parser = budgets, default_value = "4096")]
    budgets: Vec<Budgets>,
    /// Policies of the planner: `default`, a preset, or a file of options; with +recall, earlier
    /// messages that a question needs come back
    #[arg(long = "policy", value_name = "NAME|FILE", value_delimiter = ',', default_value = "default")]
    pub(crate) policies: Vec<String>,
    /// Baselines to compare with: newest, langchain, bm25, best-score, oracle; or none
    #[arg(
        long = "baseline",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "newest,langchain,bm25,best-score,oracle"
    )]
    pub(crate) baselines: Vec<String>,
    /// Plan every K-th prompt before the questions, and compact when it is due; with 0, plan only the
    /// questions
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub(crate) every: usize,
    /// Evaluate only the first N sessions of each file
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) first: Option<usize>,
    /// Plant facts and instructions in the sessions, and check if they survive 1, 2 and 5 compactions: by
    /// digests, or by summaries that contain nothing
    #[arg(
        long,
        value_enum,
        value_name = "BY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "digest"
    )]
    pub(crate) needles: Option<Compactions>,
    /// Seed of the needles
    #[arg(long, value_name = "N", default_value_t = 1, requires = "needles")]
    pub(crate) seed: u64,
    /// Plan for this model [default: a model with default limits and without a price]
    #[arg(long, value_parser = NonEmptyStringValueParser::new(), help_heading = "Target")]
    pub(crate) model: Option<String>,
    /// Count with this tokenizer: o200k_base, cl100k_base, chars/4, chars/3.5, bytes, or a tokenizer.json or
    /// its folder
    #[arg(long, value_name = "NAME|PATH", value_parser = NonEmptyStringValueParser::new(), help_heading = "Target")]
    pub(crate) tokenizer: Option<String>,
    #[command(flatten)]
    pub(crate) models: Models,
    #[command(flatten)]
    pub(crate) costs: Costs,
    /// Output format
    #[arg(long, value_enum, default_value_t = EvalFormat::Text, help_heading = "Output")]
    pub(crate) format: EvalFormat,
    /// Write the output to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Keep the result of each session in this file (JSON lines), and continue from it after an interruption
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) journal: Option<PathBuf>,
    /// Exit with 1 if a policy is below this value in per cent, as in whole=20; metrics: whole, evidence,
    /// budget_used, prefix_kept, cache_hit, needles
    #[arg(long, value_name = "METRIC=VALUE", value_parser = bound, help_heading = "Output")]
    pub(crate) fail_under: Vec<(Metric, u64)>,
}

/// The replacement of messages in the compactions that needles pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compactions {
    Digest,
    Summary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalFormat {
    /// One table for each file
    Text,
    /// One JSON object
    Json,
    /// One line for each file, policy and budget
    Csv,
    /// One self-contained web page with a curve for each policy
    Html,
}

/// The budgets of one flag, in tokens.
#[derive(Debug, Clone)]
struct Budgets(Vec<u64>);

impl Eval {
    /// Returns the prompt budgets in tokens.
    pub(crate) fn budgets(&self) -> impl Iterator<Item = u64> {
        self.budgets.iter().flat_map(|budgets| &budgets.0).copied()
    }

    /// Returns the baselines.
    ///
    /// # Errors
    ///
    /// Returns an error for an unknown name.
    pub(crate) fn baselines(&self) -> anyhow::Result<Vec<Baseline>> {
        let named = self.baselines.iter().filter(|name| *name != "none");
        let parse =
            |name: &String| name.parse().map_err(|error| anyhow::anyhow!("--baseline: {error} or none"));
        named.map(parse).collect()
    }
}

/// Parses budgets that are separated by commas. A comma in front of three digits may also separate thousands,
/// and a budget of 2 tokens in place of 2,048 would be a result, not an error.
fn budgets(text: &str) -> Result<Budgets, String> {
    let is_number = |piece: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&piece.len()) && piece.bytes().all(|byte| byte.is_ascii_digit())
    };
    let pieces: Vec<&str> = text.split(',').map(str::trim).collect();
    let is_ambiguous = |pair: &[&str]| is_number(pair[0], 1..=3) && is_number(pair[1], 3..=3);
    if pieces.windows(2).any(is_ambiguous) {
        return Err(
            "one number or several? write thousands without a comma, as in 2048 or 2k, or repeat --budget"
                .into(),
        );
    }
    let budget = |piece: &&str| match tokens(piece)? {
        0 => Err("expected 1 token or more".into()),
        budget => Ok(budget),
    };
    pieces.iter().map(budget).collect::<Result<_, String>>().map(Budgets)
}

/// Parses a bound, such as whole=20 or evidence=12.5, with the value in per cent. Returns it in per mille.
fn bound(text: &str) -> Result<(Metric, u64), String> {
    let (name, value) = text.split_once('=').ok_or("expected METRIC=VALUE, as in whole=20")?;
    let metric = name.trim().parse::<Metric>()?;
    let (whole, tenths) = value.trim().split_once('.').unwrap_or((value.trim(), "0"));
    // One digit after the point: the value is a whole number of tenths.
    let per_mille = format!("{whole}{tenths}").parse().ok().filter(|per_mille| *per_mille <= 1_000);
    let per_mille = per_mille.filter(|_| !whole.is_empty() && tenths.len() == 1);
    per_mille
        .map(|per_mille| (metric, per_mille))
        .ok_or_else(|| "expected a value from 0 to 100 with at most one decimal".into())
}
