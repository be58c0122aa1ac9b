//! Conditions that types do not enforce: sums, ranges, and numbers that must be below others.

use super::{
    CompactionOptions, CompactionOverrides, Config, ConversationOptions, DefaultModel, RagOptions, Sections,
    TokenOptions, UsageOptions, fault::Fault,
};
use crate::item::Section;

fn fault(
    keys: &'static [&'static str],
    found: impl std::fmt::Display,
    expected: &'static str,
) -> Result<(), Fault> {
    Err(Fault { keys, found: format!("{found}"), expected })
}

/// Checks all options. Returns the first fault.
pub(super) fn check(config: &Config) -> Result<(), Fault> {
    model(&config.default_model)?;
    sections(&config.sections)?;
    conversation(config.conversation)?;
    rag(&config.rag)?;
    tokens(config.tokens)?;
    usage(config.usage)?;
    compaction(&config.compaction)
}

fn model(default: &DefaultModel) -> Result<(), Fault> {
    if default.context_len == 0 {
        return fault(&["model.default.context_len"], 0, "tokens, 1 or more (rule B2)");
    }
    Ok(())
}

fn sections(sections: &Sections) -> Result<(), Fault> {
    let shares = Section::ALL.map(|section| u32::from(sections.section(section).share));
    // Wider than the shares, so that the sum of three cannot overflow.
    let sum: u32 = shares.iter().sum();
    if sections.pins_limit > 1000 {
        return fault(
            &["sections.system_pinned.pins_limit"],
            sections.pins_limit,
            "per mille of the tokens shared among the sections, 0 to 1000 (rule S2)",
        );
    }
    if sum == 1000 {
        return Ok(());
    }
    let keys = &["sections.system_pinned.share", "sections.conversation.share", "sections.rag.share"];
    let found = format!("the shares are {} + {} + {} = {sum}", shares[0], shares[1], shares[2]);
    fault(keys, found, "per mille that sum to 1000 (rule B4)")
}

fn conversation(options: ConversationOptions) -> Result<(), Fault> {
    if (1..=1000).contains(&options.low_mark) {
        return Ok(());
    }
    fault(
        &["conversation.low_mark"],
        options.low_mark,
        "per mille of the conversation's budget, 1 to 1000 (rule S5)",
    )
}

fn rag(options: &RagOptions) -> Result<(), Fault> {
    // TOML allows nan and inf, with which scores cannot be compared usefully.
    if let Some(score) = options.min_score.filter(|score| !score.is_finite()) {
        return fault(&["rag.min_score"], score, "a finite number (rule S9)");
    }
    options.template.parsed()?;
    if options.question_limit > 1000 {
        let expected = "per mille of the tokens shared among the sections, 0 to 1000 (rule S10)";
        return fault(&["rag.question_limit"], options.question_limit, expected);
    }
    if options.recall_share > 1000 {
        let expected = "per mille of the tokens shared among the sections, 0 to 1000 (rule S15)";
        return fault(&["rag.recall_share"], options.recall_share, expected);
    }
    let shares: [(&[&str], u8); 2] =
        [(&["rag.near_duplicates"], options.near_duplicates), (&["rag.repeats"], options.repeats)];
    if let Some((keys, share)) =
        shares.into_iter().find(|(_, share)| *share != 0 && !(50..=100).contains(share))
    {
        return fault(
            keys,
            share,
            "per cent of a document's runs of words, 50 to 100, or 0 for off (rule S9)",
        );
    }
    for (name, list) in &options.lists {
        if !(1..=100).contains(&list.weight) {
            let found = format!("{} for the list {name}", list.weight);
            return fault(&["rag.lists"], found, "a weight of 1 to 100 (rule S8)");
        }
        if list.max_items == Some(0) || list.max_tokens == Some(0) {
            let found = format!("0 for the list {name}");
            return fault(&["rag.lists"], found, "a limit of 1 or more, or an unset key (rule S9)");
        }
    }
    let counts: [(&[&str], Option<u64>); 4] = [
        (&["rag.max_source_items"], options.max_source_items),
        (&["rag.max_items"], options.max_items),
        (&["rag.max_item_tokens"], options.max_item_tokens),
        (&["rag.max_source_tokens"], options.max_source_tokens),
    ];
    match counts.into_iter().find(|(_, limit)| *limit == Some(0)) {
        Some((keys, _)) => fault(keys, 0, "a number of 1 or more, or an unset key (rule S9)"),
        None => Ok(()),
    }
}

fn tokens(options: TokenOptions) -> Result<(), Fault> {
    if (500..=2_000).contains(&options.calibration_per_mille) {
        return Ok(());
    }
    fault(
        &["tokens.calibration_per_mille"],
        options.calibration_per_mille,
        "provider tokens per 1000 tokens counted locally, 500 to 2000 (rule N6)",
    )
}

fn usage(options: UsageOptions) -> Result<(), Fault> {
    percent(&["usage.approaching"], options.approaching)?;
    percent(&["usage.at_limit"], options.at_limit)?;
    if options.approaching < options.at_limit {
        return Ok(());
    }
    let found = format!("approaching {} is not below at_limit {}", options.approaching, options.at_limit);
    fault(&["usage.approaching", "usage.at_limit"], found, "approaching below at_limit (rule U3)")
}

fn compaction(options: &CompactionOptions) -> Result<(), Fault> {
    if options.percent != 0 {
        percent(&["compaction.percent"], options.percent)?;
    }
    percent(&["compaction.target"], options.target)?;
    for (key, share) in [
        (&["compaction.retain.capacity"], options.retain.capacity),
        (&["compaction.retain.active"], options.retain.active),
    ] {
        if let Some(share) = share.filter(|share| *share > 100) {
            return fault(key, share, "per cent, 0 to 100");
        }
    }
    for (key, tokens) in [
        (&["compaction.summary.max_tokens"], options.summary.max_tokens),
        (&["compaction.digest.max_tokens"], options.digest_max_tokens),
    ] {
        if tokens < MIN_SUMMARY_TOKENS {
            return fault(key, tokens, "tokens, 50 or more");
        }
    }
    if options.summary.instruction.trim().is_empty() {
        return fault(&["compaction.summary.instruction"], "empty", "task, chat, or a custom instruction");
    }
    let shares = |model: &CompactionOverrides| [model.retain.capacity, model.retain.active];
    if let Some(share) = options.models.values().flat_map(shares).flatten().find(|share| *share > 100) {
        return fault(&["compaction.models"], share, "per cent, 0 to 100");
    }
    // A target at or above the trigger would fire it again right after each compaction.
    let mut overrides = options.models.values().filter_map(|model| model.percent);
    if let Some(wrong) =
        overrides.find(|percent| *percent > 100 || (*percent != 0 && *percent <= options.target))
    {
        return fault(
            &["compaction.models"],
            wrong,
            "per cent above compaction.target, or 0 for no trigger (rule C5)",
        );
    }
    if options.percent == 0 || options.target < options.percent {
        return Ok(());
    }
    let found = format!("target {} is not below the trigger, percent {}", options.target, options.percent);
    fault(
        &["compaction.percent", "compaction.target"],
        found,
        "a target below the trigger; otherwise every turn compacts (rule C5)",
    )
}

/// Minimum number of tokens of a useful summary or digest.
const MIN_SUMMARY_TOKENS: u64 = 50;

/// Checks that a percentage is between 1 and 100.
fn percent(keys: &'static [&'static str], percent: u16) -> Result<(), Fault> {
    if (1..=100).contains(&percent) { Ok(()) } else { fault(keys, percent, "per cent, 1 to 100") }
}
