//! What PyTorch and cuDNN are installed, by their text files.

use super::error::{Error, io_error};
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest cuDNN that plans without a device, as its header writes it: 9.8.0.
const FIRST_CUDNN: i32 = 90_800;

/// PyTorch by its `version.py`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Torch {
    /// Such as `2.11.0+cu130`.
    pub(super) version: String,
    /// Such as 13000 for CUDA 13.0.
    pub(super) cuda: Option<i32>,
}

impl Torch {
    /// Reads `torch/version.py` of a site-packages folder.
    pub(super) fn read(packages: &Path) -> Result<Self, Error> {
        let file = packages.join("torch/version.py");
        if !file.exists() {
            return Err(Error::NoTorch(packages.to_owned()));
        }
        let text = fs::read_to_string(&file).map_err(io_error("read", &file))?;
        let Some(version) = assigned(&text, "__version__") else {
            return Err(Error::Text { file, what: "expected a line `__version__ = '...'`".into() });
        };
        let folder = packages.to_owned();
        let lib = packages.join("torch/lib");
        for (name, system) in [("c10.dll", "Windows"), ("libc10.dylib", "macOS")] {
            if lib.join(name).exists() {
                return Err(Error::System { folder, system });
            }
        }
        if assigned(&text, "hip").is_some() {
            return Err(Error::Rocm { folder, version });
        }
        let cuda = assigned(&text, "cuda");
        if cuda.is_none() && !lib.join("libc10_cuda.so").exists() {
            return Err(Error::NoCuda { folder, version });
        }
        Ok(Self { version, cuda: cuda.and_then(|text| number_of_cuda(&text)) })
    }
}

/// The text in quotes that a line assigns to a name, with or without a type.
fn assigned(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (target, value) = line.split_once('=')?;
        let target = target.split(':').next()?.trim();
        let value = value.trim();
        let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        (target == name).then(|| value.trim_matches(quote).to_owned())
    })
}

/// `12.8` is 12080.
pub(super) fn number_of_cuda(text: &str) -> Option<i32> {
    let mut parts = text.split('.').map(str::parse::<i32>);
    let major = parts.next()?.ok()?;
    let minor = parts.next().map_or(Some(0), Result::ok)?;
    Some(major * 1000 + minor * 10)
}

/// Folder and version of a cuDNN in a site-packages folder that plans without a device, such as
/// 91900. `None` also for an older one.
pub(super) fn cudnn(packages: &Path) -> Option<(PathBuf, i32)> {
    let package = packages.join("nvidia/cudnn");
    let lib = package.join("lib");
    if !lib.join("libcudnn_graph.so.9").exists() {
        return None;
    }
    let version = cudnn_by_header(&package).or_else(|| cudnn_by_package(packages))?;
    (version >= FIRST_CUDNN).then_some((lib, version))
}

/// The files that decide [`cudnn`].
pub(super) fn cudnn_headers(packages: &Path) -> [PathBuf; 2] {
    ["cudnn_version.h", "cudnn_version_v9.h"]
        .map(|name| packages.join("nvidia/cudnn/include").join(name))
}

fn cudnn_by_header(package: &Path) -> Option<i32> {
    let packages = package.parent()?.parent()?;
    cudnn_headers(packages).iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let number = |name: &str| {
            text.lines().find_map(|line| {
                let mut words = line.split_whitespace();
                let is_it = words.next() == Some("#define") && words.next() == Some(name);
                if is_it { words.next()?.parse::<i32>().ok() } else { None }
            })
        };
        version_of_cudnn([
            number("CUDNN_MAJOR")?,
            number("CUDNN_MINOR")?,
            number("CUDNN_PATCHLEVEL")?,
        ])
    })
}

/// By the name of the metadata folder: `nvidia_cudnn_cu12-9.10.2.21.dist-info`.
fn cudnn_by_package(packages: &Path) -> Option<i32> {
    let names = fs::read_dir(packages).ok()?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let rest = name.strip_prefix("nvidia_cudnn_cu")?.strip_suffix(".dist-info")?;
        let mut parts = rest.split_once('-')?.1.split('.').map(|part| part.parse::<i32>().ok());
        version_of_cudnn([parts.next()??, parts.next()??, parts.next()??])
    });
    names.max()
}

/// 9.19.0 is 91900, as `CUDNN_VERSION` since cuDNN 9.
fn version_of_cudnn([major, minor, patch]: [i32; 3]) -> Option<i32> {
    (major >= 9).then_some(major * 10_000 + minor * 100 + patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_version(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("torch/lib")).unwrap();
        fs::write(folder.path().join("torch/version.py"), text).unwrap();
        folder
    }

    #[test]
    fn versions_come_from_the_file_of_pytorch() {
        let folder = with_version(
            "from typing import Optional\n__version__ = '2.9.1+cu128'\ndebug = False\n\
             cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n",
        );
        let torch = Torch::read(folder.path()).unwrap();
        assert_eq!(torch, Torch { version: "2.9.1+cu128".into(), cuda: Some(12080) });
        let folder = with_version("__version__ = \"2.1.2\"\ncuda = \"11.8\"\nhip = None\n");
        assert_eq!(Torch::read(folder.path()).unwrap().cuda, Some(11080));
    }

    #[test]
    fn other_builds_are_refused_with_a_reason() {
        let error = |text| Torch::read(with_version(text).path()).unwrap_err().to_string();
        let cpu = error("__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n");
        assert!(cpu.contains("is 2.11.0+cpu, without CUDA"), "{cpu}");
        let rocm = error("__version__ = '2.9.1+rocm6.4'\ncuda = None\nhip = '6.4.43482'\n");
        assert!(rocm.contains("built for ROCm"), "{rocm}");
        assert!(error("nothing\n").contains("version.py"));
        let empty = tempfile::tempdir().unwrap();
        let none = Torch::read(empty.path()).unwrap_err().to_string();
        assert!(none.starts_with("No PyTorch in "), "{none}");
        let folder = with_version("__version__ = '2.9.1'\ncuda = '12.8'\n");
        fs::write(folder.path().join("torch/lib/c10.dll"), "").unwrap();
        let windows = Torch::read(folder.path()).unwrap_err().to_string();
        assert!(windows.contains("is for Windows"), "{windows}");
    }

    #[test]
    fn cudnn_counts_from_9_8_on() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("nvidia/cudnn");
        for part in ["lib", "include"] {
            fs::create_dir_all(package.join(part)).unwrap();
        }
        assert_eq!(cudnn(folder.path()), None);
        fs::write(package.join("lib/libcudnn_graph.so.9"), "").unwrap();
        let info = folder.path().join("nvidia_cudnn_cu12-9.10.2.21.dist-info");
        fs::create_dir(info).unwrap();
        let lib = package.join("lib");
        assert_eq!(cudnn(folder.path()), Some((lib.clone(), 91_002)));
        let header = |minor| {
            format!(
                "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR {minor}\n#define CUDNN_PATCHLEVEL 1\n"
            )
        };
        let file = package.join("include/cudnn_version.h");
        fs::write(&file, header(19)).unwrap();
        assert_eq!(cudnn(folder.path()), Some((lib, 91_901)));
        fs::write(&file, header(7)).unwrap();
        assert_eq!(cudnn(folder.path()), None);
    }
}
