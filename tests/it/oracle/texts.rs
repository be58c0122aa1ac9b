//! The documents of several lists as items, and texts that contain most of another text (rules S8, S9).

use super::*;
use std::{cmp::Reverse, ops::Range};

/// A document of the request: one item for each id and text of several lists.
#[derive(Debug, Clone)]
pub struct Item {
    pub id: &'static str,
    pub text: String,
    pub score: i32,
    pub origin: Option<&'static str>,
    pub ttl: Option<Ttl>,
    pub span: Option<Range<u64>>,
    pub position: Option<u64>,
    pub date: Option<i64>,
    /// The place and the number of the messages that it quotes (rule S15).
    pub recalls: Option<(usize, usize)>,
    /// The texts of its variants.
    pub variants: Vec<String>,
    /// The ids of documents beside which it is sent.
    pub requires: Vec<&'static str>,
    /// The name of its group.
    pub group: Option<&'static str>,
    /// For each list, the score of the item there.
    hits: [Option<i32>; 3],
}

/// For each list, the rank of a document there.
pub type Ranks = [Option<u64>; 3];

/// Returns the items of a session. Of several copies of a document, the best one of each list is shared.
pub fn items(session: &Session) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let lists = if session.has_lists { 0..3 } else { 0..1 };
    for list in lists {
        let documents = session.rag.iter().filter(|one| !session.has_lists || one.list == list);
        let mut copies: Vec<Item> = documents
            .map(|document| {
                let mut hits = [None; 3];
                hits[list] = Some(document.score);
                Item {
                    id: document.id,
                    text: document.text.clone(),
                    score: document.score,
                    origin: document.origin,
                    ttl: document.ttl,
                    span: document.span.clone(),
                    position: document.position,
                    date: document.date,
                    recalls: document.recalls,
                    variants: document.variant_texts(),
                    requires: document.requires.clone(),
                    group: document.group,
                    hits,
                }
            })
            .collect();
        copies.sort_by_cached_key(Item::quality);
        let known = items.len();
        for copy in copies {
            let same = |item: &&mut Item| item.id == copy.id && item.text == copy.text;
            let best = items[..known].iter_mut().filter(same).min_by_key(|item| item.quality());
            match best.filter(|item| item.hits[list].is_none()) {
                Some(item) => {
                    item.hits[list] = Some(copy.score);
                    item.origin = item.origin.or(copy.origin);
                    item.ttl = item.ttl.or(copy.ttl);
                    item.span = item.span.take().or(copy.span);
                    item.position = item.position.or(copy.position);
                    item.date = item.date.or(copy.date);
                    item.recalls = item.recalls.or(copy.recalls);
                    if item.variants.is_empty() {
                        item.variants = copy.variants;
                    }
                    if copy.requires.is_empty() {
                        item.requires.clear();
                    }
                    item.group = item.group.or(copy.group);
                }
                None => items.push(copy),
            }
        }
    }
    items
}

impl Item {
    /// Returns the key by which copies of a document are ordered: of equal ones, the one with more attributes
    /// comes first.
    fn quality(&self) -> impl Ord + use<> {
        fn known<T>(attribute: Option<T>) -> (bool, Option<T>) {
            (attribute.is_none(), attribute)
        }
        let span = self.span.as_ref().map(|span| (span.start, span.end));
        let quoted = self.recalls.map(|(at, count)| (at, at + count));
        let places = (known(span), known(self.position), known(quoted));
        let variants = (self.variants.is_empty(), self.variants.clone());
        let requires = (self.requires.is_empty(), self.requires.clone(), known(self.group));
        let rest = (places, variants, requires);
        (Reverse(self.score), Reverse(self.date), known(self.origin), known(self.ttl), rest)
    }

    /// Returns the key by which items with equal values are ordered.
    fn tie(&self) -> impl Ord + use<> {
        let span = self.span.as_ref().map(|span| (span.start, span.end));
        let quoted = self.recalls.map(|(at, count)| (at, at + count));
        let rest = (self.position, quoted, self.variants.clone(), self.requires.clone(), self.group);
        (Reverse(self.date), self.id, self.text.clone(), self.origin, self.ttl, span, rest)
    }
}

