//! Shims that the loader of this process loads.
#![expect(unsafe_code, reason = "loads libraries and calls their functions")]

use super::elf::{Library, Machine};
use super::emit::{Function, Shim};
use super::{Error, Naming, cached, write};
use object::read::elf::{ElfFile64, FileHeader as _, Rela as _, SectionHeader as _};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, elf};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};

type File<'a> = ElfFile64<'a>;

/// A library that the loader has loaded. It stays loaded.
struct Loaded(*mut c_void);

impl Loaded {
    fn open(path: &Path) -> Self {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the path is a C string, and libraries of these tests have no initializers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{}", loader_error());
        Self(handle)
    }

    fn find(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the handle is open, and the name is a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    fn find_version(&self, name: &str, version: &str) -> *mut c_void {
        unsafe extern "C" {
            fn dlvsym(handle: *mut c_void, name: *const c_char, v: *const c_char) -> *mut c_void;
        }
        let (name, version) = (CString::new(name).unwrap(), CString::new(version).unwrap());
        // SAFETY: the handle is open, and name and version are C strings.
        unsafe { dlvsym(self.0, name.as_ptr(), version.as_ptr()) }
    }
}

fn loader_error() -> String {
    // SAFETY: the text, if any, lives until the next call of the loader in this thread.
    let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
    text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

fn function<'a>(name: &'a str, version: Option<&'a str>, target: Option<&'a str>) -> Function<'a> {
    Function { name, version, target }
}

/// A core: its functions jump into the C library, except `vs_unknown`, which returns rax.
fn write_core(path: &Path) {
    let functions = [
        function("vs_cuFirst", None, Some("abs")),
        function("vs_cudaFirst", None, Some("abs")),
        function("vs_cudaLength", None, Some("strlen")),
        function("vs_unknown", None, Some("abs")),
    ];
    let shim = Shim {
        machine: Machine::X86_64,
        soname: "core.so",
        needed: "libc.so.6",
        functions: &functions,
        unknown: "abs",
    };
    let mut bytes = shim.bytes().unwrap();
    let file = File::parse(&*bytes).unwrap();
    let address = file.dynamic_symbols().find(|s| s.name() == Ok("vs_unknown")).unwrap().address();
    let text = file.section_by_name(".text").unwrap();
    let at = (address - text.address() + text.file_range().unwrap().0) as usize;
    bytes[at] = 0xc3; // ret
    fs::write(path, bytes).unwrap();
}

/// A library as PyTorch's: undefined functions of other libraries, without versions.
fn write_user(path: &Path, soname: &str, needed: &str, targets: &[&str]) {
    let functions: Vec<_> =
        targets.iter().map(|target| function("own_function", None, Some(*target))).collect();
    let shim =
        Shim { machine: Machine::X86_64, soname, needed, functions: &functions, unknown: "abs" };
    fs::write(path, shim.bytes().unwrap()).unwrap();
}

/// A site-packages folder with a PyTorch that needs three functions, and a core.
fn installation() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("site-packages");
    let lib = packages.join("torch/lib");
    fs::create_dir_all(&lib).unwrap();
    fs::write(packages.join("torch/version.py"), "__version__ = '2.9.1+cu128'\ncuda = '12.8'\n")
        .unwrap();
    write_user(&lib.join("libc10.so"), "libc10.so", "libc.so.6", &["abs"]);
    let needs = ["cudaFirst", "cudaLength", "cudaUnheardOf", "cudaOfTorch"];
    write_user(&lib.join("libc10_cuda.so"), "libc10_cuda.so", "libcudart.so.12", &needs);
    let functions = [function("cudaOfTorch", None, Some("abs"))];
    let torch = Shim {
        machine: Machine::X86_64,
        soname: "libtorch_cuda.so",
        needed: "libc10_cuda.so",
        functions: &functions,
        unknown: "abs",
    };
    fs::write(lib.join("libtorch_cuda.so"), torch.bytes().unwrap()).unwrap();
    let core = folder.path().join("core.so");
    write_core(&core);
    (folder, packages, core)
}

#[test]
fn known_functions_jump_and_unknown_names_arrive() {
    let (folder, packages, core) = installation();
    let written = write(&packages, &core, &folder.path().join("out"), Naming::Cache).unwrap();
    let names: Vec<_> = written.files.iter().map(|f| f.file_name().unwrap()).collect();
    assert_eq!(names, ["libcuda.so.1", "vs-cudart-12", "vs-nvidia-ml-1"]);
    assert_eq!((written.cuda, written.cudnn), (Some(12080), None));
    assert_eq!(written.torch, "2.9.1+cu128");
    // The name of PyTorch's own function is no name of the runtime.
    assert_eq!((written.unknown, written.refused), (1, vec![]));
    let shim = Loaded::open(&written.files[1]);
    // SAFETY: the address is of `abs`, by way of the core.
    let first: extern "C" fn(c_int) -> c_int =
        unsafe { std::mem::transmute(shim.find("cudaFirst")) };
    assert_eq!(first(-7), 7);
    // SAFETY: the address is of `strlen`, by way of the core.
    let length: extern "C" fn(*const c_char) -> usize =
        unsafe { std::mem::transmute(shim.find("cudaLength")) };
    assert_eq!(length(c"four".as_ptr()), 4);
    // SAFETY: the core's `vs_unknown` returns what it got in rax.
    let unknown: extern "C" fn() -> *const c_char =
        unsafe { std::mem::transmute(shim.find("cudaUnheardOf")) };
    // SAFETY: rax has the address of a text of the shim, which stays loaded.
    assert_eq!(unsafe { CStr::from_ptr(unknown()) }, c"cudaUnheardOf");
    assert!(shim.find("cudaOfTorch").is_null());
    // The driver has what the core knows, though nothing here needs it.
    assert!(!Loaded::open(&written.files[0]).find("cuFirst").is_null());
}

