//! The numbered items of a page. The script draws the prompt at another budget, or an earlier prompt, from
//! these numbers.

use super::shown::visible;
use crate::{palette, row::short, words};
use context_window::{
    ContextPlan,
    analysis::MappedItem,
    plan::{Kind, LedgerLine, RowKey},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// An item for the script: its id, the number of its kind, the name of its section, and its score in
/// billionths.
#[derive(Debug, Serialize)]
struct CatalogItem(String, usize, &'static str, Option<i64>);

/// A part of the overhead for the script: the number of its kind, its name, its tokens, and their certainty.
#[derive(Debug, Serialize)]
pub(super) struct Line(usize, &'static str, i64, &'static str);

/// The items of a prompt by number, each with its tokens and the tokens of its reasoning.
pub(super) type ItemTokens = BTreeMap<usize, (u64, u64)>;

/// All items and kinds of a page, with their numbers.
#[derive(Debug)]
pub(super) struct Catalog {
    redact: bool,
    places: BTreeMap<RowKey, usize>,
    items: Vec<CatalogItem>,
    kinds: Vec<Kind>,
    /// The place of each item in the session, by item number.
    places_in_session: Vec<Place>,
}

/// The place of an item: the prompt row that it follows, and its rank after that row.
pub(super) type Place = (usize, u64);

impl Catalog {
    pub(super) fn new(redact: bool) -> Self {
        Self {
            redact,
            places: BTreeMap::new(),
            items: Vec::new(),
            kinds: Vec::new(),
            places_in_session: Vec::new(),
        }
    }

    /// Returns the number of a kind. Names of tools and sources are texts of the session, so a redacted page
    /// merges their kinds into groups.
    pub(super) fn kind(&mut self, kind: &Kind) -> usize {
        let kind = if self.redact { kind.group() } else { kind.clone() };
        self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        })
    }

    /// Returns the number of an item. A new item gets the next number.
    pub(super) fn number(
        &mut self,
        key: RowKey,
        kind: &Kind,
        score: Option<f64>,
        place: Option<Place>,
    ) -> usize {
        if let Some(number) = self.places.get(&key) {
            return *number;
        }
        let kind = self.kind(kind);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a score too large for this sorts as the largest"
        )]
        let score = score.map(|score| (score * 1e9) as i64);
        let number = self.items.len();
        self.items.push(CatalogItem(visible(&short(key.2.as_str())), kind, key.0.name(), score));
        // An item without a place comes after all others, in the order of numbers.
        self.places_in_session.push(place.unwrap_or((usize::MAX, number as u64)));
        self.places.insert(key, number);
        number
    }

    /// Returns the number of an item that is included in a prompt. The kind from the prompt replaces an
    /// earlier guess.
    fn number_in_prompt(&mut self, key: RowKey, kind: &Kind) -> usize {
        let number = self.number(key, kind, None, None);
        self.items[number].1 = self.kind(kind);
        number
    }

    /// Returns the number of an item of a budget map.
    pub(super) fn mapped(&mut self, item: &MappedItem) -> usize {
        self.number_in_prompt((item.section, item.document, item.id.clone(), item.nth), &item.kind)
    }

    /// Returns the items of a prompt by number.
    pub(super) fn item_tokens(&mut self, plan: &ContextPlan) -> ItemTokens {
        let rows = plan.rows_by_kind().into_iter();
        rows.map(|one| {
            (self.number_in_prompt(one.key(), &one.kind), (one.row.token_estimate.tokens, one.reasoning))
        })
        .collect()
    }

    /// Converts the overhead of a prompt: each part has its kind, name, tokens and certainty.
    pub(super) fn overhead(&mut self, lines: &[LedgerLine]) -> Vec<Line> {
        let line = |line: &LedgerLine| {
            Line(self.kind(&line.what.kind()), words::overhead(line.what), line.tokens, line.certainty.name())
        };
        lines.iter().map(line).collect()
    }

    /// Converts the catalog to the data for the script.
    pub(super) fn finish(mut self) -> Finished {
        let reasoning = self.kind(&Kind::Reasoning);
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_key(|number| (self.places_in_session[*number], *number));
        // Inverts the order: from a list of numbers by place to a list of places by number.
        let mut rank = vec![0; order.len()];
        for (at, number) in order.into_iter().enumerate() {
            rank[number] = at;
        }
        let kinds = self.kinds.iter().map(|kind| {
            let place = self.kinds.iter().filter(|other| *other < kind).count();
            (palette::name(kind), visible(&kind.text()), palette::sign(kind), place)
        });
        Finished { kinds: kinds.collect(), reasoning, items: self.items, rank }
    }
}

/// The items and kinds of a page, as serialized for the script.
#[derive(Debug, Serialize)]
pub(super) struct Finished {
    /// The class, name and sign of each kind, and its rank among kinds with equal tokens.
    kinds: Vec<(&'static str, String, char, usize)>,
    /// The number of the reasoning kind.
    reasoning: usize,
    items: Vec<CatalogItem>,
    /// The rank of each item in the order of the session.
    rank: Vec<usize>,
}

/// Returns the difference between two prompts. The first list has three numbers for each item that is new or
/// has other tokens: its number, its tokens, and its reasoning tokens. The second list has the numbers of the
/// removed items.
pub(super) fn difference(before: &ItemTokens, now: &ItemTokens) -> (Vec<u64>, Vec<usize>) {
    let enters = now.iter().filter(|(number, tokens)| before.get(number) != Some(tokens));
    let enters = enters.flat_map(|(number, (tokens, thought))| [*number as u64, *tokens, *thought]).collect();
    (enters, before.keys().filter(|number| !now.contains_key(number)).copied().collect())
}