impl Oracle<'_> {
    /// Returns the items by rank, each with its ranks in the lists (rule S8).
    pub fn by_rank(&self) -> Vec<(usize, Ranks)> {
        let ranks = self.list_ranks();
        let value = |at: usize| {
            let fused = (0..3).map(|list| {
                let name = generate::LISTS[list];
                let weight =
                    self.s.config.rag.lists.get(name).map_or(1, |options| u128::from(options.weight));
                ranks[at][list].map_or(0, |rank| weight * (1 << 40) / u128::from(60 + rank))
            });
            if self.fuses() { fused.sum::<u128>() as i128 } else { i128::from(self.items[at].score) }
        };
        let absent_last = |at: usize| ranks[at].map(|rank| rank.unwrap_or(u64::MAX));
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_cached_key(|at| {
            (self.place_in_the_set(*at), Reverse(value(*at)), absent_last(*at), self.items[*at].tie())
        });
        let mut placed: Vec<(usize, Ranks)> = order.iter().map(|at| (*at, ranks[*at])).collect();
        // Versions of an id change places: the newest one has the best.
        let ids: BTreeSet<&str> = self.items.iter().map(|item| item.id).collect();
        for id in ids {
            let places: Vec<usize> =
                (0..order.len()).filter(|place| self.items[order[*place]].id == id).collect();
            let mut versions: Vec<usize> = places.iter().map(|place| order[*place]).collect();
            versions.sort_by_key(|at| Reverse(self.items[*at].date));
            for (place, at) in places.into_iter().zip(versions) {
                placed[place] = (at, ranks[at]);
            }
        }
        placed
    }

    /// Returns true if there are several lists. The first one is no list if it is empty.
    fn fuses(&self) -> bool {
        self.s.has_lists
    }

    fn list_ranks(&self) -> Vec<Ranks> {
        let mut ranks = vec![[None; 3]; self.items.len()];
        if self.fuses() {
            for (list, _) in generate::LISTS.iter().enumerate() {
                let mut hits: Vec<usize> =
                    (0..self.items.len()).filter(|at| self.items[*at].hits[list].is_some()).collect();
                hits.sort_by_cached_key(|at| (Reverse(self.items[*at].hits[list]), self.items[*at].tie()));
                for (rank, at) in (1..).zip(hits) {
                    ranks[at][list] = Some(rank);
                }
            }
        }
        ranks
    }

    /// Returns the list that ranks an item best, the first of several.
    pub fn best_list(&self, at: usize) -> Option<usize> {
        let ranks = self.list_ranks()[at];
        let ranked = (0..3).filter_map(|list| Some((ranks[list]?, list)));
        ranked.min().map(|(_, list)| list)
    }

    /// Returns the included document that contains an item, as a reason (rule S9).
    pub fn near_duplicate(&self, at: usize, included: &[usize]) -> Option<String> {
        let least = self.s.config.rag.near_duplicates;
        if least == 0 || self.is_short_message(at) || self.place_in_the_set(at) < usize::MAX {
            return None;
        }
        let mut best: Option<(usize, usize)> = None;
        for (other, _) in self.by_rank().into_iter().filter(|(other, _)| included.contains(other)) {
            if let Some(share) = contained(&self.items[at].text, &self.items[other].text, least)
                && best.is_none_or(|(most, _)| share > most)
            {
                best = Some((share, other));
            }
        }
        best.map(|(share, other)| format!("near_duplicate of {} {share}", self.items[other].id))
    }

    /// Returns true if an item is a recalled message of fewer than eight runs (rule S15).
    fn is_short_message(&self, at: usize) -> bool {
        self.items[at].recalls.is_some() && words(&self.items[at].text).len() < 12
    }

    /// Returns true if the messages that an item quotes are all in the prompt, with their texts (rule S15).
    fn stands_in_the_window(&self, at: usize) -> bool {
        let Some((first, count)) = self.items[at].recalls.filter(|(_, count)| *count > 0) else {
            return false;
        };
        (first..first + count).all(|at| {
            at < self.s.lines.len()
                && self.text_sent(at) == self.texts[at]
                && !self.leading(at)
                && self.kept.contains_key(&Unit::Message(if self.is_head(at) {
                    at
                } else {
                    self.owner[at].unwrap_or(at)
                }))
        })
    }

    /// Returns the included text of the conversation that contains an item, or the messages that it quotes,
    /// as a reason (rules S9, S15).
    pub fn repeats(&self, at: usize) -> Option<String> {
        let least = self.s.config.rag.repeats;
        if self.place_in_the_set(at) < usize::MAX {
            return None;
        }
        if self.stands_in_the_window(at) {
            return Some("in_window".into());
        }
        if least == 0 || self.is_short_message(at) {
            return None;
        }
        let mut best: Option<(usize, String)> = None;
        for (id, text) in self.sources() {
            if let Some(share) = contained(&self.items[at].text, &text, least)
                && best.as_ref().is_none_or(|(most, _)| share > *most)
            {
                best = Some((share, id));
            }
        }
        best.map(|(share, id)| format!("repeats of {id} {share}"))
    }

    /// Returns the included texts of the conversation as sent, in prompt order, with their ids.
    fn sources(&self) -> Vec<(String, String)> {
        let note = |at: usize| (format!("n{at}"), self.s.note_text(at));
        let notes = (0..self.s.notes.len()).filter(|at| self.kept.contains_key(&Unit::Note(*at))).map(note);
        let mut sources: Vec<(String, String)> = notes.collect();
        for at in (0..self.s.lines.len()).filter(|at| !self.leading(*at)) {
            if self.kept.contains_key(&Unit::Message(at)) {
                let mut members = self.members(at);
                members[1..].sort_unstable();
                sources.extend(members.into_iter().map(|at| (format!("m{at}"), self.content_sent(at))));
            }
        }
        sources
    }

    /// Returns a message's text as sent, with the calls and results that are sent as user text (rule H9).
    fn content_sent(&self, at: usize) -> String {
        let text = self.text_sent(at);
        let head = self.owner[at].unwrap_or(at);
        let calls = &self.s.lines[head].calls;
        if !self.is_head(head) || calls.is_empty() {
            return text;
        }
        let number =
            |nth: usize| if calls.len() > 1 { format!(" number=\"{}\"", nth + 1) } else { String::new() };
        if at != head {
            let nth = self.answers[head].iter().position(|answer| *answer == Some(at)).unwrap();
            return format!("<tool_result{}>\n{text}\n</tool_result>", number(nth));
        }
        let call = |nth: usize| {
            let name = generate::tool_of(calls[nth]);
            format!("<tool_call{} name=\"{name}\">\n{{}}\n</tool_call>", number(nth))
        };
        std::iter::once(text).chain((0..calls.len()).map(call)).collect::<Vec<_>>().join("\n")
    }

    /// Returns the included documents in prompt order, each with its id and its ranks (rules O1, S5).
    pub fn arranged(&self) -> Vec<String> {
        let by_rank = self.by_rank();
        let included = by_rank.iter().map(|(at, _)| *at);
        let included = included.filter(|at| self.kept.contains_key(&Unit::Document(*at)));
        let (mut sent, mut new): (Vec<usize>, Vec<usize>) =
            included.partition(|at| self.place_in_the_set(*at) < usize::MAX);
        let set = self.set();
        sent.sort_by_key(|at| set.iter().position(|id| *id == self.items[*at].id));
        match self.s.config.rag.order {
            DocumentOrder::RelevanceLast => new.reverse(),
            DocumentOrder::Edges => {
                // The weakest document is in the middle: from the worst one on, each is put before or
                // behind the others.
                let mut edges: Vec<usize> = Vec::new();
                for (number, at) in new.iter().enumerate().rev() {
                    edges.insert(if number % 2 == 0 { 0 } else { edges.len() }, *at);
                }
                new = edges;
            }
            DocumentOrder::Source => {
                let by_source = |origin: Option<&str>, at: usize| {
                    let of_source =
                        |other: &usize| origin.is_some() && self.source(*other) == self.source(at);
                    new.iter().position(of_source).or(new.iter().position(|other| *other == at))
                };
                let mut sorted = new.clone();
                sorted.sort_by_key(|at| {
                    let item = &self.items[*at];
                    (by_source(item.origin, *at), item.span.as_ref().map(|span| span.start).or(item.position))
                });
                new = sorted;
            }
            _ => {}
        }
        let name = |at: usize| {
            let (_, ranks) = by_rank.iter().find(|(item, _)| *item == at).unwrap();
            let ranks = generate::LISTS.iter().zip(ranks).filter_map(|(name, rank)| Some((name, (*rank)?)));
            let ranks: String = ranks.map(|(name, rank)| format!(" {name} {rank}")).collect();
            format!("{}{ranks}", self.items[at].id)
        };
        sent.into_iter().chain(new).map(name).collect()
    }
}

