//! The tools of a request as they are declared: their token count, and notes on the changes to them.

use crate::{
    message::Tool,
    provider::conform::{Declared, DroppedSchema, TargetProfile},
    text::{
        plain::{grouped, short},
        size,
    },
    tokens::TokenCount,
};
use std::{borrow::Cow, sync::Arc};

/// The tools of a request, adapted to a target.
#[derive(Debug)]
pub(crate) struct DeclaredTools {
    /// The tools as the application gave them.
    pub(super) given: Arc<[Tool]>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) count: TokenCount,
    /// The differences from the given tools, with a sentence for each kind.
    pub(crate) notes: Vec<(DeclarationNote, String)>,
}

/// The kinds of difference between declared and given tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclarationNote {
    /// Tools that only another provider runs are not declared (preserved parts, rule H6).
    NotDeclared,
    /// Fields that only another provider defines are dropped (preserved parts, rule H6).
    FieldsLeftOut,
    /// Tools have other names (preserved parts, rule H6).
    Renamed,
    /// Parameters have another schema (tool parameters, rule H8).
    SchemaChanged,
}

/// Returns notes on the tools that are not declared, that have other names, or whose definitions changed.
pub(super) fn notes(
    profile: &TargetProfile,
    given: &[Tool],
    declared: &[Tool],
) -> Vec<(DeclarationNote, String)> {
    let mut notes = Vec::new();
    let (taken, foreign): (Vec<&Tool>, Vec<&Tool>) = given.iter().partition(|tool| profile.takes_tool(tool));
    if !foreign.is_empty() {
        // Notes are for people, so long lists are shortened.
        const SHOWN: usize = 12;
        let names: Vec<_> = foreign.iter().take(SHOWN).map(|tool| short(&tool.name)).collect();
        let more = and_more(foreign.len().saturating_sub(SHOWN));
        notes.push((
            DeclarationNote::NotDeclared,
            format!("tools that only another provider runs are not declared: {}{more}", names.join(", ")),
        ));
    }
    // `declared` contains the accepted tools in the same order, so the two lists can be zipped.
    let names = taken.iter().map(|tool| tool.name.as_str());
    let renamed: Vec<(&str, &str)> =
        names.zip(declared.iter().map(|tool| tool.name.as_str())).filter(|(from, to)| from != to).collect();
    if let [(from, to), rest @ ..] = &renamed[..] {
        let (from, to, more) = (short(from), short(to), and_more(rest.len()));
        notes.push((
            DeclarationNote::Renamed,
            format!("tools are renamed to names that the provider accepts: `{from}` to `{to}`{more}"),
        ));
    }
    notes.extend(fields(profile, &taken).map(|text| (DeclarationNote::FieldsLeftOut, text)));
    notes.extend(schemas(profile, &taken).into_iter().map(|text| (DeclarationNote::SchemaChanged, text)));
    notes
}

/// Returns a note on the fields that only another provider defines, or `None` if there are none.
fn fields(profile: &TargetProfile, taken: &[&Tool]) -> Option<String> {
    const SHOWN: usize = 6;
    let foreign = taken.iter().filter(|tool| tool.written_in(profile.wire_format()).is_none());
    let mut left_out: Vec<(String, &str)> = Vec::new();
    let mut more = 0;
    for (tool, name) in
        foreign.flat_map(|tool| tool.further_fields().into_iter().map(move |(name, _)| (tool, name)))
    {
        // Each field is reported once, however many tools have it. The list is short, so a linear search is
        // fine.
        if left_out.iter().any(|(known, _)| *known == name) {
            continue;
        }
        if left_out.len() < SHOWN { left_out.push((name, &tool.name)) } else { more += 1 }
    }
    let named: Vec<String> =
        left_out.iter().map(|(name, tool)| format!("`{}` of `{}`", short(name), short(tool))).collect();
    let more = and_more(more);
    (!named.is_empty()).then(|| {
        format!("fields of tools that only another provider takes are left out: {}{more}", named.join(", "))
    })
}

/// Returns notes on changed parameter schemas. An added type `object` is not reported.
fn schemas(profile: &TargetProfile, taken: &[&Tool]) -> Vec<String> {
    let own = taken.iter().filter(|tool| tool.hosted.is_none());
    let schemas: Vec<(Cow<'_, str>, Declared<'_>)> =
        own.map(|tool| (short(&tool.name), profile.schema(&tool.schema))).collect();
    let renamed: Vec<_> =
        schemas.iter().filter_map(|(name, one)| Some((name, one.renamed.as_ref()?))).collect();
    let named = |of: fn(&Declared<'_>) -> bool| {
        schemas.iter().filter(move |(_, one)| of(one)).map(|(name, _)| name).collect::<Vec<_>>()
    };
    let mut notes = Vec::new();
    if let [(name, (from, to)), rest @ ..] = &renamed[..] {
        let (from, to) = (short(from), short(to));
        let tools =
            if rest.is_empty() { String::new() } else { format!("; and in {} more tools", rest.len()) };
        let to = if to == "any" { "no type".into() } else { format!("`{to}`") };
        notes
            .push(format!("types are renamed to those of JSON Schema: in `{name}`, `{from}` to {to}{tools}"));
    }
    if let [name, rest @ ..] = &named(|one| one.wrapped)[..] {
        let more = and_more(rest.len());
        notes.push(format!(
            "parameters that are not an object are wrapped in one, as `value`: `{name}`{more}"
        ));
    }
    for reason in [DroppedSchema::NotASchema, DroppedSchema::TooDeep, DroppedSchema::TooLarge] {
        let dropped = schemas.iter().filter(|(_, one)| one.dropped == Some(reason));
        let dropped: Vec<_> = dropped.map(|(name, _)| name).collect();
        if let [name, rest @ ..] = &dropped[..] {
            let more = and_more(rest.len());
            notes.push(match reason {
                DroppedSchema::NotASchema => {
                    format!("parameters that are not a JSON Schema are not declared: `{name}`{more}")
                }
                DroppedSchema::TooDeep => format!(
                    "parameters of more than {} levels of JSON are not declared: `{name}`{more}",
                    size::LEVELS
                ),
                DroppedSchema::TooLarge => format!(
                    "parameters of more than {} JSON values are not declared: `{name}`{more}",
                    grouped(size::VALUES_OF_A_TREE)
                ),
            });
        }
    }
    notes
}

/// Returns the end of a list that leaves out `others` entries.
pub(crate) fn and_more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", and {others} more") }
}
