//! Scores as JSON and as CSV.

use crate::{
    scores::{Metric, ScoreRow, Scores},
    share::Share,
};
use serde_json::{Value, json};

/// The columns of the CSV output.
const COLUMNS: [&str; 22] = [
    "set",
    "policy",
    "baseline",
    "prompt_budget",
    "sessions",
    "questions",
    "questions_whole",
    "whole_percent",
    "whole_low_percent",
    "whole_high_percent",
    "evidence_percent",
    "evidence_items",
    "evidence_found",
    "prompts",
    "estimated_tokens_total",
    "budget_used_percent",
    "overflows",
    "turns",
    "prefix_kept_percent",
    "cache_hit_percent",
    "input_cost_billionths",
    "compactions",
];

impl Scores {
    /// Returns the rows as one JSON object with the key `scores`. The keys of a row are the columns of
    /// [`Scores::to_csv`], and `needles` if some were planted.
    #[must_use]
    pub fn to_json(&self) -> String {
        let rows: Vec<Value> = self.rows().iter().map(object).collect();
        json!({ "scores": rows }).to_string()
    }

    /// Returns a line with the names of the columns, and a line for each row (RFC 4180). Shares are in per
    /// cent, costs in billionths of a US dollar. A figure that was not measured is empty.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = COLUMNS.join(",") + "\n";
        for row in self.rows() {
            // Null and an empty text are both empty cells. No column can have both.
            let cells = values(row).map(|value| match value {
                Value::Null => String::new(),
                Value::String(text) => quoted(&text),
                other => other.to_string(),
            });
            text += &(cells.join(",") + "\n");
        }
        text
    }
}

/// Returns the values of a row, in the order of the columns.
fn values(row: &ScoreRow) -> [Value; 22] {
    let metric = |metric| percent(row.per_mille(metric));
    let (low, high) = row.whole().interval().unzip();
    [
        json!(row.set),
        json!(row.policy),
        json!(row.is_baseline),
        json!(row.budget),
        json!(row.sessions),
        json!(row.questions),
        json!(row.questions_whole),
        metric(Metric::Whole),
        percent(low),
        percent(high),
        metric(Metric::Evidence),
        json!(row.evidence),
        json!(row.evidence_found),
        json!(row.prompts),
        json!(row.tokens),
        metric(Metric::BudgetUsed),
        json!(row.overflows + row.turns.overflows),
        json!(row.turns.prompts),
        metric(Metric::PrefixKept),
        metric(Metric::CacheHit),
        json!(row.cost()),
        json!(row.turns.compactions),
    ]
}

/// Returns a value in per mille as per cent with one decimal.
fn percent(per_mille: Option<u64>) -> Value {
    per_mille
        .and_then(|value| u32::try_from(value).ok())
        .map_or(Value::Null, |value| json!(f64::from(value) / 10.0))
}

/// Returns a row as a JSON object.
fn object(row: &ScoreRow) -> Value {
    let mut object: serde_json::Map<String, Value> =
        COLUMNS.iter().map(|name| (*name).to_owned()).zip(values(row)).collect();
    let needles = row.needles.iter().map(|score| {
        json!({
            "kind": score.kind,
            "place": score.place,
            "compactions": score.compactions,
            "planted": score.planted,
            "survived": score.survived,
            "survived_percent": percent(Share::new(score.survived, score.planted).per_mille()),
        })
    });
    let needles: Vec<Value> = needles.collect();
    object.extend((!needles.is_empty()).then(|| ("needles".to_owned(), Value::Array(needles))));
    Value::Object(object)
}

/// Quotes a cell if it contains a separator. A leading formula character is escaped, because a spreadsheet
/// would compute it.
fn quoted(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() };
    let is_plain = !text.contains([',', '"']) && !text.contains(char::is_control);
    if is_plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}
