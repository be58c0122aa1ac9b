//! Adds documents with texts of words to generated sessions: chunks of one source that overlap, versions that
//! differ by a few words, documents of several ranked lists, and texts that the conversation contains. The
//! options that read texts are on in some of these sessions only.

use super::{Document, LISTS, Quoting, Session, ttl};
use context_window::config::{DocumentFormat, DocumentOrder, ListOptions, RagOptions, Variants};
use proptest::prelude::*;

/// The words of a source. Few and short, so that runs of words repeat and brute force stays possible.
const WORDS: [&str; 12] = ["a", "be", "cat", "do", "eel", "fox", "go", "hut", "ink", "joy", "7", "40"];

/// Words that replace others in some sources: of several bytes, of a script without spaces, and escaped
/// between delimiters.
const ODD_WORDS: [(&str, &str); 3] = [("ink", "É"), ("joy", "猫"), ("hut", "<Document")];

/// The number of words in a source.
const SOURCE: usize = 36;

/// The words from the beginning of one chunk to that of the next one.
const STRIDE: usize = 3;

/// The words of a line. A chunk may end with the line break.
const LINE: usize = 7;

/// A change of a chunk's text.
#[derive(Debug, Clone, Copy)]
enum Edit {
    None,
    Stop,
    Comma(usize),
    Word(usize, &'static str),
    Longer(usize),
    Shorter,
    Upper,
    LineBreak,
}

/// The place of a chunk in its source, as a document states it.
#[derive(Debug, Clone, Copy)]
enum Stated {
    Nothing,
    Bytes,
    Characters,
    Number,
    Both,
    WrongSpan,
    WrongNumber,
}

#[derive(Debug, Clone)]
struct Chunk {
    /// `None` for an id of its own.
    id: Option<usize>,
    source: usize,
    number: usize,
    words: usize,
    /// True if the text ends with the space before the next word.
    has_space: bool,
    edit: Edit,
    has_origin: bool,
    stated: Stated,
    date: Option<i64>,
    score: i32,
    ttl: Option<context_window::Ttl>,
    list: usize,
    /// The place and the number of the messages that it quotes.
    recalls: Option<(usize, usize)>,
    /// A further list that contains the document, with the score there. True if it lacks the attributes.
    again: Option<(usize, i32, bool)>,
}

#[derive(Debug, Clone)]
struct Options {
    /// True if no other option limits documents, and there is more room for them.
    are_alone: bool,
    near_duplicates: u8,
    repeats: u8,
    join_chunks: bool,
    order: DocumentOrder,
    max_source_items: Option<u64>,
    lists: Vec<(u8, Option<u64>, Option<u64>)>,
    recall_share: u16,
    labels: bool,
}

#[derive(Debug, Clone)]
struct Texts {
    sources: Vec<Vec<&'static str>>,
    is_odd: bool,
    chunks: Vec<Chunk>,
    has_lists: bool,
    /// The item that quotes, as a number, the document, and the number of words that it leaves out.
    quotes: Vec<(usize, bool, usize, usize)>,
    /// Ranks and joins of the last prompt.
    before: (Vec<u32>, Vec<u32>),
    options: Options,
}

const IDS: [&str; 8] = ["d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"];

/// The templates of documents: the header, and the text before the documents.
pub const TEMPLATES: [(&str, &str); 3] = [
    (r#"n="no. {position}" file="{source}" id="{id}" on="{date}""#, "Found for <document> you:\nuse it. "),
    (r#"kind="<page>" of="{score} points" as="{form}, {source}""#, ""),
    // Many documents have no attribute at all.
    (r#"on="{date}""#, ""),
];

/// Returns these sessions, almost half of them with texts of words, and some with variants of documents.
pub fn with_texts(sessions: impl Strategy<Value = Session>) -> impl Strategy<Value = Session> {
    let texts = prop_oneof![11 => Just(None), 9 => texts().prop_map(Some)];
    let dependents = prop::option::weighted(0.3, dependents());
    let forms = prop::option::weighted(0.35, forms());
    let group = prop_oneof![2 => Just(None), 3 => Just(Some("g1")), 1 => Just(Some("g2"))];
    let groups = prop::option::weighted(0.3, prop::collection::vec(group, 1..6));
    let native = prop::bool::weighted(0.2);
    let template = prop::option::weighted(0.2, prop::sample::select(&TEMPLATES[..]));
    (sessions, texts, forms, dependents, groups, native, template).prop_map(
        |(session, texts, forms, dependents, groups, is_native, template)| {
            let session = match texts {
                Some(texts) => texts.added_to(session),
                None => session,
            };
            let session = match forms {
                Some(forms) => forms.added_to(session),
                None => session,
            };
            let mut session = match dependents {
                Some(dependents) => with_dependents(session, &dependents),
                None => session,
            };
            if is_native {
                session.config.rag.format = DocumentFormat::Native;
            }
            if let Some((header, introduction)) = template {
                let template = &mut session.config.rag.template;
                (template.header, template.introduction) = (header.into(), introduction.into());
            }
            let groups = groups.unwrap_or_default();
            for (document, group) in session.rag.iter_mut().zip(groups.into_iter().cycle()) {
                document.group = group;
                if group.is_some() {
                    document.requires.clear();
                }
            }
            session
        },
    )
}

/// For each document, the places of documents that it requires.
fn dependents() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let required = prop_oneof![
        4 => Just(Vec::new()),
        4 => prop::collection::vec(0usize..8, 1),
        1 => prop::collection::vec(0usize..8, 2),
    ];
    prop::collection::vec(required, 1..6)
}

/// Returns a session in which documents require others, never each other: only ids before their own in the
/// alphabet, or ids that no document has.
fn with_dependents(mut session: Session, required: &[Vec<usize>]) -> Session {
    let ids: Vec<&'static str> = session.rag.iter().map(|document| document.id).collect();
    for (document, places) in session.rag.iter_mut().zip(required.iter().cycle()) {
        let of = places.iter().map(|place| ids.get(*place).copied().unwrap_or("nobody"));
        document.requires = of.filter(|id| *id < document.id || *id == "nobody").collect();
    }
    session
}

/// Variants for the documents of a session.
#[derive(Debug, Clone)]
struct Forms {
    /// The lengths for each document, per mille, again from the start after the last.
    lengths: Vec<Vec<u16>>,
    order: Variants,
    /// The forms of the last prompt, by place.
    before: Vec<(u32, usize)>,
}

fn forms() -> impl Strategy<Value = Forms> {
    let length = prop::sample::select(&[0u16, 50, 100, 200, 300, 500, 700, 900, 1000][..]);
    let lengths = prop::collection::vec(prop::collection::vec(length, 0..4), 1..6);
    let order = prop::sample::select(
        &[Variants::Depth, Variants::Depth, Variants::Breadth, Variants::Breadth, Variants::Off][..],
    );
    let before = prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec((0u32..4, 0usize..3), 0..4)];
    (lengths, order, before).prop_map(|(lengths, order, before)| Forms { lengths, order, before })
}

impl Forms {
    fn added_to(self, mut session: Session) -> Session {
        for (document, lengths) in session.rag.iter_mut().zip(self.lengths.iter().cycle()) {
            document.variants.clone_from(lengths);
        }
        session.config.rag.variants = self.order;
        if let Some(before) = &mut session.before {
            before.variants = self.before;
        }
        session
    }
}

fn texts() -> impl Strategy<Value = Texts> {
    let word = || prop::sample::select(&WORDS[..]);
    let period = prop::collection::vec(word(), 2..8)
        .prop_map(|words| words.iter().copied().cycle().take(SOURCE).collect::<Vec<_>>());
    let source = prop_oneof![4 => prop::collection::vec(word(), SOURCE), 1 => period];
    let quote =
        (0usize..20, prop::bool::weighted(0.3), 0usize..8, prop_oneof![3 => Just(0usize), 1 => 1usize..4]);
    let ranks = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(0u32..6, 0..6)];
    let joined = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(0u32..6, 0..4)];
    (
        (prop::collection::vec(source, 2), prop::bool::weighted(0.15)),
        (prop::collection::vec(chunk(), 1..8), prop::bool::weighted(0.4)),
        prop::collection::vec(quote, 0..4),
        (ranks, joined),
        options(),
    )
        .prop_map(|((sources, is_odd), (chunks, has_lists), quotes, before, options)| Texts {
            sources,
            is_odd,
            chunks,
            has_lists,
            quotes,
            before,
            options,
        })
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let place = 0usize..14;
    let edit = prop_oneof![
        9 => Just(Edit::None),
        1 => Just(Edit::Stop),
        1 => place.clone().prop_map(Edit::Comma),
        3 => (place, prop::sample::select(&WORDS[..])).prop_map(|(at, word)| Edit::Word(at, word)),
        1 => (1usize..4).prop_map(Edit::Longer),
        1 => Just(Edit::Shorter),
        1 => Just(Edit::Upper),
        1 => Just(Edit::LineBreak),
    ];
    let stated = prop_oneof![
        5 => Just(Stated::Nothing),
        2 => Just(Stated::Bytes),
        1 => Just(Stated::Characters),
        2 => Just(Stated::Number),
        1 => Just(Stated::Both),
        1 => Just(Stated::WrongSpan),
        1 => Just(Stated::WrongNumber),
    ];
    let words = prop_oneof![5 => Just(14usize), 1 => Just(12), 1 => Just(11), 1 => Just(6), 1 => Just(5), 1 => Just(24)];
    let source = (prop_oneof![6 => Just(0usize), 1 => Just(1)], 0usize..7, words, prop::bool::weighted(0.2));
    let id = prop_oneof![9 => Just(None), 1 => (0usize..7).prop_map(Some)];
    let again = prop::option::weighted(0.2, (0usize..3, 0i32..4, prop::bool::weighted(0.3)));
    let ttl = prop_oneof![9 => Just(None), 1 => ttl()];
    let recalls =
        prop::option::weighted(0.35, (0usize..14, prop::sample::select(&[1usize, 1, 1, 2, 3, 0][..])));
    (
        (id, source, edit, recalls),
        (prop::bool::weighted(0.9), stated, prop::option::weighted(0.3, 0i64..3)),
        (0i32..5, ttl, 0usize..3, again),
    )
        .prop_map(
            |(
                (id, (source, number, words, has_space), edit, recalls),
                (has_origin, stated, date),
                (score, ttl, list, again),
            )| Chunk {
                id,
                source,
                number,
                words,
                has_space,
                edit,
                has_origin,
                stated,
                date,
                score,
                ttl,
                list,
                recalls,
                again,
            },
        )
}

