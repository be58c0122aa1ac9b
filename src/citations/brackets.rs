//! The labels in a reply, and the quotes before them.

use std::ops::Range;

/// The most labels in one pair of brackets.
const MOST_LABELS: usize = 50;

/// Maximum bytes of a quote. A longer text between quotation marks is none.
const LONGEST_QUOTE: usize = 2_000;

/// Pairs of quotation marks. A mark may close several kinds of quotes.
const PAIRS: [(char, char); 15] = [
    ('“', '”'),
    ('„', '“'),
    ('„', '”'),
    ('„', '"'),
    ('”', '”'),
    ('«', '»'),
    ('»', '«'),
    ('»', '»'),
    ('‹', '›'),
    ('›', '‹'),
    ('‘', '’'),
    ('‚', '‘'),
    ('「', '」'),
    ('『', '』'),
    ('"', '"'),
];

/// Characters that may be between a quote and its label.
const BETWEEN: &[char] = &[
    ' ', '\n', '.', ',', ';', ':', '!', '?', '*', '_', '(', '—', '–', '-', '>', '\\', '。', '，', '、', '；',
    '：', '！', '？', '؟', '،', '।',
];

/// A pair of brackets with labels, such as `[1, 2]`.
#[derive(Debug, PartialEq)]
pub(super) struct Brackets {
    pub(super) labels: Vec<u32>,
    pub(super) range: Range<usize>,
    pub(super) quote: Option<Range<usize>>,
}

/// Finds the labels of a reply outside of code, in their order.
pub(super) fn find(reply: &str) -> Vec<Brackets> {
    let mut all: Vec<Brackets> = Vec::new();
    for prose in prose(reply) {
        let mut at = prose.start;
        while let Some(found) = reply[at..prose.end].find(['[', '【']) {
            let open = at + found;
            at = open + if reply[open..].starts_with('[') { 1 } else { '【'.len_utf8() };
            let Some((labels, end)) = labels(reply, open, prose.end) else { continue };
            at = end;
            let last = all.last().filter(|last| last.range.end >= prose.start);
            if is_link(reply, &(open..end), last) {
                continue;
            }
            let start = last.map_or(prose.start, |last| last.range.end);
            let before = last.filter(|_| reply[start..open].trim_matches([' ', ',', '\\']).is_empty());
            let quote = match before {
                Some(last) => last.quote.clone(),
                None => quote_before(reply, prose.start, open).or_else(|| block_quote(reply, start, open)),
            };
            all.push(Brackets { labels, range: open..end, quote });
        }
    }
    all
}

/// Checks if brackets are a part of a link: `[1](page)`, `[page][1]`, or `[1]: page` at the beginning of a
/// line.
fn is_link(reply: &str, brackets: &Range<usize>, last: Option<&Brackets>) -> bool {
    let (before, after) = (&reply[..brackets.start], &reply[brackets.end..]);
    let is_first = before.trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n');
    let follows_text = before.ends_with(']') && last.is_none_or(|last| last.range.end != brackets.start);
    after.starts_with('(') || (is_first && after.starts_with(':')) || follows_text
}

/// Reads the labels after a bracket, and the place after the closing one. Returns `None` if there is
/// something else.
fn labels(reply: &str, open: usize, end: usize) -> Option<(Vec<u32>, usize)> {
    let bracket = reply[open..].chars().next()?;
    let closing = if bracket == '[' { ']' } else { '】' };
    let mut near = reply[open..end].char_indices().take(8 * MOST_LABELS);
    let close = open + near.find(|(_, c)| *c == closing)?.0;
    let mut labels = Vec::new();
    for part in reply[open + bracket.len_utf8()..close].split([',', ';', '，', '、']) {
        let mut ends = part.trim_end_matches('\\').splitn(2, ['-', '–']).map(|number| {
            let number = number.trim();
            number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse::<u32>().ok())?
        });
        let first = ends.next()??;
        let last = ends.next().map_or(Some(first), |last| last)?;
        let count = usize::try_from(last.checked_sub(first)?).ok()?;
        if labels.len() + count >= MOST_LABELS {
            return None;
        }
        labels.extend(first..=last);
    }
    Some((labels, close + closing.len_utf8()))
}

