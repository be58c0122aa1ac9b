//! The published crates of the workspace, and the crates that each depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use cargo_metadata::{
    CrateType, DependencyKind, Metadata, MetadataCommand, Package, PackageId, semver::Version,
};

use crate::document::{self, Compiler, Outcome};

/// The workspace as Cargo describes it.
pub(crate) struct Workspace {
    metadata: Metadata,
    compiler: Arc<Compiler>,
}

impl Workspace {
    /// Reads the workspace of this package with all its features, for this machine's target.
    pub(crate) fn read() -> Self {
        let compiler = Compiler::read();
        let options = ["--all-features", "--filter-platform", compiler.host.as_str()].map(str::to_owned);
        let metadata = MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .other_options(options)
            .exec()
            .unwrap_or_else(|error| panic!("cargo metadata: {error}"));
        Self { metadata, compiler: Arc::new(compiler) }
    }

    /// Returns the members that have a library and may be published.
    pub(crate) fn published(&self) -> Vec<Published> {
        let members = self.metadata.workspace_packages().into_iter();
        let published = members.filter(|package| package.publish.as_ref().is_none_or(|to| !to.is_empty()));
        published.filter_map(|package| self.published_crate(package)).collect()
    }

    fn published_crate(&self, package: &Package) -> Option<Published> {
        Some(Published {
            name: package.name.to_string(),
            library: library(package)?,
            dependencies: self.dependencies(&package.id),
            members: self.metadata.workspace_packages().into_iter().filter_map(library).collect(),
            workspace: self.metadata.workspace_root.clone().into(),
            target: self.metadata.target_directory.join("interface").into(),
            compiler: Arc::clone(&self.compiler),
            document: OnceLock::new(),
        })
    }

    /// Returns the versions of the external crates that a package is built from, by the names of their
    /// libraries.
    fn dependencies(&self, package: &PackageId) -> BTreeMap<String, BTreeSet<Version>> {
        let resolve = self.metadata.resolve.as_ref().expect("cargo metadata resolves dependencies");
        let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
        let mut found = BTreeMap::<String, BTreeSet<Version>>::new();
        let (mut seen, mut waiting) = (BTreeSet::from([package]), vec![package]);
        while let Some(id) = waiting.pop() {
            let package = &self.metadata[id];
            if package.source.is_some() {
                let versions = found.entry(library(package).unwrap_or_default()).or_default();
                versions.insert(package.version.clone());
            }
            for dependency in &nodes[id].deps {
                let mut kinds = dependency.dep_kinds.iter();
                if kinds.any(|kind| kind.kind == DependencyKind::Normal) && seen.insert(&dependency.pkg) {
                    waiting.push(&dependency.pkg);
                }
            }
        }
        found
    }
}

/// Returns the name that programs use for a package's library.
fn library(package: &Package) -> Option<String> {
    let kinds = [CrateType::Lib, CrateType::RLib, CrateType::DyLib, CrateType::ProcMacro];
    let is_library = |types: &[CrateType]| types.iter().any(|kind| kinds.contains(kind));
    let target = package.targets.iter().find(|target| {
        !target.is_example() && !target.is_bin() && !target.is_test() && is_library(&target.crate_types)
    })?;
    Some(target.name.replace('-', "_"))
}

/// A crate with a public interface.
pub(crate) struct Published {
    /// The package's name.
    pub(crate) name: String,
    /// The library's name in programs.
    pub(crate) library: String,
    /// Versions of the external crates that it is built from, by the names of their libraries.
    pub(crate) dependencies: BTreeMap<String, BTreeSet<Version>>,
    /// The names of the workspace's libraries.
    pub(crate) members: BTreeSet<String>,
    /// The workspace's root folder.
    pub(crate) workspace: PathBuf,
    /// The target folder for documentation. It differs from that of other builds, because the compiler runs
    /// with another environment, which would rebuild everything there.
    pub(crate) target: PathBuf,
    pub(crate) compiler: Arc<Compiler>,
    document: OnceLock<Outcome>,
}

impl Published {
    /// Returns the crate's documentation. It is built once.
    pub(crate) fn document(&self) -> &Outcome {
        self.document.get_or_init(|| document::build(self))
    }
}