fn options() -> impl Strategy<Value = Options> {
    let share = || prop::sample::select(&[0u8, 50, 80, 90, 100][..]);
    let order = prop_oneof![
        3 => Just(DocumentOrder::Relevance),
        1 => Just(DocumentOrder::RelevanceLast),
        1 => Just(DocumentOrder::Edges),
        1 => Just(DocumentOrder::Source),
    ];
    let limit = |most: u64| prop::option::weighted(0.1, 1..most);
    let weight = prop::sample::select(&[1u8, 1, 1, 2, 3, 100][..]);
    let lists = prop::collection::vec((weight, limit(4), limit(250)), LISTS.len());
    let recall_share = prop::sample::select(&[0u16, 100, 400, 1000][..]);
    let recalled_and_labels = (recall_share, prop::bool::weighted(0.3));
    (any::<bool>(), share(), share(), prop::bool::weighted(0.6), order, limit(4), lists, recalled_and_labels)
        .prop_map(
            |(
                are_alone,
                near_duplicates,
                repeats,
                join_chunks,
                order,
                max_source_items,
                lists,
                (recall_share, labels),
            )| Options {
                are_alone,
                near_duplicates,
                repeats,
                join_chunks,
                order,
                max_source_items,
                lists,
                recall_share,
                labels,
            },
        )
}

