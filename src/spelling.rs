//! What somebody may have meant.

/// The longest name, in bytes, that anybody means to write: comparing longer ones is work for nothing.
const LONGEST: usize = 100;

/// The candidate nearest to a name, if it is near enough to be a slip of the hand.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    // One slip in four letters, and no more than three in all: more of them is another word.
    let tolerated = (name.chars().count() / 4).clamp(1, 3);
    let near = candidates.into_iter().filter_map(|candidate| {
        let distance = strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
        (distance <= tolerated).then_some((distance, candidate))
    });
    near.min().map(|(_, candidate)| candidate)
}

/// A reader's message about an unknown key or value, with what may have been meant among those that it lists.
pub(crate) fn with_a_hint(mut message: String) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let (true, Some((wrong, known))) = (message.starts_with("unknown"), quoted.split_first())
        && let Some(near) = nearest(wrong, known.iter().copied())
    {
        let hint = format!("; did you mean `{near}`?");
        message.push_str(&hint);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let keys = ["max_items", "max_item_tokens", "min_score", "fill"];
        assert_eq!(nearest("max_itmes", keys), Some("max_items"));
        assert_eq!(nearest("Fil", keys), Some("fill"));
        assert_eq!(nearest("temperature", keys), None);
        assert_eq!(nearest("", keys), None);
    }
}