#[test]
fn symbols_have_the_versions_of_their_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libversions.so.3");
    let functions = [
        function("no_version", None, Some("abs")),
        function("one_version", Some("B_2"), Some("abs")),
        function("two_versions", Some("A_1"), Some("abs")),
        function("two_versions", Some("B_2"), Some("strlen")),
    ];
    let shim = Shim {
        machine: Machine::X86_64,
        soname: "libversions.so.3",
        needed: "libc.so.6",
        functions: &functions,
        unknown: "abs",
    };
    fs::write(&path, shim.bytes().unwrap()).unwrap();
    let library = Loaded::open(&path);
    let one = library.find_version("one_version", "B_2");
    assert!(!one.is_null() && one == library.find("one_version"));
    assert!(library.find_version("one_version", "A_1").is_null());
    assert!(!library.find("no_version").is_null());
    let (old, new) =
        (library.find_version("two_versions", "A_1"), library.find_version("two_versions", "B_2"));
    assert!(!old.is_null() && !new.is_null() && old != new);
    assert_eq!(library.find("two_versions"), new);
}

#[test]
fn a_file_for_aarch64_has_its_relocations_and_pages() {
    let functions = [
        function("cudaKnown", Some("libcudart.so.12"), Some("vs_cudaKnown")),
        function("cudaUnknown", Some("libcudart.so.12"), None),
    ];
    let shim = Shim {
        machine: Machine::Aarch64,
        soname: "libcudart.so.12",
        needed: "core.so",
        functions: &functions,
        unknown: "vs_unknown",
    };
    let bytes = shim.bytes().unwrap();
    let file = File::parse(&*bytes).unwrap();
    assert_eq!(file.architecture(), object::Architecture::Aarch64);
    let names: Vec<_> = file.dynamic_symbols().map(|s| s.name().unwrap().to_owned()).collect();
    assert_eq!(names, ["vs_cudaKnown", "vs_unknown", "cudaKnown", "cudaUnknown"]);
    let stubs: Vec<u64> = file.dynamic_symbols().skip(2).map(|s| s.address()).collect();
    assert_eq!(stubs[1] - stubs[0], 32);
    let section = file.section_by_name(".rela.dyn").unwrap();
    let endian = file.endian();
    let (relocations, _) =
        section.elf_section_header().rela(endian, &*bytes).unwrap().expect("relocations");
    let kinds: Vec<(u32, u32)> = relocations
        .iter()
        .map(|r| (r.r_type(endian, false), r.symbol(endian, false).map_or(0, |s| s.0 as u32)))
        .collect();
    let kind = elf::R_AARCH64_GLOB_DAT;
    assert_eq!(kinds, [(kind, 1), (kind, 2)]);
    // No two segments share a page of 64 KiB.
    let loads = file.elf_header().program_headers(endian, &*bytes).unwrap();
    let pages: Vec<(u64, u64)> = loads
        .iter()
        .filter(|p| p.p_type.get(endian) == elf::PT_LOAD)
        .map(|p| {
            let start = p.p_vaddr.get(endian);
            (start >> 16, (start + p.p_memsz.get(endian) - 1) >> 16)
        })
        .collect();
    assert!(pages.windows(2).all(|two| two[0].1 < two[1].0), "{pages:?}");
}

#[test]
fn a_written_file_is_read_back() {
    let (folder, packages, core) = installation();
    let out = folder.path().join("out");
    let written = write(&packages, &core, &out, Naming::Soname).unwrap();
    assert_eq!(written.files[1], out.join("libcudart.so.12"));
    let mut shim = Library::open(&written.files[1]).unwrap().unwrap();
    assert_eq!(shim.soname.as_deref(), Some("libcudart.so.12"));
    assert_eq!(shim.needed, ["core.so"]);
    let symbols = shim.symbols(|_| true).unwrap();
    assert_eq!(symbols.defined, ["cudaFirst", "cudaLength", "cudaUnheardOf"]);
    let undefined: Vec<_> = symbols.undefined.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(undefined, ["vs_cudaFirst", "vs_cudaLength", "vs_unknown"]);
}