/// Returns the words of a text: letters and digits in lower case. Each character of a script without spaces
/// is one, and each symbol. A number has its sign.
pub fn words(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    let letters: Vec<char> = text.to_lowercase().chars().collect();
    for (at, c) in letters.iter().copied().enumerate() {
        let follows = at.checked_sub(1).map_or(' ', |before| letters[before]);
        match c {
            '\u{3400}'..='\u{9fff}' => spaced.extend([' ', c, ' ']),
            '-' if !follows.is_alphanumeric() && letters.get(at + 1).is_some_and(char::is_ascii_digit) => {
                spaced.extend([' ', c]);
            }
            '<' | '>' | '=' | '+' | '%' | '&' | '^' | '~' | '$' | '€' | '£' => {
                spaced.extend([' ', c, ' '])
            }
            c if c.is_alphanumeric() => spaced.push(c),
            _ => spaced.push(' '),
        }
    }
    spaced.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the share of a text's runs of five words that another one has, in per cent, if the other one
/// contains the text.
fn contained(text: &str, other: &str, least: u8) -> Option<usize> {
    let (text, other) = (words(text), words(other));
    if text.len() < 5 + 7 {
        return (!text.is_empty() && text == other).then_some(100);
    }
    let has_number = |word: &&String| word.chars().any(char::is_numeric);
    let all_numbers = text.iter().filter(has_number).all(|number| other.contains(number));
    let runs = text.len() - 4;
    let found = text.windows(5).filter(|run| other.windows(5).any(|there| there == *run)).count();
    let is_enough = found * 100 >= runs * usize::from(least);
    (is_enough && all_numbers && other.len() >= text.len()).then_some(found * 100 / runs)
}
