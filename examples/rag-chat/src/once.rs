//! One question and one answer without a screen: the answer on standard output, everything else on standard
//! error.

use crate::{answerer::Piece, chat::Chat, event::Event};
use anyhow::Result;
use context_window_report as report;
use std::{io::Write, process::ExitCode, sync::mpsc::Receiver};

/// Asks, waits for the answer, and prints its sources.
pub fn run(mut chat: Chat, events: &Receiver<Event>, question: &str) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mut said = 0;
    if chat.args.session.is_none() {
        // Without a session name, the question is independent of earlier ones.
        chat.enter("/fresh");
    }
    chat.ask(question);
    while chat.is_busy() {
        let Ok(event) = events.recv() else { break };
        if let Event::Piece(_, Piece::Text(text)) = &event {
            write!(out, "{}", shown(text))?;
            out.flush()?;
        }
        chat.handle(event);
        for remark in chat.remarks.iter().skip(said).filter(|remark| remark.is_error) {
            eprintln!("{}", shown(&remark.text));
        }
        said = chat.remarks.len();
    }
    writeln!(out)?;
    let has_reply = chat.is_whole;
    if has_reply {
        if let Some(citations) = &chat.citations {
            eprintln!("{}", shown(citations));
        }
        let (plan, ids) =
            (&chat.plan, chat.documents.iter().map(|document| document.id().as_str()).collect::<Vec<_>>());
        let (total, budget) =
            (report::tokens(plan.estimated_tokens_total), report::grouped(plan.prompt_budget));
        eprintln!(
            "{total} of {budget} tokens; documents: {}",
            if ids.is_empty() { "none".into() } else { report::printable(&ids.join(", ")) }
        );
    }
    let end = end(chat);
    Ok(if has_reply { end } else { ExitCode::from(1) })
}

/// Ends a chat. Returns 1 and prints the reason if something could not be saved.
pub fn end(chat: Chat) -> ExitCode {
    chat.close().map_or_else(
        |error| {
            eprintln!("{}", shown(&error));
            ExitCode::from(1)
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Returns a text with its line ends, and without other characters that a terminal would act on.
#[must_use]
pub fn shown(text: &str) -> String {
    text.split('\n').map(report::shown).collect::<Vec<_>>().join("\n")
}