/// Returns the quote that ends directly before a label. Returns `None` if there is none.
fn quote_before(reply: &str, start: usize, label: usize) -> Option<Range<usize>> {
    let start = round_up(reply, start.max(label.saturating_sub(LONGEST_QUOTE)));
    let before = reply[start..label].trim_end_matches(BETWEEN);
    let close = before.chars().next_back()?;
    let end = start + before.len() - close.len_utf8();
    let opens = PAIRS.iter().filter(|pair| pair.1 == close).map(|pair| pair.0);
    let nearest = opens.filter_map(|open| {
        let at = reply[start..end].rfind(open)?;
        Some(start + at + open.len_utf8())
    });
    let quote = nearest.max().map(|from| from..end);
    quote.filter(|quote| !reply[quote.clone()].trim().is_empty())
}

/// Returns the end of a block quote before a label, from `start` on. Returns `None` if the label is in none.
fn block_quote(reply: &str, start: usize, label: usize) -> Option<Range<usize>> {
    let least = round_up(reply, start.max(label.saturating_sub(LONGEST_QUOTE)));
    let is_quoted = |line: usize| reply[line..label].trim_start_matches(' ').starts_with('>');
    let (mut from, mut end) = (None, label);
    loop {
        let line = reply[..end].rfind('\n').map_or(0, |at| at + 1);
        if !is_quoted(line) {
            break;
        }
        from = Some(line.max(least));
        if line <= least {
            break;
        }
        end = line - 1;
    }
    let from = from?;
    let before = reply[from..label].trim_end_matches(BETWEEN);
    let inside = before.trim_start_matches(BETWEEN);
    let first = from + before.len() - inside.len();
    (!inside.is_empty()).then(|| first..first + inside.len())
}

/// Returns the parts of a reply outside of code: fenced blocks, and text between backticks. No part has an
/// empty line.
fn prose(reply: &str) -> Vec<Range<usize>> {
    let mut prose = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let (mut start, mut at) = (0, 0);
    for line in reply.split_inclusive('\n') {
        // A fence may be in a list or in a block quote.
        let text = line.trim().trim_start_matches(['>', ' ', '\t', '-', '*', '+']);
        let mark = text.chars().next().filter(|mark| ['`', '~'].contains(mark));
        let length = mark.map_or(0, |mark| text.chars().take_while(|c| *c == mark).count());
        let rest = text.get(length..).unwrap_or_default();
        match fence {
            None if length >= 3 && !(mark == Some('`') && rest.contains('`')) => {
                without_code(reply, start..at, &mut prose);
                fence = mark.map(|mark| (mark, length));
            }
            Some((open, least)) if mark == Some(open) && length >= least && rest.is_empty() => {
                fence = None;
                start = at + line.len();
            }
            None if line.trim().is_empty() => {
                without_code(reply, start..at, &mut prose);
                start = at + line.len();
            }
            _ => {}
        }
        at += line.len();
    }
    if fence.is_none() {
        without_code(reply, start..at, &mut prose);
    }
    prose
}

/// Adds the parts of a text that are not between equal runs of backticks.
fn without_code(reply: &str, text: Range<usize>, prose: &mut Vec<Range<usize>>) {
    let (mut start, mut at) = (text.start, text.start);
    // The last run of each length: a run without a partner is text, and is found by one look.
    let mut lasts = std::collections::BTreeMap::new();
    let run = |at: usize| reply[at..text.end].bytes().take_while(|b| *b == b'`').count();
    while let Some(found) = reply[at..text.end].find('`') {
        let open = at + found;
        at = open + run(open);
        lasts.insert(at - open, open);
    }
    at = text.start;
    while let Some(found) = reply[at..text.end].find('`') {
        let open = at + found;
        let length = run(open);
        at = open + length;
        if lasts.get(&length).is_none_or(|last| *last <= open) {
            continue;
        }
        let mut close = at;
        while let Some(found) = reply[close..text.end].find('`') {
            close += found;
            let other = run(close);
            close += other;
            if other == length {
                break;
            }
        }
        prose.push(start..open);
        (start, at) = (close, close);
    }
    prose.push(start..text.end);
}

