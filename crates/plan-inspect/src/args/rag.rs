//! The arguments of `rag`.

use super::{
    Printed,
    flags::{Counts, Hits, RagFile, Terms, rag_file},
};
use anyhow::Result;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Rag {
    /// Retrieval results (JSON), one file for each ranked list, or - for standard input; lists are named by
    /// their files if they have no NAME
    #[arg(
        // The flags of `Hits` require an argument of this id.
        id = "rag",
        value_name = "[NAME=]FILE",
        required = true,
        value_parser = rag_file(),
        value_hint = ValueHint::FilePath
    )]
    pub(crate) lists: Vec<RagFile>,
    /// Question that the documents answer; it is sent as the only message
    #[arg(long, value_name = "TEXT")]
    pub(crate) question: Option<String>,
    #[command(flatten)]
    pub(crate) hits: Hits,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) printed: Printed,
    #[command(flatten)]
    pub(crate) certainty: Counts,
}

impl Rag {
    /// Returns the files that the command reads.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let lists = self.lists.iter().map(|list| list.path.clone());
        Ok(lists.chain(self.terms.files()?).collect())
    }
}