impl Texts {
    fn added_to(&self, mut session: Session) -> Session {
        let sources = self.sources.iter().map(|words| self.words_of(words)).collect::<Vec<_>>();
        session.rag.clear();
        for (at, chunk) in self.chunks.iter().enumerate() {
            let mut document = chunk.document(at, &sources[chunk.source]);
            // Most quote messages of the session; some name messages that it does not have.
            let lines = session.lines.len() + 1;
            document.recalls = chunk.recalls.map(|(at, count)| (at % lines, count));
            if let Some((list, score, is_bare)) = chunk.again {
                let mut copy = Document { list, score, ..document.clone() };
                if is_bare {
                    (copy.origin, copy.span, copy.position, copy.recalls) = (None, None, None, None);
                }
                session.rag.push(copy);
            }
            session.rag.push(document);
        }
        session.has_lists = self.has_lists;
        for (at, is_note, document, less) in &self.quotes {
            let most = if *is_note { session.notes.len() } else { session.lines.len() };
            // The oracle clips and cuts at any byte.
            if most > 0 && !self.is_odd {
                let document = &session.rag[document % session.rag.len()].text;
                let quote = document.split_whitespace().skip(*less).collect::<Vec<_>>().join(" ");
                let by = if *is_note { Quoting::Note(at % most) } else { Quoting::Line(at % most) };
                session.quotes.push((by, quote));
            }
        }
        if let Some(before) = &mut session.before {
            (before.ranks, before.joined) = self.before.clone();
        }
        if self.options.are_alone {
            let placement = session.config.rag.placement;
            session.config.rag = RagOptions::default();
            session.config.rag.placement = placement;
            session.config.sections.rag.cap = None;
            session.budget += 500;
        }
        let rag = &mut session.config.rag;
        let options = &self.options;
        (rag.near_duplicates, rag.repeats) = (options.near_duplicates, options.repeats);
        (rag.join_chunks, rag.order) = (options.join_chunks, options.order);
        rag.max_source_items = options.max_source_items;
        rag.recall_share = options.recall_share;
        rag.labels = options.labels;
        for (name, (weight, max_items, max_tokens)) in LISTS.iter().zip(&options.lists) {
            let mut list = ListOptions::default();
            (list.weight, list.max_items, list.max_tokens) = (*weight, *max_items, *max_tokens);
            rag.lists.insert((*name).to_owned(), list);
        }
        session
    }

