//! Calls that occur twice in one message: as a block of its content, and outside the content in the form of
//! the provider.

use super::{
    node::{Fault, Node, Reading},
    talk::{Call, Piece, arguments},
};

/// Adds calls to the pieces of a message, each one once.
///
/// # Errors
///
/// Returns an error for a call that is present with another name or other arguments.
pub(super) fn add<'a>(
    pieces: &mut Vec<Piece>,
    more: impl IntoIterator<Item = (Node<'a>, Call)>,
) -> Result<(), Fault> {
    // Each piece matches one copy at most, so that two equal calls stay two.
    let mut open: Vec<bool> = pieces.iter().map(|piece| matches!(piece, Piece::Call(_))).collect();
    for (node, call) in more {
        let same = pieces.iter_mut().zip(&mut open).find_map(|(piece, is_open)| match piece {
            Piece::Call(said) if *is_open && is_same(said, &call) => {
                *is_open = false;
                Some(said)
            }
            _ => None,
        });
        match same {
            None => pieces.push(Piece::Call(call)),
            Some(said) => join(said, call).map_err(|detail| node.fault(detail))?,
        }
    }
    Ok(())
}

/// Reads a list of calls in the form of `OpenAI` Chat, of Anthropic, or of a plain name with arguments.
pub(super) fn list(node: Option<Node<'_>>) -> Result<Vec<(Node<'_>, Call)>, Fault> {
    let calls = node.map(|node| node.list()).transpose()?.unwrap_or_default();
    calls.into_iter().map(|node| Ok((node.clone(), one(&node)?))).collect()
}

/// Reads a call in one of these forms.
pub(super) fn one(node: &Node<'_>) -> Result<Call, Fault> {
    let fields = node.object()?;
    let id =
        fields.first(&["id", "tool_call_id", "call_id", "tool_id", "Id"]).map(|id| id.name()).transpose()?;
    let function = fields.get("function").map(|function| function.object()).transpose()?;
    let named = function.as_ref().unwrap_or(&fields);
    let name = named
        .first(&["name", "tool_name", "Name", "FunctionName"])
        .ok_or_else(|| named.node().fault("has no `name`"))?
        .text()?;
    let given = named.first(&["arguments", "args", "input", "tool_kwargs", "Arguments", "FunctionArguments"]);
    let given = given.ok_or_else(|| named.node().fault("has no arguments"))?;
    fields.ignore(&["type", "index", "error", "extras"]);
    // Strict in every mode: a call with unknown content cannot be compared with its copy.
    let mut strict = Reading::default();
    named.finish(&mut strict)?;
    fields.finish(&mut strict)?;
    Ok(Call { id, name, arguments: arguments(Some(given)), signature: None })
}

fn is_same(said: &Call, other: &Call) -> bool {
    match (&said.id, &other.id) {
        (Some(said), Some(other)) => said == other,
        _ => said.name == other.name && is_equal(&said.arguments, &other.arguments),
    }
}

/// Completes a call with the fields of its copy.
fn join(said: &mut Call, other: Call) -> Result<(), String> {
    if said.name != other.name {
        return Err(format!(
            "calls `{}`, but its copy in the same message calls `{}`",
            other.name, said.name
        ));
    }
    // If a stream was interrupted, only one copy has the arguments.
    if is_empty(&said.arguments) {
        said.arguments = other.arguments;
    } else if !is_empty(&other.arguments) && !is_equal(&said.arguments, &other.arguments) {
        return Err("has arguments that differ from those of its copy in the same message".into());
    }
    said.id = said.id.take().or(other.id);
    said.signature = said.signature.take().or(other.signature);
    Ok(())
}

fn is_empty(arguments: &str) -> bool {
    matches!(arguments.trim(), "" | "{}")
}

fn is_equal(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    one == other || read(one).is_some_and(|value| Some(value) == read(other))
}
