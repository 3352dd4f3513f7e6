//! The names that PyTorch, Python and CUDA define. Each set is closed: it lists whole names, or the
//! words of which whole names consist.

use super::PACKAGES;
use rustc_hash::FxHashSet;
use std::sync::LazyLock;
use vramscope_inference::Rules;

/// A set of words, with white space between them.
pub(super) struct Words(pub(super) &'static str);

impl Words {
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.0.split_whitespace()
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.iter().any(|known| known == word)
    }
}

/// Words of identifiers in PyTorch's and CPython's libraries: of the functions that recordings with
/// C++ frames have, of PyTorch's operators, and of nodes of its autograd graph.
static WORDS: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| include_str!("words.txt").split_whitespace().collect());

/// Files and functions of PyTorch, and of packages that build on it, with a word that is not in
/// [`WORDS`]. They are whole names, and public in the folder of a known package only.
static NAMES: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
    let of_rules = Rules::built_in().iter().flat_map(|rule| rule.file.split('/'));
    let of_rules = of_rules.map(|name| name.strip_suffix(".py").unwrap_or(name));
    include_str!("names.txt").split_whitespace().chain(PACKAGES.iter()).chain(of_rules).collect()
});

/// Modules that Python holds in itself.
const FROZEN: Words = Words(
    "__hello__ __phello__ _collections_abc _sitebuiltins abc codecs genericpath getpath \
     importlib._bootstrap importlib._bootstrap_external importlib.machinery importlib.util io \
     ntpath os posixpath runpy site stat zipimport",
);

/// Functions with a name that many programs have.
pub(super) const FUNCTIONS: Words = Words("_call_impl _forward forward backward step main");

/// Functions that Python names itself.
const UNNAMED: Words =
    Words("<lambda> <module> <listcomp> <setcomp> <dictcomp> <genexpr> <eval_with_key> <string>");

/// Methods with a meaning to Python or PyTorch, without the underscores around them.
const SPECIAL: Words = Words(
    "init new del call enter exit aenter aexit iter next aiter anext len getitem setitem delitem \
     contains getattr getattribute setattr delattr get set repr str hash bool int float index eq \
     ne lt le gt ge add radd iadd sub rsub isub mul rmul imul truediv rtruediv floordiv mod pow \
     rpow matmul rmatmul neg abs invert and or xor torch_function torch_dispatch post_init",
);

/// Shared libraries, without versions.
const LIBRARIES: Words = Words(
    "libtorch libtorch_cpu libtorch_cuda libtorch_cuda_linalg libtorch_python libtorch_global_deps \
     libtorch_hip libtorch_nvshmem libshm libc10 libc10_cuda libc10_hip libcaffe2_nvrtc libcuda \
     libcudart libcublas libcublasLt libcudnn libcudnn_adv libcudnn_cnn libcudnn_ops \
     libcudnn_graph libcudnn_heuristic libcudnn_engines_precompiled \
     libcudnn_engines_runtime_compiled libcudnn_adv_infer libcudnn_adv_train libcudnn_cnn_infer \
     libcudnn_cnn_train libcudnn_ops_infer libcudnn_ops_train libcufft libcufile libcupti \
     libcurand libcusolver libcusolverMg libcusparse libcusparseLt libnccl libnvJitLink \
     libnvToolsExt libnvrtc libnvrtc-builtins libnvshmem_host libnvidia-ml libpython libc libm \
     libdl librt libpthread libgomp libgcc_s libstdc++ libtriton ld-linux-x86-64",
);

/// Keys of allocator settings, and words of their values.
const SETTINGS: Words = Words(
    "PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF backend native cudaMallocAsync expandable_segments \
     garbage_collection_threshold graph_capture_record_stream_reuse large_segment_size_mb \
     last_allocator_settings max_cached_size max_non_split_rounding_mb max_round_threshold \
     max_split_size max_split_size_mb per_process_memory_fraction pinned_background_threads \
     pinned_max_cached_size_mb pinned_max_round_threshold_mb pinned_num_register_threads \
     pinned_reserve_segment_size_mb pinned_use_background_threads pinned_use_cuda_host_register \
     release_lock_on_cudamalloc roundup_power2_divisions throw_on_cudamalloc_oom \
     trace_alloc_max_entries trace_alloc_overflowed True",
);

/// Words of the names of GPUs, beside models such as `H100` and sizes such as `80GB`.
const DEVICES: Words = Words(
    "NVIDIA Tesla GeForce Quadro TITAN RTX GTX Ti SUPER Laptop GPU Graphics Device PCIe SXM NVL \
     AMD Radeon Instinct PRO OAM Ada Generation Server Edition Max-Q MIG",
);

