//! The contents of messages of `ChatGPT`, by type.

use super::Chat;
use crate::foreign::{
    node::{Fault, Fields, Node, Reading},
    talk::Piece,
};
use context_window::Part;

impl Chat {
    /// Reads the content of a message by its type.
    pub(super) fn content(&mut self, content: &Fields<'_>, reading: &mut Reading) -> Result<Said, Fault> {
        let kind = content.need("content_type")?;
        let mut said = Said::default();
        let kind_name = kind.text()?;
        match &*kind_name {
            "text" | "multimodal_text" => {
                let parts = content.get("parts").map(|parts| parts.list()).transpose()?.unwrap_or_default();
                let parts = reading.each(parts, |node, reading| self.part(node, reading))?;
                said.parts = parts.into_iter().flatten().map(Part::Text).collect();
            }
            "code" => {
                content.ignore(&["language", "response_format_name"]);
                said.is_code = true;
                said.add(content.text("text")?);
            }
            "execution_output" => said.add(content.text("text")?),
            "system_error" => {
                content.ignore(&["name"]);
                said.is_failed = true;
                said.add(content.text("text")?);
            }
            "thoughts" => {
                content.ignore(&["source_analysis_msg_id"]);
                for thought in content.get("thoughts").map(|all| all.list()).transpose()?.unwrap_or_default()
                {
                    let thought = thought.object()?;
                    thought.ignore(&["chunks", "finished"]);
                    let text = thought.text("content")?.filter(|text| !text.trim().is_empty());
                    let summary = thought.text("summary")?;
                    thought.finish(reading)?;
                    // A summary is the fallback for reasoning without its full text.
                    self.thoughts.extend(text.or(summary).and_then(Piece::thought));
                }
            }
            // Custom instructions and memory are sent as system text.
            "user_editable_context" => {
                for key in ["user_profile", "user_instructions"] {
                    self.talk.system.extend(content.text(key)?.filter(|text| !text.trim().is_empty()));
                }
            }
            "model_editable_context" => {
                content.ignore(&["repository", "repo_summary", "structured_context"]);
                let memory = content.text("model_set_context")?;
                self.talk.system.extend(memory.filter(|text| !text.trim().is_empty()));
            }
            "tether_browsing_display" => {
                content.ignore(&["assets", "tether_id"]);
                said.add(content.text("summary")?);
                said.add(content.text("result")?);
            }
            "tether_quote" | "sonic_webpage" => {
                content.ignore(&["domain", "tether_id", "snippet", "crawl_date", "pub_date", "ref_id"]);
                said.add(content.text("title")?);
                said.add(content.text("url")?);
                said.add(content.text("text")?);
            }
            "reasoning_recap" => {
                content.ignore(&["content"]);
                self.aside.count("reasoning_recap");
            }
            "computer_output" => {
                content.ignore_all();
                self.aside.count("computer_output");
            }
            _ => return Err(kind.unknown("is not known content of ChatGPT")),
        }
        Ok(said)
    }

    /// Reads a part of a content. Returns `None` for media, because exports do not contain their data.
    fn part(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Option<String>, Fault> {
        if node.is_text() {
            return Ok(Some(node.text()?).filter(|text| !text.is_empty()));
        }
        let fields = node.object()?;
        let kind = fields.need("content_type")?;
        let kind_name = kind.text()?;
        let text = match &*kind_name {
            "audio_transcription" => {
                fields.ignore(&["direction", "decoding_id"]);
                fields.text("text")?
            }
            media if media.ends_with("_pointer") => {
                fields.ignore_all();
                self.aside.count(media);
                None
            }
            _ => return Err(kind.unknown("is not a known part of ChatGPT")),
        };
        fields.finish(reading)?;
        Ok(text)
    }
}

/// The content of a message.
#[derive(Default)]
pub(super) struct Said {
    pub(super) parts: Vec<Part>,
    pub(super) is_code: bool,
    pub(super) is_failed: bool,
}

impl Said {
    fn add(&mut self, text: Option<String>) {
        self.parts.extend(text.filter(|text| !text.is_empty()).map(Part::Text));
    }
}

/// Returns the text of a text part. Returns `None` for any other part.
pub(super) fn text(part: &Part) -> Option<&str> {
    if let Part::Text(text) = part { Some(text) } else { None }
}