#[test]
fn extensions_count_unless_they_are_for_another_cuda() {
    let (folder, packages, core) = installation();
    let package = packages.join("extension");
    fs::create_dir(&package).unwrap();
    let write_one = |name, needed, target| {
        write_user(&package.join(name), name, needed, &[target]);
    };
    write_one("_C.so", "libcublas.so.12", "cublasOfExtension");
    write_one("lib_cuda11.so", "libcudart.so.11.0", "cudaOfAnother");
    write_one("lib_hash.so", "libcudart-d0da41ae.so.12", "cudaOfCopy");
    fs::write(package.join("empty.so"), "").unwrap();
    let written = write(&packages, &core, &folder.path().join("out"), Naming::Soname).unwrap();
    let names: Vec<_> = written.files.iter().map(|f| f.file_name().unwrap()).collect();
    let copy = "libcudart-d0da41ae.so.12";
    let expected =
        ["libcublas.so.12", "libcuda.so.1", copy, "libcudart.so.12", "libnvidia-ml.so.1"];
    assert_eq!(names, expected);
    assert!(!Loaded::open(&core).0.is_null());
    let mut copy = Library::open(&written.files[2]).unwrap().unwrap();
    assert!(copy.symbols(|name| name == "cudaOfAnother").unwrap().defined.is_empty());
    assert_eq!(copy.symbols(|name| name == "cudaOfCopy").unwrap().defined.len(), 1);
}

#[test]
fn a_runtime_inside_of_an_extension_is_refused() {
    let (folder, packages, core) = installation();
    let package = packages.join("extension");
    fs::create_dir(&package).unwrap();
    let functions = [function("cudaGetDeviceCount", None, Some("abs"))];
    let shim = Shim {
        machine: Machine::X86_64,
        soname: "_C.so",
        needed: "libc.so.6",
        functions: &functions,
        unknown: "abs",
    };
    fs::write(package.join("_C.so"), shim.bytes().unwrap()).unwrap();
    // A text of the runtime among the constants: here the name of a function without a target.
    let text = "CUDA driver version is insufficient for CUDA runtime version";
    let functions = [function(text, None, None)];
    let shim = Shim { soname: "_D.so", functions: &functions, ..shim };
    fs::write(package.join("_D.so"), shim.bytes().unwrap()).unwrap();
    let written = write(&packages, &core, &folder.path().join("out"), Naming::Cache).unwrap();
    let refused: Vec<_> = written
        .refused
        .iter()
        .map(|r| (r.file.file_name().unwrap().to_str().unwrap(), r.is_certain))
        .collect();
    assert_eq!(refused, [("_C.so", true), ("_D.so", false)]);
}

#[test]
fn damaged_files_and_wrong_cores_are_named() {
    let (folder, packages, core) = installation();
    let out = folder.path().join("out");
    let lib = packages.join("torch/lib/libc10_cuda.so");
    let error = write(&packages, &lib, &out, Naming::Cache).unwrap_err();
    assert!(matches!(error, Error::Core(_)), "{error}");
    let whole = fs::read(&lib).unwrap();
    // Any cut, and any changed byte of the tables, gives an error or another answer, no panic.
    for cut in (64..whole.len()).step_by(7) {
        fs::write(&lib, &whole[..cut]).unwrap();
        _ = write(&packages, &core, &out, Naming::Cache);
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0xff;
        fs::write(&lib, changed).unwrap();
        _ = super::Installed::read(&packages);
    }
    fs::write(&lib, &whole[..200]).unwrap();
    let error = write(&packages, &core, &out, Naming::Cache).unwrap_err().to_string();
    assert!(error.contains("libc10_cuda.so") && error.contains("200 bytes"), "{error}");
    fs::write(&lib, "no library at all, but a text that is longer than the header of one is")
        .unwrap();
    let error = write(&packages, &core, &out, Naming::Cache).unwrap_err().to_string();
    assert!(error.contains("no 64-bit little-endian ELF file"), "{error}");
}

#[test]
fn the_cache_is_used_until_a_file_changes() {
    let (folder, packages, core) = installation();
    let cache = folder.path().join("cache");
    let first = cached(&packages, &core, &cache).unwrap();
    assert!(first.files.iter().all(|file| file.is_file()));
    assert_eq!(cached(&packages, &core, &cache).unwrap(), first);
    let folders = || fs::read_dir(&cache).unwrap().count();
    assert_eq!(folders(), 1);
    // A folder that is not whole is written anew.
    fs::remove_file(&first.files[0]).unwrap();
    assert_eq!(cached(&packages, &core, &cache).unwrap(), first);
    assert!(first.files[0].is_file());
    for count in 2..=12 {
        write_user(&packages.join(format!("new{count}.so")), "new.so", "libc.so.6", &["abs"]);
        let next = cached(&packages, &core, &cache).unwrap();
        assert_ne!(next.files, first.files);
        assert_eq!(folders(), 8.min(count));
    }
}

#[test]
fn processes_may_fill_the_cache_at_once() {
    let (folder, packages, core) = installation();
    let cache = folder.path().join("cache");
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| cached(&packages, &core, &cache).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|written| *written == all[0]));
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
}