fn round_up(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(reply: &str) -> Vec<(Vec<u32>, Option<&str>)> {
        find(reply).into_iter().map(|one| (one.labels, one.quote.map(|quote| &reply[quote]))).collect()
    }

    #[test]
    fn labels_are_found_in_prose_only() {
        assert_eq!(
            found("Five days[1], or six [2, 4] [7-9]."),
            [(vec![1], None), (vec![2, 4], None), (vec![7, 8, 9], None)]
        );
        for none in [
            "a `list[1]` and ``x `[1]` ``",
            "```\n[1]\n```",
            "~~~\n[1]\n``` [2]",
            "[1](https://a.example) [^1] [] [a] [1.5] [1",
            "[1]: https://a.example",
            "[9-1] [1-999] [99999999999]",
        ] {
            assert_eq!(found(none), [], "{none}");
        }
        assert_eq!(found("```\nx\n```\nIt is so [3], not `[4]` [5].").len(), 2);
        assert_eq!(found("a ` lone tick [1]").len(), 1);
        for one in [
            "1. Run:\n- ```\n  ls\n  ```\nThen wait [1].",
            "```ls``` is it [1].",
            "Use ` here [1].\n\nAnd ` there.",
            "说明[1]好",
            "see 【1】",
            "see \\[1\\]",
            "```\n```python [7]\n```\n[1]",
        ] {
            assert_eq!(found(one), [(vec![1], None)], "{one}");
        }
        assert_eq!(found("在[1，2、3]")[0].0, [1, 2, 3]);
        assert_eq!(found(&format!("说明[1]{}", "好".repeat(150)))[0].0, [1]);
        assert_eq!(found("[the guide][1]"), []);
    }

    #[test]
    fn quotes_end_before_their_labels() {
        let quoted = |reply: &str| {
            found(reply).into_iter().map(|(_, quote)| quote.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(
            quoted("He said \"no\", then \"take 5 days.\" [1][2]"),
            [Some("take 5 days.".to_owned()), Some("take 5 days.".to_owned())]
        );
        assert_eq!(quoted("Sie „dauern 5 Tage“ [1]."), [Some("dauern 5 Tage".to_owned())]);
        assert_eq!(quoted("Sie „dauern\" und „bar\" [1]."), [Some("bar".to_owned())]);
        assert_eq!(quoted("« cinq jours » ([1])"), [Some(" cinq jours ".to_owned())]);
        let two = [Some("five days".to_owned()), Some("fünf Tage".to_owned())];
        assert_eq!(quoted("‘five days’ [1], »fünf Tage« [2]"), two);
        assert_eq!(quoted("“五天”。[1]"), [Some("五天".to_owned())]);
        assert_eq!(quoted("她说「五天」[1]"), [Some("五天".to_owned())]);
        assert_eq!(quoted("> Refunds take\n> 5 days. [1]"), [Some("Refunds take\n> 5 days".to_owned())]);
        let three = [Some("Five days".to_owned()), Some("By card".to_owned()), None];
        assert_eq!(quoted("> Five days [1].\n> By card [2].\n> — [3]"), three);
        assert_eq!(quoted("Text\n> Five days.\n> — [1]"), [Some("Five days".to_owned())]);
        assert_eq!(quoted("\"Five\" is what they say [1]"), [None]);
        assert_eq!(quoted("It is \"\" [1]"), [None]);
        assert_eq!(quoted("\"a\n\nb\" [1]"), [None]);
    }

    proptest! {
        #[test]
        fn places_are_characters_of_any_reply(
            parts in prop::collection::vec(prop_oneof!["[^\\[\\]]{0,9}", Just("[".to_owned()), Just("]".to_owned()),
                Just("[1]".to_owned()), Just("é".repeat(210)), Just("“".to_owned()), Just("”".to_owned()),
                Just("\n> ".to_owned()), Just("`".to_owned()), Just("\n\n".to_owned())], 0..40),
        ) {
            let reply = parts.concat();
            let all = find(&reply);
            prop_assert!(all.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
            for one in all {
                let brackets = &reply[one.range.clone()];
                prop_assert!(brackets.starts_with('[') && brackets.ends_with(']'));
                if let Some(quote) = one.quote {
                    prop_assert!(!reply[quote.clone()].is_empty() && quote.end <= one.range.start);
                }
            }
        }
    }

    #[test]
    fn every_label_of_a_hostile_reply_is_found() {
        let times = 50_000;
        for (part, each) in [
            ("[", 0),
            ("[1]", 1),
            ("`", 0),
            ("``` ", 0),
            ("\"", 0),
            ("\"[1] ", 1),
            ("> [1]", 1),
            ("„", 0),
            ("[1,", 0),
            ("a\n\n", 0),
            ("`` ` ", 0),
            ("“a… [1]", 1),
        ] {
            let found = find(&part.repeat(times)).len();
            assert!(found.abs_diff(each * times) <= 1, "{part}: {found}");
        }
    }
}
