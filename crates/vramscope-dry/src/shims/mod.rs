//! Small ELF files with the names of the libraries of Nvidia.
//!
//! PyTorch's files name the libraries that they need. A library that is already loaded answers for
//! its soname, wherever else a file of that name lies. So a launcher loads the shims first, and
//! nothing of the installation changes.

mod cache;
mod elf;
mod emit;
mod error;
mod installed;
mod layout;
mod owner;
mod runtime;
mod source;
mod stub;
#[cfg(test)]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tests;
mod torch;

pub use cache::cached;
pub use error::Error;
pub use installed::Installed;
pub use runtime::Refused;

use elf::Library;
use emit::{Function, Shim};
use error::io_error;
use installed::{DRIVER, Names, add_name};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The prefix of the core's functions.
const PREFIX: &str = "vs_";
/// The core's function that answers for all that it lacks.
const UNKNOWN: &str = "vs_unknown";

/// How the files are named and how they find the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `vs-cudart-13`, with the path of the core: for a launcher that loads each file by its path.
    /// PyTorch opens the real libraries beside a file whose name contains `libcudart.so`. The
    /// driver keeps its name: Triton links to `libcuda.so.1` in a folder.
    Cache,
    /// `libcudart.so.13`, with the file name of the core: for `LD_LIBRARY_PATH`, over a PyTorch
    /// without the packages of Nvidia.
    Soname,
}

impl Naming {
    fn file_name(self, soname: &str) -> String {
        match self {
            Self::Cache if soname != DRIVER => {
                let name = soname.strip_prefix("lib").unwrap_or(soname);
                format!("vs-{}", name.replace(".so.", "-"))
            }
            Self::Cache | Self::Soname => soname.to_owned(),
        }
    }
}

/// Shims on disk, and the installation that they are for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The shims, in the order in which to load them. The core comes before.
    pub files: Vec<PathBuf>,
    /// The version of CUDA that PyTorch was built for, such as 12080.
    pub cuda: Option<i32>,
    /// Folder and version of a cuDNN that plans without a device, such as 91900.
    pub cudnn: Option<(PathBuf, i32)>,
    /// PyTorch's version, such as `2.11.0+cu130`.
    pub torch: String,
    /// Files that do not work in a dry run, and why.
    pub refused: Vec<Refused>,
    /// Names that the core lacks. A call of one is answered by the core's `vs_unknown`.
    pub unknown: usize,
}

/// Writes shims for the PyTorch of a site-packages folder into `out`. They jump to `core`.
///
/// # Errors
///
/// The folder has no PyTorch that a dry run can use, a library is damaged, `core` lacks its
/// functions, or `out` cannot be written.
pub fn write(packages: &Path, core: &Path, out: &Path, naming: Naming) -> Result<Written, Error> {
    write_installed(Installed::read(packages)?, core, out, naming)
}

fn write_installed(
    installed: Installed,
    core: &Path,
    out: &Path,
    naming: Naming,
) -> Result<Written, Error> {
    let known = functions_of(core, &installed)?;
    let cuda = installed.cuda();
    let mut libraries = installed.libraries;
    // The real cuDNN asks these libraries for more than PyTorch does.
    for name in &known {
        add_name(&mut libraries, name);
    }
    let needed = match naming {
        Naming::Cache => std::path::absolute(core).map_err(io_error("find", core))?,
        Naming::Soname => PathBuf::from(core.file_name().unwrap_or(core.as_os_str())),
    };
    let needed = needed.to_string_lossy();
    fs::create_dir_all(out).map_err(io_error("create", out))?;
    let mut files = Vec::new();
    let mut unknown = BTreeSet::new();
    for (soname, names) in &libraries {
        unknown.extend(names.keys().filter(|name| !known.contains(*name)));
        let file = out.join(naming.file_name(soname));
        let targets = targets_of(names, &known);
        let shim = Shim {
            machine: installed.machine,
            soname,
            needed: &needed,
            functions: &functions(names, &targets),
            unknown: UNKNOWN,
        };
        let bytes = shim
            .bytes()
            .map_err(|error| Error::Elf { file: file.clone(), what: error.to_string() })?;
        fs::write(&file, bytes).map_err(io_error("write", &file))?;
        files.push(file);
    }
    Ok(Written {
        files,
        cuda,
        cudnn: installed.cudnn,
        torch: installed.torch.version,
        refused: installed.refused,
        unknown: unknown.len(),
    })
}

/// The names for which the core has a function, without its prefix.
fn functions_of(core: &Path, installed: &Installed) -> Result<BTreeSet<String>, Error> {
    let Some(mut file) = Library::open(core)? else {
        let what = "it is no 64-bit little-endian ELF file".to_owned();
        return Err(Error::Elf { file: core.to_owned(), what });
    };
    if file.machine != installed.machine {
        return Err(Error::Machine {
            file: core.to_owned(),
            found: file.machine.name().to_owned(),
            expected: installed.machine.name(),
        });
    }
    let names = file.symbols(|name| name.starts_with(PREFIX))?.defined;
    let names: BTreeSet<String> =
        names.iter().filter_map(|name| name.strip_prefix(PREFIX)).map(str::to_owned).collect();
    if !names.contains("unknown") {
        return Err(Error::Core(core.to_owned()));
    }
    Ok(names)
}

fn targets_of<'a>(names: &'a Names, known: &BTreeSet<String>) -> BTreeMap<&'a str, String> {
    let known = names.keys().filter(|name| known.contains(*name));
    known.map(|name| (name.as_str(), format!("{PREFIX}{name}"))).collect()
}

fn functions<'a>(names: &'a Names, targets: &'a BTreeMap<&str, String>) -> Vec<Function<'a>> {
    let all = names.iter().flat_map(|(name, versions)| {
        let target = targets.get(name.as_str()).map(String::as_str);
        let function = move |version: &'a Option<String>| Function {
            name,
            version: version.as_deref(),
            target,
        };
        versions.iter().map(function)
    });
    all.collect()
}
