//! What the installed files need of the libraries of Nvidia.

use super::elf::{Library, Machine, Symbols};
use super::error::{Error, io_error};
use super::owner;
use super::runtime::{self, Refused};
use super::torch::{self, Torch};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The soname of the driver's library.
pub(super) const DRIVER: &str = "libcuda.so.1";
/// The soname of the library that measures devices. PyTorch and pynvml open it by name.
pub(super) const MONITOR: &str = "libnvidia-ml.so.1";
/// Folders of site-packages without extensions that need shims. PyTorch is read apart, and the
/// libraries of `nvidia` are those that shims stand for.
const SKIPPED: [&str; 4] = ["torch", "nvidia", "__pycache__", "include"];

/// For each name the versions that files ask for, sorted; `None` is without one.
pub(super) type Names = BTreeMap<String, BTreeSet<Option<String>>>;

/// What installed files need of the libraries of Nvidia.
#[derive(Debug)]
pub struct Installed {
    pub(super) torch: Torch,
    pub(super) machine: Machine,
    /// The needed names for each soname.
    pub(super) libraries: BTreeMap<String, Names>,
    pub(super) cudnn: Option<(PathBuf, i32)>,
    pub(super) refused: Vec<Refused>,
}

/// The files of a site-packages folder that [`Installed::read`] reads.
#[derive(Debug)]
pub(super) struct Files {
    torch: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

impl Files {
    pub(super) fn find(packages: &Path) -> Result<Self, Error> {
        let mut torch = Vec::new();
        let lib = packages.join("torch/lib");
        for entry in fs::read_dir(&lib).map_err(io_error("read", &lib))? {
            let entry = entry.map_err(io_error("read", &lib))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_library(&name) && !owner::is_library_of_nvidia(&name) {
                torch.push(entry.path());
            }
        }
        torch.sort();
        let mut others = Vec::new();
        walk(packages, true, &mut others)?;
        others.sort();
        Ok(Self { torch, others })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.torch.iter().chain(&self.others)
    }
}

fn is_library(name: &str) -> bool {
    name.strip_suffix(".so").is_some() || name.contains(".so.")
}

fn walk(folder: &Path, is_top: bool, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(io_error("read", folder))? {
        let entry = entry.map_err(io_error("read", folder))?;
        let kind = entry.file_type().map_err(io_error("read", &entry.path()))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_dir() {
            let is_skipped = SKIPPED.contains(&&*name) || name.ends_with("-info");
            if !(is_skipped && (is_top || name == "__pycache__")) {
                walk(&entry.path(), false, found)?;
            }
        } else if is_library(&name) && !owner::is_library_of_nvidia(&name) {
            found.push(entry.path());
        }
    }
    Ok(())
}

impl Installed {
    /// Reads what the files of a site-packages folder need.
    ///
    /// # Errors
    ///
    /// The folder has no PyTorch with CUDA for Linux, or a library of PyTorch is damaged.
    pub fn read(packages: &Path) -> Result<Self, Error> {
        let torch = Torch::read(packages)?;
        let files = Files::find(packages)?;
        let mut reader = Reader::default();
        let mut machine = None;
        for path in &files.torch {
            let Some(mut file) = Library::open(path)? else {
                let what = "it is no 64-bit little-endian ELF file".to_owned();
                return Err(Error::Elf { file: path.clone(), what });
            };
            if file.soname.as_deref() == Some("libc10.so") && !file.needs("libc.so.6") {
                let folder = packages.to_owned();
                return Err(Error::System { folder, system: "another C library" });
            }
            machine.get_or_insert(file.machine);
            let symbols = file.symbols(is_of_interest)?;
            if path.ends_with("libc10_cuda.so") {
                reader.read_texts(path)?;
            }
            reader.add(&file, symbols);
        }
        let Some(machine) = machine else { return Err(Error::NoTorch(packages.to_owned())) };
        let expected = reader.versions();
        for path in &files.others {
            match other(path, machine, &expected) {
                Ok(Other::Needs(file, symbols)) => reader.add(&file, symbols),
                Ok(Other::Refused(refused)) => reader.refused.push(refused),
                Ok(Other::Neither) => {}
                // The file is another package's: its own import fails with the same reason.
                Err(error) => reader.refused.push(Refused {
                    file: path.clone(),
                    reason: error.to_string(),
                    is_certain: false,
                }),
            }
        }
        let libraries = reader.finish();
        let cudnn = torch::cudnn(packages);
        Ok(Self { torch, machine, libraries, cudnn, refused: reader.refused })
    }