    fn words_of(&self, words: &[&'static str]) -> Vec<&'static str> {
        let odd = |word: &&'static str| {
            let odd = ODD_WORDS.iter().find(|(plain, _)| self.is_odd && plain == word);
            odd.map_or(*word, |(_, odd)| odd)
        };
        words.iter().map(odd).collect()
    }
}

impl Chunk {
    fn document(&self, at: usize, source: &[&'static str]) -> Document {
        let first = self.number * STRIDE;
        let end = (first + self.words).min(source.len());
        let separated =
            |at: usize| format!("{}{}", source[at], if at % LINE == LINE - 1 { '\n' } else { ' ' });
        let before: String = (0..first).map(separated).collect();
        let mut text: String = (first..end).map(separated).collect();
        if !self.has_space {
            text.pop();
        }
        let (bytes, characters) = (before.len() as u64, before.chars().count() as u64);
        let in_bytes = bytes..bytes + text.len() as u64;
        let in_characters = characters..characters + text.chars().count() as u64;
        let number = self.number as u64;
        let (span, position) = match self.stated {
            Stated::Nothing => (None, None),
            Stated::Bytes => (Some(in_bytes), None),
            Stated::Characters => (Some(in_characters), None),
            Stated::Number => (None, Some(number)),
            Stated::Both => (Some(in_bytes), Some(number)),
            Stated::WrongSpan => (Some(in_bytes.start + 1..in_bytes.end + 3), None),
            Stated::WrongNumber => (None, Some(number / 2)),
        };
        Document {
            origin: self.has_origin.then_some(["o1", "o2"][self.source]),
            ttl: self.ttl,
            span,
            position,
            date: self.date,
            list: self.list,
            text: self.edit.applied_to(text),
            ..Document::plain(IDS[self.id.unwrap_or(at)], 0, self.score)
        }
    }
}

impl Edit {
    fn applied_to(self, text: String) -> String {
        let replaced = |at: usize, change: &dyn Fn(&str) -> String| {
            let words: Vec<&str> = text.split(' ').collect();
            let change = |(number, word): (usize, &&str)| {
                if number == at % words.len() { change(word) } else { (*word).to_owned() }
            };
            words.iter().enumerate().map(change).collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::None => text,
            Self::Stop => text + ".",
            Self::Comma(at) => replaced(at, &|word| format!("{word},")),
            Self::Word(at, word) => replaced(at, &|_| word.to_owned()),
            Self::Longer(words) => text + &" ow".repeat(words),
            Self::Shorter => text.rsplit_once(' ').map_or(text.clone(), |(rest, _)| rest.to_owned()),
            Self::Upper => text.to_uppercase(),
            Self::LineBreak => text + "\n",
        }
    }
}
