//! The sizes that interfaces may have, and the foreign crates that they may name. Raising a limit takes a
//! reason.

/// The largest interface that a crate may have.
pub(crate) struct Sizes {
    /// The package's name.
    pub(crate) name: &'static str,
    /// Structs, enums, unions, traits and type aliases that the documentation shows.
    pub(crate) types: usize,
    /// Items that the documentation leaves out, and programs can use all the same.
    pub(crate) hidden: usize,
    /// Names in the root module: the first page of the documentation is a page, not a catalogue.
    pub(crate) root: usize,
}

/// The number of types that the core may have without its adapters: what people can find their way in.
/// Comparable libraries have about 100 (jiff 95, minijinja 111, regex-automata 117); the core also has the
/// models' rules.
const CORE_TYPES: usize = 130;

/// The limits of each published crate.
pub(crate) const SIZES: &[Sizes] = &[
    // Hidden items are for the sibling crates, which are released together: none is to be added without need.
    // The steps of a budget map are for pages alone; cut values and numbered ids are written alike by all
    // crates.
    Sizes { name: "context-window", types: CORE_TYPES, hidden: 136, root: 46 },
    Sizes { name: "context-window-tokens", types: 8, hidden: 1, root: 12 },
    Sizes { name: "context-window-formats", types: 10, hidden: 0, root: 20 },
    Sizes { name: "context-window-store", types: 10, hidden: 5, root: 12 },
    Sizes { name: "context-window-report", types: 12, hidden: 11, root: 52 },
    Sizes { name: "context-window-ratatui", types: 40, hidden: 0, root: 40 },
    Sizes { name: "context-window-genai", types: 3, hidden: 0, root: 4 },
];

/// The unstable foreign crates that a published crate's items may name: an adapter names those that it adapts
/// to.
pub(crate) const FOREIGN: &[(&str, &[&str])] = &[("context-window-ratatui", &["ratatui_core"])];

/// The types of a published crate that no example names. An example that names one is the place to show its
/// use: none is to be added.
pub(crate) const WITHOUT_EXAMPLE: &[(&str, &[&str])] = &[];