    /// The version of CUDA: by PyTorch's own text, else by the soname of the runtime.
    pub(super) fn cuda(&self) -> Option<i32> {
        let by_soname = || {
            let sonames = self.libraries.keys().filter_map(|name| owner::of_soname(name));
            let runtime = sonames.into_iter().find(|soname| soname.library == "cudart")?;
            torch::number_of_cuda(runtime.version)
        };
        self.torch.cuda.or_else(by_soname)
    }
}

/// What a file of another package is.
enum Other {
    Needs(Library, Symbols),
    Refused(Refused),
    Neither,
}

fn other(
    path: &Path,
    machine: Machine,
    expected: &BTreeMap<&'static str, String>,
) -> Result<Other, Error> {
    let mut file = match Library::open(path) {
        Ok(Some(file)) if file.machine == machine => file,
        // Python cannot load files for another processor either.
        Ok(_) | Err(Error::Machine { .. }) => return Ok(Other::Neither),
        Err(error) => return Err(error),
    };
    let sonames: Vec<_> = file.needed.iter().filter_map(|name| owner::of_soname(name)).collect();
    // bitsandbytes has a file for each CUDA: PyTorch decides which is loaded.
    let is_of_another_cuda = sonames
        .iter()
        .any(|soname| expected.get(soname.library).is_some_and(|v| v != soname.version));
    if is_of_another_cuda {
        return Ok(Other::Neither);
    }
    let needs_cuda = !sonames.is_empty()
        || ["libc10_cuda.so", "libtorch_cuda.so"].iter().any(|name| file.needs(name));
    let symbols = file.symbols(is_of_interest)?;
    if let Some(refused) = runtime::inside(&mut file, &symbols)? {
        return Ok(Other::Refused(refused));
    }
    Ok(if needs_cuda { Other::Needs(file, symbols) } else { Other::Neither })
}

/// Whether a name is that of a function of Nvidia, or tells which library has one.
fn is_of_interest(name: &str) -> bool {
    owner::of_function(name).is_some()
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    libraries: BTreeMap<String, Names>,
    /// Names without a version. Which library has them is known once all files are read.
    unversioned: BTreeSet<String>,
    /// Names that the files themselves define.
    defined: BTreeSet<String>,
    /// Texts of `libc10_cuda.so` that are names of the driver: it asks for them at run time.
    driver: BTreeSet<String>,
    refused: Vec<Refused>,
}

impl Reader {
    fn add(&mut self, file: &Library, symbols: Symbols) {
        let sonames = file.needed.iter().filter(|name| owner::of_soname(name).is_some());
        for soname in sonames {
            self.libraries.entry(soname.clone()).or_default();
        }
        self.defined.extend(symbols.defined);
        for symbol in symbols.undefined {
            match symbol.version {
                None => _ = self.unversioned.insert(symbol.name),
                Some(version) => {
                    if let Some(names) = self.libraries.get_mut(&version.file) {
                        names.entry(symbol.name).or_default().insert(Some(version.name));
                    }
                }
            }
        }
    }

    /// Texts between null bytes that look like functions of the driver.
    fn read_texts(&mut self, path: &Path) -> Result<(), Error> {
        let bytes = fs::read(path).map_err(io_error("read", path))?;
        let is_name = |text: &&[u8]| {
            text.len() > 3 && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        };
        let texts = bytes.split(|byte| *byte == 0).filter(is_name);
        let texts = texts.map(|text| String::from_utf8_lossy(text).into_owned());
        self.driver.extend(texts.filter(|name| owner::of_function(name) == Some("cuda")));
        Ok(())
    }

    /// The version of each library in its soname, such as `cublas` and `13`.
    fn versions(&self) -> BTreeMap<&'static str, String> {
        let sonames = self.libraries.keys().filter_map(|name| owner::of_soname(name));
        sonames.map(|soname| (soname.library, soname.version.to_owned())).collect()
    }

    /// Gives names without a version to their libraries.
    fn finish(&mut self) -> BTreeMap<String, Names> {
        let mut libraries = std::mem::take(&mut self.libraries);
        for soname in [DRIVER, MONITOR] {
            libraries.entry(soname.to_owned()).or_default();
        }
        for name in self.unversioned.difference(&self.defined) {
            add_name(&mut libraries, name);
        }
        for name in &self.driver {
            add_name(&mut libraries, name);
        }
        libraries
    }
}

/// Adds a name without a version to each library that has functions of its kind. It gets the
/// version of the library's other functions.
pub(super) fn add_name(libraries: &mut BTreeMap<String, Names>, name: &str) {
    let Some(library) = owner::of_function(name) else { return };
    for (soname, names) in libraries {
        let is_it = owner::of_soname(soname).is_some_and(|soname| soname.library == library);
        if is_it && !names.contains_key(name) {
            let version = names.values().flatten().flatten().next().cloned();
            names.insert(name.to_owned(), BTreeSet::from([version]));
        }
    }
}
