//! Redaction: names that a recording got from its program become hashes, and numbers stay.
//!
//! Equal names have equal hashes, so all that is grouped by name stays grouped. The hash is keyed
//! with a salt that is drawn for each export and not kept, so a guessed name cannot be checked.
//!
//! What PyTorch, Python and the packages that vramscope knows define is public and stays: without
//! it, no category and no step could be told. Of a private name, words that the rules of categories
//! look for stay behind the hash, such as `optim`.

use crate::sidecar::Sidecar;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use vramscope_analysis::{
    Category, Rule, Rules, is_framework_file, is_framework_frame, is_generated_file, is_library,
    own_name,
};
use vramscope_snapshot::Texts;

/// Packages that the rules of categories and the findings name. Their names and files are public.
const PACKAGES: [&str; 25] = [
    "torch",
    "torch_snapkit",
    "torchvision",
    "torchaudio",
    "transformers",
    "triton",
    "vllm",
    "sglang",
    "deepspeed",
    "megatron",
    "accelerate",
    "safetensors",
    "lightning",
    "pytorch_lightning",
    "flash_attn",
    "xformers",
    "apex",
    "bitsandbytes",
    "peft",
    "trl",
    "diffusers",
    "timm",
    "ray",
    "numpy",
    "vramscope",
];

/// Words of paths and names, beside the rules' own, that decide a number where they occur.
const WORDS: [&str; 12] = [
    "optimizer",
    "zero_grad",
    "backward",
    "forward",
    "cache",
    "log_softmax",
    "dropout",
    "convert",
    "conv",
    "empty_cache",
    "torchinductor",
    "compile-ps",
];

/// Ends of paths that decide a number.
const ENDINGS: [&str; 6] = [
    "checkpoint.py",
    "checkpointing.py",
    "/linear.py",
    "/nn/modules/module.py",
    "module.py",
    "graphs.py",
];

/// Functions with a name that many programs have.
const FUNCTIONS: [&str; 6] = ["_call_impl", "_forward", "forward", "backward", "step", "main"];

/// Namespaces whose functions are public.
const NAMESPACES: [&str; 9] =
    ["at::", "c10::", "c10d::", "torch::", "std::", "void at::", "_Py", "Py", "THP"];

/// Shared libraries that are public.
const LIBRARIES: [&str; 7] =
    ["libtorch", "libc10", "libcu", "libnv", "libnccl", "libpython", "libc.so"];

/// Ranges that PyTorch names, before a number or a class.
const RANGES: [&str; 3] = ["ProfilerStep", "Optimizer.step", "Optimizer.zero_grad"];

/// Names in a model that PyTorch defines.
const PARTS: [&str; 14] = [
    "weight",
    "bias",
    "grad",
    "exp_avg",
    "exp_avg_sq",
    "max_exp_avg_sq",
    "momentum_buffer",
    "step",
    "square_avg",
    "running_mean",
    "running_var",
    "num_batches_tracked",
    "master_param",
    "layers",
];

/// What starts the name of a type of elements.
const DTYPES: [&str; 9] =
    ["float", "bfloat", "int", "uint", "bool", "complex", "quint", "qint", "bits"];

/// Replaces names by hashes.
pub struct Redaction {
    salt: Vec<u8>,
}

impl Redaction {
    /// A redaction with this salt. Do not store the salt: with it, a guessed name can be checked.
    pub fn new(salt: &[u8]) -> Self {
        Self { salt: salt.to_vec() }
    }

