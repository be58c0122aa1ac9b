//! Tools whose files are recognized but not read. Each is refused by name, with a remedy.

use super::shape::{Shape, text};
use serde_json::Value;

/// A kind of file that is not read.
struct Refusal {
    fits: fn(&Shape) -> bool,
    /// The kind of the file, and the advice.
    says: &'static str,
}

/// Returns the reason and the remedy for a file of a tool that is known but not read. Returns `None` for any
/// other file.
pub(super) fn refusal(shape: &Shape) -> Option<String> {
    let refusal = REFUSALS.iter().find(|refusal| (refusal.fits)(shape))?;
    Some(refusal.says.to_owned())
}

const REFUSALS: &[Refusal] = &[
    Refusal {
        fits: |shape| {
            any(shape, |line| line.get("is_user").is_some() && line.get("mes").is_some())
                || any(shape, |line| {
                    line.get("chat_metadata").is_some() && line.get("character_name").is_some()
                })
                || shape.has("chat_metadata") && shape.has("character_name")
        },
        says: "is a chat of SillyTavern, which is not read, because its prompt also includes the character \
               card; save the request from the log of SillyTavern's server, or convert each message to \
               {\"role\", \"content\"}",
    },
    Refusal {
        fits: |shape| {
            any(shape, |chat| {
                let inner = chat.get("chat").unwrap_or(chat);
                inner.get("history").is_some_and(|history| history.get("currentId").is_some())
            }) || shape.any_has(&["childrenIds", "parentId"])
                || shape.has("chat")
                    && (shape.has("share_id") || shape.has("folder_id") || shape.has("archived"))
        },
        says: "is a chat of Open WebUI, which is not read; convert the messages from \
               chat.history.currentId up by parentId to {\"role\", \"content\"}",
    },
    Refusal {
        fits: |shape| {
            any(shape, |message| message.get("isCreatedByUser").is_some())
                || shape.has("messagesTree")
                || shape.has("exportAt") && shape.has("conversationId")
        },
        says: "is a conversation of LibreChat, which is not read; convert its messages of one branch to \
               {\"role\", \"content\"}",
    },
    Refusal {
        fits: |shape| {
            any(shape, is_of_zed)
                || shape.any_has(&["segments", "tool_uses"])
                || shape.has("zed") && shape.has("version")
                || shape.has("detailed_summary_state")
        },
        says: "is a thread of Zed, which is not read; open it there as Markdown, or convert its messages to \
               {\"role\", \"content\"}",
    },
    Refusal {
        fits: |shape| {
            any(shape, |line| {
                text(line, "type") == "session" && line.get("version").is_some() && line.get("cwd").is_some()
            }) || any(shape, |line| {
                let message = line.get("message");
                text(line, "type") == "message"
                    && message.is_some_and(|message| {
                        matches!(text(message, "role"), "toolResult" | "bashExecution")
                    })
            })
        },
        says: "is a session of pi, which is not read; convert the messages of its current branch (from the \
               last entry up by parentId) to {\"role\", \"content\"}",
    },
    Refusal {
        fits: |shape| {
            any(shape, |line| text(line, "type") == "session_start")
                && any(shape, |line| line.get("cwd").is_some() || is_entry(line))
                // A single such line may occur in another log, so two are required.
                || shape.messages.iter().filter(|line| is_entry(line)).nth(1).is_some()
        },
        says: "is a session of Droid, which is not read; extract `message` from each line of the type \
               `message`: these are messages of Anthropic",
    },
    Refusal {
        fits: |shape| {
            any(shape, |line| {
                matches!(text(line, "type"), "ask" | "say")
                    && (line.get("ask").is_some() || line.get("say").is_some())
            })
        },
        says: "is the screen record of a task of Cline or Roo Code (ui_messages.json), which is not sent to \
               the model; use api_conversation_history.json from the same folder",
    },
    Refusal {
        fits: |shape| {
            any(shape, |task| {
                task.get("task").is_some() && task.get("tokensIn").is_some() && task.get("role").is_none()
            }) || shape.has("task") && shape.has("tokensIn")
        },
        says: "is a list of tasks of Cline or Roo Code, which contains no messages; use \
               api_conversation_history.json from the folder of a task",
    },
    Refusal {
        fits: |shape| {
            shape.has("files_in_context") || shape.has("model_usage") && shape.has("environment_history")
        },
        says: "is about a task of Cline (task_metadata.json) and contains no messages; use \
               api_conversation_history.json from the same folder",
    },
    Refusal {
        fits: |shape| shape.has("messages_path") && shape.has("session_id"),
        says: "is about a session of Cline and contains no messages; use the file specified by `messages_path`",
    },
    Refusal {
        fits: |shape| {
            let is_marked =
                |message: &Value| message.get("condenseParent").is_some() || message.get("ts").is_some();
            let is_part = |part: &Value| matches!(text(part, "type"), "tool-call" | "tool-result");
            shape.has("version")
                && shape.container == "messages"
                && any(shape, is_marked)
                && (any(shape, |message| message.get("condenseParent").is_some())
                    || shape.any_part("content", is_part))
        },
        says: "is a task of a test version of Roo Code (February 2026), which is not read; open the task in \
               today's Roo Code",
    },
    Refusal {
        fits: |shape| {
            shape.any_has(&["sessionId", "messageId", "message"])
                && any(shape, |line| line.get("message").is_some_and(Value::is_string))
        },
        says: "is the list of inputs of Gemini CLI (logs.json), which contains no replies; use the session \
               from its folder `chats`, or save one with /chat save",
    },
    Refusal {
        fits: |shape| {
            let is_info = |message: &Value| {
                message.get("sessionID").is_some()
                    && message.get("content").is_none()
                    && (message.get("messageID").is_some() || message.get("role").is_some())
            };
            any(shape, is_info) || shape.has("sessionID") && (shape.has("messageID") || shape.has("role"))
        },
        says: "is one message or part from the storage of opencode; write the whole session with \
               `opencode export`",
    },
    Refusal {
        fits: |shape| {
            any(shape, |message| {
                let is_own =
                    |kind: &str| matches!(kind, "assistant" | "user" | "synthetic" | "shell" | "compaction");
                is_own(text(message, "type"))
                    && message.get("role").is_none()
                    && message.get("time").is_some_and(|time| time.get("created").is_some())
            })
        },
        says: "is a session of opencode's second server interface, which is not read; write the session with \
               `opencode export`",
    },
    Refusal {
        fits: |shape| shape.has("linear_conversation"),
        says: "is a shared page of ChatGPT, which is not read; use the conversation from the export of your \
               data (conversations.json)",
    },
    Refusal {
        fits: |shape| {
            any(shape, |project| project.get("prompt_template").is_some() && project.get("docs").is_some())
                || shape.has("prompt_template") && shape.has("docs")
        },
        says: "is the list of projects of Claude.ai, which contains no conversation; use conversations.json \
               from the same export",
    },
];

fn any(shape: &Shape, fits: impl Fn(&Value) -> bool) -> bool {
    shape.messages.iter().any(fits)
}

/// Checks whether a value is a message of Zed, which has its role as the only key.
fn is_of_zed(message: &Value) -> bool {
    let Some(object) = message.as_object() else { return false };
    let is_speaker = |key: &String| matches!(key.as_str(), "User" | "Agent");
    object.len() == 1
        && object.keys().any(is_speaker)
        && object.values().all(|value| value.get("content").is_some())
}

/// Checks whether a line is a message entry of Droid.
fn is_entry(line: &Value) -> bool {
    let is_message = |message: &Value| message.get("role").is_some() && message.get("content").is_some();
    text(line, "type") == "message"
        && line.get("role").is_none()
        && line.get("message").is_some_and(is_message)
}
