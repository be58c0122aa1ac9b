//! `plan-inspect schema`: the JSON Schemas of plans, sessions, questions and option files.

use crate::args::SchemaOf;
use crate::stdout::print;
use anyhow::Result;
use std::process::ExitCode;

pub(crate) fn run(of: SchemaOf) -> Result<ExitCode> {
    print(match of {
        SchemaOf::Config => include_str!("../../schema/config.json"),
        SchemaOf::Plan => include_str!("../../schema/plan.json"),
        SchemaOf::Questions => include_str!("../../schema/questions.json"),
        SchemaOf::Session => include_str!("../../schema/session.json"),
    })?;
    Ok(ExitCode::SUCCESS)
}
