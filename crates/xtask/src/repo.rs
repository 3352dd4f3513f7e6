//! Paths of the repository.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The checkout from which this program was built.
pub(crate) struct Repo {
    /// Root folder.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
    /// Cargo's metadata of the packages of the workspace.
    pub(crate) metadata: cargo_metadata::Metadata,
}

impl Repo {
    pub(crate) fn find() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest = here.join("../../Cargo.toml");
        let metadata = cargo_metadata::MetadataCommand::new()
            .manifest_path(&manifest)
            .no_deps()
            .exec()
            .with_context(|| format!("cargo metadata of {}", manifest.display()))?;
        let root = metadata.workspace_root.clone().into_std_path_buf();
        let target = metadata.target_directory.clone().into_std_path_buf();
        Ok(Self { root, target, metadata })
    }

    /// A path below the root.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// The npm workspace.
    pub(crate) fn web(&self) -> PathBuf {
        self.path("web")
    }

    /// The built site.
    pub(crate) fn dist(&self) -> PathBuf {
        self.path("web/site/dist")
    }
}
