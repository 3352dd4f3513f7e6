//! Which library of Nvidia a soname or a function belongs to.

use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Whether a library has a function of this name.
type Test = fn(&str) -> bool;

/// The libraries that shims stand for, with the test for names of their functions. The first test
/// that accepts a name decides. Other libraries of cuDNN are not here: the user's own stay real.
const LIBRARIES: [(&str, Test); 23] = [
    ("cuda", is_driver),
    ("nvidia-ml", |name| name.starts_with("nvml")),
    ("cufile", |name| name.starts_with("cuFile")),
    ("nccl", |name| name.starts_with("nccl")),
    ("cusparseLt", |name| name.starts_with("cusparseLt")),
    ("cudss", |name| name.starts_with("cudss")),
    ("curand", |name| name.starts_with("curand")),
    ("nvToolsExt", |name| name.starts_with("nvtx")),
    // Its functions of C++ have longer names around this one.
    ("nvshmem_host", has_nvshmem),
    ("nvrtc", |name| bare(name).starts_with("nvrtc")),
    ("cupti", |name| name.starts_with("cupti")),
    ("nvJitLink", |name| bare(name).starts_with("nvJitLink")),
    ("nvfatbin", |name| name.starts_with("nvFatbin")),
    ("nvjpeg", |name| name.starts_with("nvjpeg")),
    ("nvcuvid", |name| name.starts_with("cuvid")),
    ("cudnn", |name| name.starts_with("cudnn")),
    ("cufft", |name| name.starts_with("cufft")),
    ("cublasLt", |name| name.starts_with("cublasLt")),
    ("cublas", |name| name.starts_with("cublas")),
    ("cusparse", |name| name.starts_with("cusparse")),
    ("cusolverMg", |name| name.starts_with("cusolverMg")),
    ("cusolver", |name| name.starts_with("cusolver")),
    ("cudart", |name| bare(name).starts_with("cuda")),
];

/// `cuMemAlloc`, and not `cuFileRead`.
fn is_driver(name: &str) -> bool {
    let rest = name.strip_prefix("cu").unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_uppercase()) && !rest.starts_with("File")
}

fn has_nvshmem(name: &str) -> bool {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("nvshmem"));
    FINDER.find(name.as_bytes()).is_some()
}

/// Private functions begin with two underscores.
fn bare(name: &str) -> &str {
    name.strip_prefix("__").unwrap_or(name)
}

/// The library that has a function of this name, such as `cublas`.
pub(super) fn of_function(name: &str) -> Option<&'static str> {
    // Nearly all names of PyTorch are of C++, and libtorch_cpu.so has 80,000.
    if name.starts_with("_Z") {
        return has_nvshmem(name).then_some("nvshmem_host");
    }
    LIBRARIES.iter().find(|(_, accepts)| accepts(name)).map(|(library, _)| *library)
}

/// A soname in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Soname<'a> {
    /// Such as `cublas`.
    pub(super) library: &'static str,
    /// Such as `12`.
    pub(super) version: &'a str,
}

/// Takes the soname of a library of Nvidia apart. Wheels that bring their own copy put a hash into
/// its name: `libcudart-d0da41ae.so.11.0`, `libcudart.faf08d9a.so.13`.
pub(super) fn of_soname(soname: &str) -> Option<Soname<'_>> {
    let (name, version) = soname.strip_prefix("lib")?.split_once(".so.")?;
    let is_hash = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let name = match name.rsplit_once(['-', '.']) {
        Some((name, hash)) if is_hash(hash) => name,
        _ => name,
    };
    let (library, _) = LIBRARIES.iter().find(|(library, _)| *library == name)?;
    Some(Soname { library, version })
}

/// Whether a file has the name of a library of Nvidia, with or without a version.
pub(super) fn is_library_of_nvidia(file: &str) -> bool {
    let Some(name) = file.strip_prefix("lib") else { return false };
    of_soname(file).is_some()
        || LIBRARIES.iter().any(|(library, _)| {
            name.strip_prefix(library).is_some_and(|rest| rest == ".so" || rest == "_static.a")
        })
        || ["cudnn_", "npp", "nvrtc-builtins", "nvinfer"].iter().any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_libraries_by_their_names() {
        for (name, library) in [
            ("cuMemAlloc_v2", "cuda"),
            ("cuLibraryLoadFromFile", "cuda"),
            ("cuFileRead", "cufile"),
            ("cudaMalloc", "cudart"),
            ("__cudaRegisterFatBinary", "cudart"),
            ("cudnnCreate", "cudnn"),
            ("cublasLtMatmul", "cublasLt"),
            ("cublasCreate_v2", "cublas"),
            ("cusparseLtInit", "cusparseLt"),
            ("cusparseCreate", "cusparse"),
            ("cusolverMgCreate", "cusolverMg"),
            ("cusolverDnCreate", "cusolver"),
            ("__nvrtcGetX", "nvrtc"),
            ("_Z16nvshmemi_barrierv", "nvshmem_host"),
            ("nvmlInit_v2", "nvidia-ml"),
        ] {
            assert_eq!(of_function(name), Some(library), "{name}");
        }
        for name in ["malloc", "cub", "cu", "custom_op", "_Z3cudav", "curly"] {
            assert_eq!(of_function(name), None, "{name}");
        }
    }

    #[test]
    fn sonames_may_have_a_hash() {
        let parts = |soname| of_soname(soname).map(|parts| (parts.library, parts.version));
        assert_eq!(parts("libcudart.so.13"), Some(("cudart", "13")));
        assert_eq!(parts("libcudart-d0da41ae.so.11.0"), Some(("cudart", "11.0")));
        assert_eq!(parts("libcudart.faf08d9a.so.13"), Some(("cudart", "13")));
        assert_eq!(parts("libnvidia-ml.so.1"), Some(("nvidia-ml", "1")));
        assert_eq!(parts("libcudnn_graph.so.9"), None);
        assert_eq!(parts("libcudart.so"), None);
        assert_eq!(parts("libcudart-d0da41a.so.11.0"), None);
        assert_eq!(parts("libjpeg.b1a87dc0.so.8"), None);
        assert!(is_library_of_nvidia("libcudnn_graph.so.9"));
        assert!(is_library_of_nvidia("libcupti.so"));
        assert!(!is_library_of_nvidia("libcudaq.so"));
        assert!(!is_library_of_nvidia("libc10_cuda.so"));
    }
}
