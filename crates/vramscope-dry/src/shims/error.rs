//! Why shims cannot be written.

use std::io;
use std::path::{Path, PathBuf};

/// Why shims cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder has no PyTorch.
    #[error(
        "No PyTorch in {}: expected torch/version.py. Install PyTorch there, or name the \
         site-packages folder that has it.",
        .0.display()
    )]
    NoTorch(PathBuf),
    /// The PyTorch is built for the CPU.
    #[error(
        "The PyTorch in {} is {version}, without CUDA. Install a CUDA build: \
         pip install torch --index-url https://download.pytorch.org/whl/cu128",
        .folder.display()
    )]
    NoCuda {
        /// The site-packages folder.
        folder: PathBuf,
        /// `torch.__version__`.
        version: String,
    },
    /// The PyTorch is built for AMD's GPUs.
    #[error(
        "The PyTorch in {} is {version}, built for ROCm. A dry run needs a CUDA build of PyTorch.",
        .folder.display()
    )]
    Rocm {
        /// The site-packages folder.
        folder: PathBuf,
        /// `torch.__version__`.
        version: String,
    },
    /// The PyTorch is built for another system.
    #[error(
        "The PyTorch in {} is for {system}. A dry run needs Linux with glibc.",
        .folder.display()
    )]
    System {
        /// The site-packages folder.
        folder: PathBuf,
        /// The system that the files are for.
        system: &'static str,
    },
    /// A library is built for another processor.
    #[error("{} is for {found}: expected {expected}.", .file.display())]
    Machine {
        /// The library.
        file: PathBuf,
        /// The processor of the library.
        found: String,
        /// The processors that would do.
        expected: &'static str,
    },
    /// A file is no shared library, or its tables are broken.
    #[error(
        "Cannot read {} as an ELF library: {what}. Install its package again.",
        .file.display()
    )]
    Elf {
        /// The library.
        file: PathBuf,
        /// The table, and what is wrong with it.
        what: String,
    },
    /// The library of the dry run lacks its functions.
    #[error("{} has no function vs_unknown: expected the library of vramscope-dry.", .0.display())]
    Core(PathBuf),
    /// A text file has not the expected form.
    #[error("Cannot read {}: {what}.", .file.display())]
    Text {
        /// The file.
        file: PathBuf,
        /// The expected text.
        what: String,
    },
    /// The system refused a file operation.
    #[error("Cannot {action} {}: {source}.", .file.display())]
    Io {
        /// Such as `read`.
        action: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
}

/// Adds action and file to an error of the system.
pub(super) fn io_error(action: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Error {
    let file = file.to_owned();
    move |source| Error::Io { action, file, source }
}