/// Letters of models and sizes, before and behind the digits.
const MODEL_STARTS: [&str; 21] = [
    "", "A", "B", "C", "D", "E", "GB", "GH", "GP", "H", "HBM", "K", "L", "M", "MI", "MX", "P",
    "SXM", "T", "V", "W",
];
const MODEL_ENDS: [&str; 14] =
    ["", "A", "D", "G", "GB", "M", "S", "SXM", "Ti", "X", "XT", "XTX", "a", "e"];

/// Endings of the names of types of elements, behind a kind and its bits.
const DTYPES: [&str; 10] =
    ["", "_e4m3fn", "_e4m3fnuz", "_e5m2", "_e5m2fnuz", "_e8m0fnu", "_e2m1fn_x2", "x2", "x4", "x8"];

/// Whether a function of Python code has a name that Python or many programs give.
pub(super) fn is_python_function(name: &str) -> bool {
    let special = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
    name.is_empty()
        || UNNAMED.contains(name)
        || FUNCTIONS.contains(name)
        || special.is_some_and(|name| SPECIAL.contains(name))
}

/// Whether an identifier of compiled code consists of PyTorch's and CPython's words, of numbers and
/// of fewer single letters.
pub(super) fn is_identifier(name: &str) -> bool {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')) {
        return false;
    }
    let (letters, words): (Vec<String>, Vec<String>) =
        words(name).partition(|word| word.len() == 1);
    match words.len() {
        0 => name == "c10" || name.trim_end_matches(['u', 'l']).bytes().all(|b| b.is_ascii_digit()),
        count => letters.len() <= count && words.iter().all(|word| WORDS.contains(word.as_str())),
    }
}

/// The words of an identifier in lower case: `structured_addmm_out_cuda`, `CUDACachingAllocator`.
/// Digits are none.
fn words(name: &str) -> impl Iterator<Item = String> {
    let bytes = name.as_bytes();
    let starts = |at: usize| {
        let (before, here) = (bytes[at - 1], bytes[at]);
        let after = bytes.get(at + 1);
        here.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || after.is_some_and(u8::is_ascii_lowercase))
    };
    let mut parts = vec![String::new()];
    for (at, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphabetic() || (at > 0 && starts(at)) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| byte.is_ascii_alphabetic()) {
            part.push(byte.to_ascii_lowercase().into());
        }
    }
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Whether a file without its ending, a folder or a function of Python, PyTorch or a known package
/// has a public name.
pub(super) fn is_name(name: &str) -> bool {
    NAMES.contains(name) || is_identifier(name)
}

/// Whether a part of a path names a folder of Python: `lib`, `python3.11`.
pub(super) fn is_folder(name: &str) -> bool {
    let is_version = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    matches!(name, "lib" | "Lib" | "site-packages" | "dist-packages")
        || name.strip_prefix("python").is_some_and(is_version)
}

/// Whether a file is a module that Python holds in itself: `<frozen runpy>`.
pub(super) fn is_frozen(file: &str) -> bool {
    let module = file.strip_prefix("<frozen ").and_then(|file| file.strip_suffix('>'));
    module.is_some_and(|module| FROZEN.contains(module))
}

