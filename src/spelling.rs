//! What somebody may have meant.

/// The candidate nearest to a name, if it is near enough to be a slip of the hand.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    // A slip in every third letter is still a slip; in a word of three letters, one.
    let tolerated = (name.chars().count() / 3).max(1);
    let near = candidates.into_iter().filter_map(|candidate| {
        let distance = strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
        (distance <= tolerated).then_some((distance, candidate))
    });
    near.min().map(|(_, candidate)| candidate)
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
