//! The labels in a reply, and the quotes before them.

use std::ops::Range;

/// The most labels in one pair of brackets.
const MOST_LABELS: usize = 50;

/// Maximum bytes of a quote. A longer text between quotation marks is none.
const LONGEST_QUOTE: usize = 4_000;

/// Pairs of quotation marks. A mark may close several kinds of quotes.
const PAIRS: [(char, char); 9] = [
    ('“', '”'),
    ('„', '“'),
    ('„', '”'),
    ('”', '”'),
    ('«', '»'),
    ('»', '«'),
    ('「', '」'),
    ('『', '』'),
    ('"', '"'),
];

/// Labels between a pair of brackets.
#[derive(Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) labels: Vec<u32>,
    pub(super) range: Range<usize>,
    pub(super) quote: Option<Range<usize>>,
}

/// Finds the labels of a reply outside of code, in their order.
pub(super) fn find(reply: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for prose in prose(reply) {
        let mut at = prose.start;
        while let Some(found) = reply[at..prose.end].find('[') {
            let open = at + found;
            at = open + 1;
            let Some((labels, end)) = labels(reply, open, prose.end) else { continue };
            at = end;
            // `[1](page)` is a link, and `[1]: page` at the beginning of a line is the target of one.
            let is_first =
                reply[..open].trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n');
            if reply[end..].starts_with('(') || (is_first && reply[end..].starts_with(':')) {
                continue;
            }
            let before = marks.last().filter(|last| {
                last.range.end >= prose.start
                    && reply[last.range.end..open].trim_matches([' ', ',']).is_empty()
            });
            let quote = match before {
                Some(last) => last.quote.clone(),
                None => quote_before(reply, prose.start, open),
            };
            marks.push(Mark { labels, range: open..end, quote });
        }
    }
    marks
}

/// Reads the labels after a bracket, and the place after the closing one. Returns `None` if there is
/// something else.
fn labels(reply: &str, open: usize, end: usize) -> Option<(Vec<u32>, usize)> {
    let close = open + reply[open..end.min(open + 8 * MOST_LABELS).max(open)].find(']')?;
    let mut labels = Vec::new();
    for part in reply[open + 1..close].split([',', ';']) {
        let mut ends = part.trim().splitn(2, ['-', '–']).map(|number| {
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
    Some((labels, close + 1))
}

/// Returns the quote that ends directly before a label. Returns `None` if there is none.
fn quote_before(reply: &str, start: usize, label: usize) -> Option<Range<usize>> {
    let start = round_up(reply, start.max(label.saturating_sub(LONGEST_QUOTE)));
    let paragraph = reply[start..label].rfind("\n\n").map_or(start, |at| start + at + 2);
    let before =
        reply[paragraph..label].trim_end_matches([' ', '\n', '.', ',', ';', ':', '!', '?', '*', '_', '(']);
    let close = before.chars().next_back()?;
    let end = paragraph + before.len() - close.len_utf8();
    let opens = PAIRS.iter().filter(|pair| pair.1 == close).map(|pair| pair.0);
    let nearest = opens.filter_map(|open| {
        let at = reply[paragraph..end].rfind(open)?;
        Some(paragraph + at + open.len_utf8())
    });
    let quote = nearest.max().map(|from| from..end);
    quote
        .filter(|quote| !reply[quote.clone()].trim().is_empty())
        .or_else(|| block_quote(reply, paragraph, label))
}

/// Returns the lines of a block quote at whose end a label is. Returns `None` if the label is in none.
fn block_quote(reply: &str, paragraph: usize, label: usize) -> Option<Range<usize>> {
    let mut start = None;
    let mut end = label;
    loop {
        let line = reply[paragraph..end].rfind('\n').map_or(paragraph, |at| paragraph + at + 1);
        if !reply[line..].trim_start_matches(' ').starts_with('>') {
            break;
        }
        start = Some(line);
        if line == paragraph {
            break;
        }
        end = line - 1;
    }
    start
        .map(|start| start..label)
        .filter(|quote| !reply[quote.clone()].trim_matches(['>', ' ', '\n']).is_empty())
}

/// Returns the parts of a reply outside of code: fenced blocks, and text between backticks.
fn prose(reply: &str) -> Vec<Range<usize>> {
    let mut prose = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let (mut start, mut at) = (0, 0);
    for line in reply.split_inclusive('\n') {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| ['`', '~'].contains(mark));
        let length = mark.map_or(0, |mark| text.chars().take_while(|c| *c == mark).count());
        match fence {
            None if length >= 3 => {
                without_code(reply, start..at, &mut prose);
                fence = mark.map(|mark| (mark, length));
            }
            Some((open, least)) if mark == Some(open) && length >= least => {
                fence = None;
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

    fn found(reply: &str) -> Vec<(Vec<u32>, Option<&str>)> {
        find(reply).into_iter().map(|mark| (mark.labels, mark.quote.map(|quote| &reply[quote]))).collect()
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
        assert_eq!(quoted("« cinq jours » ([1])"), [Some(" cinq jours ".to_owned())]);
        assert_eq!(quoted("她说「五天」[1]"), [Some("五天".to_owned())]);
        assert_eq!(quoted("> Refunds take\n> 5 days. [1]"), [Some("> Refunds take\n> 5 days. ".to_owned())]);
        assert_eq!(quoted("\"Five\" is what they say [1]"), [None]);
        assert_eq!(quoted("It is \"\" [1]"), [None]);
        assert_eq!(quoted("\"a\n\nb\" [1]"), [None]);
    }

    #[test]
    fn hostile_replies_take_linear_time() {
        for part in ["[", "[1]", "`", "``` ", "\"", "> [1]", "„", "[1,", "a\n\n", "`` ` "] {
            assert!(find(&part.repeat(50_000)).len() <= 50_000, "{part}");
        }
    }
}
