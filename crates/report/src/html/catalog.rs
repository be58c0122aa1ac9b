//! The items that a page knows, each by one number: what the script needs to draw the prompt at another
//! budget, or an earlier prompt.

use super::shown::visible;
use crate::{palette, row::short, words};
use context_window::{
    ContextPlan,
    analysis::MappedItem,
    plan::{Kind, LedgerLine, RowKey},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// An item as the script knows it: its id, the number of its kind, the name of its section, and its score in
/// billionths.
#[derive(Debug, Serialize)]
struct Known(String, usize, &'static str, Option<i64>);

/// A line of what is sent beside the items: the number of its kind, its name, its tokens, and how sure they
/// are.
#[derive(Debug, Serialize)]
pub(super) struct Line(usize, &'static str, i64, &'static str);

/// What a state of the prompt holds: items by their numbers, each with its tokens and those of its reasoning.
pub(super) type Held = BTreeMap<usize, (u64, u64)>;

/// All items and kinds of a page.
#[derive(Debug)]
pub(super) struct Catalog {
    redact: bool,
    places: BTreeMap<RowKey, usize>,
    items: Vec<Known>,
    kinds: Vec<Kind>,
    /// Where an item stands in the session, in the order of its numbers.
    places_in_session: Vec<Place>,
}

/// Where an item stands: behind which row of the prompt, and at which place there.
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

    /// The number of a kind. Names of tools and sources are texts of the session: a redacted page has none.
    pub(super) fn kind(&mut self, kind: &Kind) -> usize {
        let kind = if self.redact { kind.group() } else { kind.clone() };
        self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        })
    }

    /// The number of an item; a new one where it is not known.
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
        self.items.push(Known(visible(&short(key.2.as_str())), kind, key.0.name(), score));
        self.places_in_session.push(place.unwrap_or((usize::MAX, number as u64)));
        self.places.insert(key, number);
        number
    }

    /// The number of an item that is in some prompt: what it is there holds, whatever was guessed of it
    /// before.
    fn of_a_prompt(&mut self, key: RowKey, kind: &Kind) -> usize {
        let number = self.number(key, kind, None, None);
        self.items[number].1 = self.kind(kind);
        number
    }

    /// The number of an item of a budget map.
    pub(super) fn mapped(&mut self, item: &MappedItem) -> usize {
        self.of_a_prompt((item.section, item.document, item.id.clone(), item.nth), &item.kind)
    }

    /// What a prompt holds.
    pub(super) fn held(&mut self, plan: &ContextPlan) -> Held {
        let rows = plan.rows_by_kind().into_iter();
        rows.map(|one| {
            (self.of_a_prompt(one.key(), &one.kind), (one.row.token_estimate.tokens, one.reasoning))
        })
        .collect()
    }

    /// The lines sent beside the items: of each its kind, its name, its tokens and their certainty.
    pub(super) fn overhead(&mut self, lines: &[LedgerLine]) -> Vec<Line> {
        let line = |line: &LedgerLine| {
            Line(self.kind(&line.what.kind()), words::overhead(line.what), line.tokens, line.certainty.name())
        };
        lines.iter().map(line).collect()
    }

    /// Everything for the script.
    pub(super) fn finish(mut self) -> Finished {
        let reasoning = self.kind(&Kind::Reasoning);
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_key(|number| (self.places_in_session[*number], *number));
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

/// Items and kinds as the script knows them.
#[derive(Debug, Serialize)]
pub(super) struct Finished {
    /// Class, name, sign, and the place among kinds of as many tokens.
    kinds: Vec<(&'static str, String, char, usize)>,
    /// The number of the kind that reasoning belongs to.
    reasoning: usize,
    items: Vec<Known>,
    /// The place of each item in the order of the session.
    rank: Vec<usize>,
}

/// How one state differs from the one before: what enters or has other tokens there (number, tokens, tokens
/// of reasoning, one behind the other), and what leaves.
pub(super) fn difference(before: &Held, now: &Held) -> (Vec<u64>, Vec<usize>) {
    let enters = now.iter().filter(|(number, tokens)| before.get(number) != Some(tokens));
    let enters = enters.flat_map(|(number, (tokens, thought))| [*number as u64, *tokens, *thought]).collect();
    (enters, before.keys().filter(|number| !now.contains_key(number)).copied().collect())
}