    /// The hash of a name: a letter and 12 hexadecimal digits.
    pub fn hash(&self, name: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.salt, name).hash(&mut hasher);
        format!("r{:012x}", hasher.finish() >> 16)
    }

    /// The hash, with the words that decide a number. `part` is the part of the name in which rules
    /// look for their words.
    fn with_words(&self, name: &str, part: &str, of: fn(&Rule) -> &str) -> String {
        let mut out = self.hash(name);
        let lower = name.to_ascii_lowercase();
        let mut keep = |word: &str| {
            if !out.contains(word) {
                if !word.starts_with('/') {
                    out.push('_');
                }
                out.push_str(word);
            }
        };
        words(part, of).for_each(&mut keep);
        WORDS.iter().filter(|word| lower.contains(*word)).for_each(|word| keep(word));
        out
    }

    fn file(&self, file: &str) -> String {
        let path = file.replace('\\', "/");
        if let Some(public) = public_part(&path) {
            return public;
        }
        // These name no file.
        if matches!(file, "" | "??" | "<string>") || file.starts_with("<frozen ") {
            return file.to_owned();
        }
        let mut out = self.with_words(&path, &path, |rule| &rule.file);
        match ENDINGS.iter().find(|end| path.ends_with(*end)) {
            Some(end) => out = format!("{out}/{}", end.trim_start_matches('/')),
            None if path.starts_with("<ipython") => out = format!("<ipython-{out}>"),
            None if path.starts_with('<') => out = format!("<{out}>"),
            None => {
                let (_, name) = path.rsplit_once('/').unwrap_or(("", &path));
                if let Some((_, end)) = name.rsplit_once('.').filter(|(_, end)| end.len() <= 4) {
                    out = format!("{out}.{end}");
                }
            }
        }
        match path.split_once("-packages/").map(|(_, rest)| rest.split('/').collect::<Vec<_>>()) {
            // Wrappers are in the folder of utilities of their package.
            Some(rest) if rest.len() == 3 && matches!(rest[1], "utils" | "_utils") => {
                format!("/site-packages/{}/utils/{out}", self.hash(rest[0]))
            }
            Some(_) => format!("/site-packages/{out}"),
            None => out,
        }
    }

    fn function(&self, function: &str, file: &str) -> String {
        let is_whole = |rule: &Rule| rule.function.strip_prefix('=') == Some(function);
        if NAMESPACES.iter().any(|start| function.starts_with(start)) {
            // The arguments of a template can be the program's. Rules look for words behind them.
            let Some((head, _)) = function.split_once('<') else { return function.to_owned() };
            let close = if head.contains('(') { ">)" } else { ">" };
            let mut out = format!("{head}<{}{close}", self.hash(function));
            for word in words(&own_name(function), |rule| &rule.function) {
                if !own_name(&out).contains(word) {
                    out = format!("{out}_{word}");
                }
            }
            return out;
        }
        let is_public = function.is_empty()
            || function.starts_with('<')
            || function.starts_with("__") && function.ends_with("__")
            || FUNCTIONS.contains(&function)
            || is_python(file) && is_framework_frame(function, file)
            || public_part(&file.replace('\\', "/")).is_some()
            || Rules::built_in().iter().any(is_whole);
        if is_public {
            return function.to_owned();
        }
        self.with_words(function, &own_name(function), |rule| &rule.function)
    }

    /// A dotted name in a model. Numbers of layers stay.
    fn tensor(&self, name: &str) -> String {
        let part = |part: &str| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            if is_number || PARTS.contains(&part) { part.to_owned() } else { self.hash(part) }
        };
        name.split('.').map(part).collect::<Vec<_>>().join(".")
    }

    /// The file beside a snapshot, without its lines of source.
    pub fn sidecar(&self, sidecar: &Sidecar) -> Sidecar {
        let mut out = sidecar.clone();
        out.sources.clear();
        out.host = out.host.map(|host| self.hash(&host));
        for tensor in out.tensors.iter_mut().flat_map(|at| &mut at.tensors) {
            let record = &mut tensor.record;
            record.name = self.tensor(&record.name);
            if !DTYPES.iter().any(|start| record.dtype.starts_with(start)) {
                record.dtype = self.hash(&record.dtype);
            }
        }
        out
    }
}

impl Texts for Redaction {
    fn frame(&self, function: &str, file: &str) -> (String, String) {
        (self.function(function, file), self.file(file))
    }

    fn range(&self, name: &str) -> String {
        let (head, rest) = match name.split_once('#') {
            Some((head, rest)) if RANGES.contains(&head) => (head, rest),
            _ => return self.with_words(name, "", |_| "*"),
        };
        let is_number = rest.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { name.to_owned() } else { format!("{head}#{}", self.hash(rest)) }
    }

    fn note(&self, text: &str) -> String {
        let region = text.strip_prefix("Torch-Compiled Region: ");
        let is_region =
            region.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit() || b == b'/'));
        if is_region || is_profile_category(text) { text.to_owned() } else { self.hash(text) }
    }

    fn setting(&self, key: &str, value: &str) -> String {
        let is_text = value.starts_with('"') && value != "\"\"";
        if is_text && !key.ends_with("_ALLOC_CONF") {
            return format!("\"{}\"", self.hash(value));
        }
        value.to_owned()
    }
}

/// The words in a text that rules look for.
fn words(text: &str, of: fn(&Rule) -> &str) -> impl Iterator<Item = &'static str> {
    let patterns = Rules::built_in().iter().map(of);
    patterns.filter(move |word| !word.starts_with(['*', '=']) && text.contains(word))
}

fn is_python(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, end)| end == "py")
}

/// Whether a text is a category that PyTorch's profiler recorded.
fn is_profile_category(text: &str) -> bool {
    let name = text.to_ascii_lowercase();
    name == "autograd_detail" || Category::parse(&name).is_some()
}

/// The public end of a path, if it has one: from the folder of a known package or of Python's own
/// files on.
fn public_part(path: &str) -> Option<String> {
    let from = |marker: &str| path.rfind(marker).map(|at| path[at..].to_owned());
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(rest) = from(folder) {
            let package = rest[folder.len()..].split(['/', '.']).next().unwrap_or_default();
            return PACKAGES.contains(&package).then_some(rest);
        }
    }
    if is_library(path) {
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_known = LIBRARIES.iter().any(|start| name.starts_with(start));
        return is_known.then(|| name.to_owned());
    }
    if !is_python(path) || !is_framework_file(path) {
        return None;
    }
    // The default cache of Inductor has the user's name.
    if is_generated_file(path) {
        let at = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at);
        return Some(format!("/torchinductor{}", &path[at..]));
    }
    let library = || {
        let at = path.to_ascii_lowercase().rfind("/lib/")?;
        Some(format!("/conda{}", &path[at..]))
    };
    from("/lib/python").or_else(|| from("/torch/")).or_else(library)
}