/// Whether a file name is that of a known library: `libcudart-d0da41ae.so.11.0`.
pub(super) fn is_library(name: &str) -> bool {
    let Some((stem, version)) = name.split_once(".so") else { return false };
    let is_hash = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let stem = stem.rsplit_once('-').filter(|(_, hash)| is_hash(hash)).map_or(stem, |(s, _)| s);
    let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_known = LIBRARIES
        .iter()
        .any(|known| known == stem || known.trim_end_matches(|c: char| c.is_ascii_digit()) == stem);
    is_known && version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Whether a part of a dotted key of the settings is PyTorch's.
pub(super) fn is_setting(key: &str) -> bool {
    SETTINGS.contains(key) || key.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a value of `PYTORCH_CUDA_ALLOC_CONF` has only words of PyTorch, numbers and signs.
pub(super) fn is_configuration(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_ascii_punctuation() && c != '_' || c == ' ');
    words.all(|word| is_setting(word) || matches!(word, "" | "False" | "true" | "false"))
}

/// Whether a text is a version: `2.9.1+cu128`.
pub(super) fn is_version(text: &str) -> bool {
    let (number, build) = text.split_once('+').unwrap_or((text, ""));
    let build = ["cu", "cpu", "rocm"]
        .iter()
        .find_map(|start| build.strip_prefix(start))
        .or(build.is_empty().then_some(""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_number(number) && build.is_some_and(is_number)
}

/// Whether a text is a name of a GPU.
pub(super) fn is_device(name: &str) -> bool {
    let is_model = |word: &str| {
        let letters = |text: &str| text.bytes().take_while(u8::is_ascii_alphabetic).count();
        let head = letters(word);
        let digits = word[head..].bytes().take_while(u8::is_ascii_digit).count();
        let (start, end) = (&word[..head], &word[head + digits..]);
        (1..=5).contains(&digits) && MODEL_STARTS.contains(&start) && MODEL_ENDS.contains(&end)
    };
    let mut words = name.split([' ', '-', '/', '(', ')', '[', ']']);
    words.all(|word| word.is_empty() || DEVICES.contains(word) || is_model(word))
}

/// Whether a text is a type of elements: `float32`, `bfloat16`, `float8_e4m3fn`.
pub(super) fn is_dtype(text: &str) -> bool {
    let kinds = ["float", "bfloat", "int", "uint", "complex", "quint", "qint", "bits"];
    let bits = kinds.iter().filter_map(|kind| text.strip_prefix(kind));
    let mut endings = bits.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    text == "bool" || endings.any(|rest| DTYPES.contains(&rest))
}

/// Whether a text is a kind of tensor that the recorder writes.
pub(super) fn is_kind_of_tensor(text: &str) -> bool {
    matches!(text, "parameter" | "buffer" | "gradient" | "optimizer_state")
}

/// Whether a text is a backend of devices.
pub(super) fn is_backend(text: &str) -> bool {
    matches!(text, "cuda" | "rocm" | "xpu" | "npu" | "mtia")
}

/// Whether a text is the name of an operation of PyTorch.
pub(super) fn is_operation(text: &str) -> bool {
    text.strip_prefix("aten.").is_some_and(is_identifier)
}

/// Whether a text is a reason for which the recorder writes a snapshot.
pub(super) fn is_reason(text: &str) -> bool {
    matches!(text, "step" | "oom" | "signal" | "end" | "call")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_pytorch_are_public_and_others_are_not() {
        for name in [
            "structured_addmm_out_cuda_functional",
            "CUDACachingAllocator",
            "AddmmBackward0_apply_functional",
            "_PyEval_EvalFrameDefault",
            "THPVariable_layer_norm",
            "wrapper_CUDA__slow_conv2d_forward",
            "at",
            "c10",
            "operator",
        ] {
            assert!(is_identifier(name), "{name}");
        }
        for name in [
            "PyramidNetAcme",
            "secret",
            "at_secret",
            "THPAcme",
            "größe",
            "acmeKernel",
            "s_e_c_r_e_t",
            "S",
            "at s",
            "at_s_e_c",
        ] {
            assert!(!is_identifier(name), "{name}");
        }
    }

    #[test]
    fn sets_are_closed() {
        assert!(is_library("libcudart-d0da41ae.so.11.0") && is_library("libpython3.11.so.1.0"));
        assert!(is_library("libc10.so") && is_library("libc.so.6"));
        assert!(!is_library("libnvacme.so") && !is_library("libtorch_acme.so"));
        assert!(is_version("2.9.1+cu128") && is_version("535.104") && !is_version("2.9+acme"));
        assert!(is_device("NVIDIA H100 80GB HBM3") && is_device("Tesla V100-SXM2-16GB"));
        assert!(!is_device("Acme H100"));
        assert!(is_dtype("float8_e4m3fn") && is_dtype("bool") && !is_dtype("floatAcme"));
        assert!(is_configuration("expandable_segments:True,roundup_power2_divisions:[256:1,>:8]"));
        assert!(!is_configuration("expandable_segments:True,acme:1"));
        assert!(is_device("NVIDIA GeForce RTX 4090") && is_device("AMD Instinct MI300X"));
        assert!(!is_device("NVIDIA Sec1ret") && !is_device("NVIDIA A123456"));
        assert!(is_name("threading") && is_name("_fully_shard") && !is_name("acme"));
        assert!(is_folder("python3.11") && !is_folder("python_acme") && !is_folder("acme"));
        assert!(is_frozen("<frozen importlib._bootstrap>") && !is_frozen("<frozen acme>"));
        assert!(!is_frozen("<frozen runpy>acme") && !is_frozen("<frozen runpy> <frozen os>"));
    }
}
