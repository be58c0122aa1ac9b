//! The allowed sizes of interfaces, and the foreign crates that they may name. Raising a limit needs a
//! reason.

/// The largest allowed interface of a crate.
pub(crate) struct Sizes {
    /// The package's name.
    pub(crate) name: &'static str,
    /// Structs, enums, unions, traits and type aliases in the documentation.
    pub(crate) types: usize,
    /// Items that the documentation hides but programs can use.
    pub(crate) hidden: usize,
    /// Names in the root module: the first page of the documentation has to stay readable.
    pub(crate) root: usize,
}

/// The maximum number of types in the core without its adapters, so that people can find their way.
/// Comparable libraries have about 100 (jiff 95, minijinja 111, regex-automata 117); the core also has the
/// models' rules, documents of several retrievers and in several forms, rules of the user, and citations.
const CORE_TYPES: usize = 143;

/// The limits of each published crate.
pub(crate) const SIZES: &[Sizes] = &[
    // Hidden items are for the sibling crates, which are released together, and none should be added without
    // need. The steps of a budget map are for pages only; all crates write shortened values and numbered ids
    // in the same way. A redacted session file counts the introduction of documents as it is sent.
    Sizes { name: "context-window", types: CORE_TYPES, hidden: 143, root: 46 },
    Sizes { name: "context-window-tokens", types: 8, hidden: 1, root: 12 },
    Sizes { name: "context-window-formats", types: 10, hidden: 0, root: 20 },
    // The ranking of texts and the logarithm are for the evaluation.
    Sizes { name: "context-window-recall", types: 8, hidden: 5, root: 12 },
    Sizes { name: "context-window-eval", types: 20, hidden: 0, root: 24 },
    // Three hidden methods of the store are for Python: they read the ends of lists of items.
    Sizes { name: "context-window-store", types: 10, hidden: 8, root: 12 },
    Sizes { name: "context-window-report", types: 12, hidden: 11, root: 52 },
    Sizes { name: "context-window-ratatui", types: 40, hidden: 0, root: 40 },
    Sizes { name: "context-window-genai", types: 3, hidden: 0, root: 4 },
];

/// The unstable foreign crates that a published crate's items may name. An adapter names those that it adapts
/// to.
pub(crate) const FOREIGN: &[(&str, &[&str])] = &[("context-window-ratatui", &["ratatui_core"])];

/// The types of a published crate that no example names. Do not add any: name a new type in an example
/// instead.
pub(crate) const WITHOUT_EXAMPLE: &[(&str, &[&str])] = &[];
