//! The texts around documents, as an application words them.

use super::fault::Fault;
use crate::text::{attribute, plain::short};
use serde::{Deserialize, Serialize};

/// The table `[rag.template]`: the texts around documents (rule S21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct DocumentTemplate {
    /// The attributes in the line before each document, with fields by name: `{id}`, `{source}`, `{score}`,
    /// `{date}` (year, month, day), `{position}`, `{form}` (the name of a shorter form). An attribute is left
    /// out if the document lacks its field.
    pub header: String,
    /// The text before the documents of each block, such as a sentence about their origin. Empty by default.
    pub introduction: String,
}

impl Default for DocumentTemplate {
    fn default() -> Self {
        Self { header: r#"id="{id}" source="{source}""#.into(), introduction: String::new() }
    }
}

impl DocumentTemplate {
    /// Reads the header.
    pub(crate) fn parsed(&self) -> Result<HeaderTemplate, Fault> {
        HeaderTemplate::parse(&self.header).map_err(|found| Fault {
            keys: &["rag.template.header"],
            found,
            expected: "attributes such as id=\"{id}\" source=\"{source}\"; the fields are {id}, {source}, \
                       {score}, {date}, {position} and {form} (rule S21)",
        })
    }
}

/// A field of a document in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderField {
    Id,
    Source,
    Score,
    Date,
    Position,
    Form,
}

impl HeaderField {
    const ALL: [(&'static str, Self); 6] = [
        ("id", Self::Id),
        ("source", Self::Source),
        ("score", Self::Score),
        ("date", Self::Date),
        ("position", Self::Position),
        ("form", Self::Form),
    ];
}

/// A piece of an attribute's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderPiece {
    /// A text, escaped already.
    Literal(String),
    Field(HeaderField),
}

/// An attribute of the line before a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderAttribute {
    pub(crate) name: String,
    pub(crate) value: Vec<HeaderPiece>,
}

/// The attributes of the line before a document, read from [`DocumentTemplate::header`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderTemplate {
    pub(crate) attributes: Vec<HeaderAttribute>,
    /// True for the default header, which is counted without being written.
    pub(crate) is_default: bool,
}

impl HeaderTemplate {
    /// Reads the default header.
    pub(crate) fn default_one() -> Self {
        Self::parse(&DocumentTemplate::default().header).expect("the default header has no fault")
    }

    /// Reads a header. An error is a description of the first fault.
    pub(crate) fn parse(header: &str) -> Result<Self, String> {
        let mut attributes: Vec<HeaderAttribute> = Vec::new();
        let mut rest = header.trim_start_matches(' ');
        while !rest.is_empty() {
            let (attribute, after) = read_attribute(rest)?;
            if attributes.iter().any(|other| other.name.eq_ignore_ascii_case(&attribute.name)) {
                return Err(format!("the attribute {} twice", short(&attribute.name)));
            }
            attributes.push(attribute);
            rest = after.trim_start_matches(' ');
            if !rest.is_empty() && rest.len() == after.len() {
                return Err(format!("no space before {}", short(rest)));
            }
        }
        // Compared as text, because an equal header in other words is rare.
        let is_default = header == DocumentTemplate::default().header;
        let template = Self { attributes, is_default };
        // The ids of joined chunks are counted once.
        for (name, field) in HeaderField::ALL {
            if template.fields().filter(|own| *own == field).count() > 1 {
                return Err(format!("the field {{{name}}} twice"));
            }
        }
        Ok(template)
    }

    /// Returns true if the header contains a field.
    pub(crate) fn contains(&self, field: HeaderField) -> bool {
        self.fields().any(|own| own == field)
    }

    fn fields(&self) -> impl Iterator<Item = HeaderField> + '_ {
        self.attributes.iter().flat_map(|attribute| &attribute.value).filter_map(|piece| match piece {
            HeaderPiece::Field(field) => Some(*field),
            HeaderPiece::Literal(_) => None,
        })
    }
}

/// Reads one attribute from the beginning of a text. Also returns the text after it.
fn read_attribute(text: &str) -> Result<(HeaderAttribute, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("no attribute at {}", short(text)));
    }
    // Citations find the label at its own place, before all others.
    if name.eq_ignore_ascii_case("label") {
        return Err("the attribute label, which rag.labels sets".into());
    }
    let Some(rest) = rest.strip_prefix("=\"") else { return Err(format!("no =\" after {}", short(name))) };
    let Some((value, rest)) = rest.split_once('"') else {
        return Err(format!("no \" at the end of {}", short(name)));
    };
    // A line break would end the line before the document.
    if let Some(control) = value.chars().find(|c| c.is_control()) {
        return Err(format!("{} in {}", control.escape_default(), short(name)));
    }
    Ok((HeaderAttribute { name: name.into(), value: pieces(value)? }, rest))
}

/// Divides the value of an attribute into literal text and fields.
fn pieces(value: &str) -> Result<Vec<HeaderPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        let at = rest.find(['{', '}']).unwrap_or(rest.len());
        let (literal, after) = rest.split_at(at);
        if !literal.is_empty() {
            pieces.push(HeaderPiece::Literal(attribute::escaped(literal)));
        }
        let Some(inside) = after.strip_prefix('{') else {
            if after.is_empty() {
                break;
            }
            return Err(format!("a }} without {{ in {}", short(value)));
        };
        let Some((name, after)) = inside.split_once('}') else {
            return Err(format!("a {{ without }} in {}", short(value)));
        };
        let field = HeaderField::ALL.into_iter().find(|(own, _)| *own == name);
        let Some((_, field)) = field else { return Err(format!("the unknown field {{{}}}", short(name))) };
        pieces.push(HeaderPiece::Field(field));
        rest = after;
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named() {
        let faults = [
            r#"id="{id}"source="{source}""#,
            r#"id="{id}" ID="x""#,
            r#"id="{id}" title="{id}""#,
            r#"label="{id}""#,
            "id={id}",
            r#"id="{id}"#,
            r#"id="{name}""#,
            r#"id="{id""#,
            r#"id="id}""#,
            "id=\"{id}\n\"",
            "<b>",
            "id",
        ];
        let read: Vec<String> =
            faults.iter().map(|header| HeaderTemplate::parse(header).unwrap_err()).collect();
        insta::assert_snapshot!(read.join("\n"), @r#"
        no space before source="{source}"
        the attribute ID twice
        the field {id} twice
        the attribute label, which rag.labels sets
        no =" after id
        no " at the end of id
        the unknown field {name}
        a { without } in {id
        a } without { in id}
        \n in id
        no attribute at <b>
        no =" after id
        "#);
    }
}
