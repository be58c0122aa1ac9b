//! Checks of the public interfaces: four tests for each published crate of the workspace, from its rustdoc
//! JSON.
//!
//! - `CRATE::listing`: the public items equal those of the reviewed file `CRATE.txt`, next to this package's
//!   manifest. After an intended change, `UPDATE_INTERFACE=1 cargo test -p context-window-interface` writes
//!   the files. Review their diff.
//! - `CRATE::sizes`: the interface is not larger than `limits.rs` allows.
//! - `CRATE::examples`: each public type is named in an example.
//! - `CRATE::foreign`: no public item names a type of an unstable dependency, except those that `limits.rs`
//!   lists.
//!
//! The JSON of rustdoc is an unstable format. The listing needs the compiler named in `document.rs`.

mod crates;
mod document;
mod examples;
mod foreign;
mod limits;
mod listing;
mod sizes;
mod skip;

use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::{
    crates::{Published, Workspace},
    document::{Document, Outcome},
};

fn main() {
    let arguments = Arguments::from_args();
    let workspace = Arc::new(Workspace::read());
    let mut trials = vec![Trial::test("listings", {
        let workspace = Arc::clone(&workspace);
        move || listing::check_files(&workspace)
    })];
    for published in workspace.published() {
        let published = Arc::new(published);
        trials.push(trial(&published, "listing", listing::check));
        trials.push(trial(&published, "sizes", sizes::check));
        trials.push(trial(&published, "foreign", foreign::check));
        trials.push(trial(&published, "examples", examples::check));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Builds one test of one crate. The first of its tests that runs documents the crate.
fn trial(
    published: &Arc<Published>,
    name: &str,
    check: fn(&Published, &Document) -> Result<(), Failed>,
) -> Trial {
    let name = format!("{}::{name}", published.name);
    let published = Arc::clone(published);
    Trial::ignorable_test(name.clone(), move || match published.document() {
        Outcome::Documented(document) => check(&published, document).map(|()| Completion::Completed),
        Outcome::Failed(why) => Err(why.as_str().into()),
        Outcome::OtherCompiler(why) => {
            skip::skip(&name, why);
            Ok(Completion::ignored_with(why))
        }
    })
}
