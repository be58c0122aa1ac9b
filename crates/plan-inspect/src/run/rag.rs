//! `plan-inspect rag`: the selection of documents from ranked lists, without a session.

use super::plan::{View, check_redaction};
use crate::{
    args::{Rag, RagFile, Screen},
    output::Outputs,
    prepared::{self, Prepared},
};
use anyhow::Result;
use context_window::{Conversation, Message};
use context_window_formats::Session;
use std::process::ExitCode;

pub(crate) fn run(args: &Rag, screen: &Screen) -> Result<ExitCode> {
    check_redaction(&args.printed)?;
    let output = Outputs::for_inputs(args.files()?).claim("--output", args.printed.output.as_deref())?;
    let question = args.question.iter().map(Message::user);
    let mut session = Session::from(question.collect::<Conversation>());
    session.rag = prepared::documents(&args.lists, &args.hits)?;
    let prepared = Prepared::new(session, &args.terms, args.terms.target.model.as_deref())?;
    let names: Vec<String> = args.lists.iter().map(RagFile::list_name).collect();
    let view = View {
        printed: &args.printed,
        certainty: &args.certainty,
        title: names.join(", "),
        live: None,
        // The list of documents has their tokens already.
        top: 0,
        grid: false,
        breakpoints: false,
    };
    let request = view.request(&prepared);
    let plan = prepared.manager.build_plan(&request)?;
    view.write(&view.text(&prepared, &request, &plan, screen)?, output.as_ref(), &prepared.model)?;
    Ok(ExitCode::SUCCESS)
}
