//! Redaction: names that a recording got from its program become hashes, and numbers stay.
//!
//! Equal names have equal hashes, so all that is grouped by name stays grouped. The hash is keyed
//! with a salt that is drawn for each export and not kept, so a guessed name cannot be checked.
//!
//! What PyTorch, Python and the packages that vramscope knows define is public and stays: without
//! it, no category and no step could be told. Every set of public names is closed, so a private
//! name that begins as a public one is private. Of a private name, words that the rules of
//! categories look for stay behind the hash, such as `optim`.

mod holders;
mod public;

use crate::dry::DryRun;
use crate::sidecar::Sidecar;
use crate::what_if::gpu_names;
use public::Words;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use vramscope_inference::{Category, Rule, Rules, own_name};
use vramscope_snapshot::Texts;
use vramscope_trace::{is_framework_file, is_framework_frame, is_generated_file, is_library};

/// Packages that the rules of categories and the findings name. Their names and files are public.
const PACKAGES: Words = Words(
    "torch torch_snapkit torchvision torchaudio transformers triton vllm sglang deepspeed megatron \
     accelerate safetensors lightning pytorch_lightning flash_attn xformers apex bitsandbytes peft \
     trl diffusers timm ray numpy vramscope",
);

/// Words of paths and names, beside the rules' own, that decide a number where they occur.
const WORDS: Words = Words(
    "optimizer zero_grad backward forward cache log_softmax dropout convert conv empty_cache \
     torchinductor compile-ps",
);

/// Ends of paths that decide a number.
const ENDINGS: [&str; 6] = [
    "checkpoint.py",
    "checkpointing.py",
    "/linear.py",
    "/nn/modules/module.py",
    "module.py",
    "graphs.py",
];

/// Ends of the names of source files and libraries.
const KINDS: [&str; 9] = ["py", "pyx", "so", "c", "cc", "cpp", "cu", "h", "hpp"];

/// Ranges that PyTorch names, before a number or a class.
const RANGES: [&str; 3] = ["ProfilerStep", "Optimizer.step", "Optimizer.zero_grad"];

/// Names in a model that PyTorch defines.
const PARTS: Words = Words(
    "weight bias grad exp_avg exp_avg_sq max_exp_avg_sq momentum_buffer step square_avg \
     running_mean running_var num_batches_tracked master_param layers",
);

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
        WORDS.iter().filter(|word| lower.contains(word)).for_each(&mut keep);
        out
    }

    fn file(&self, file: &str) -> String {
        let path = file.replace('\\', "/");
        if let Some(known) = known_part(&path) {
            return self.known_file(known);
        }
        // The default cache of Inductor has the user's name.
        if is_generated_file(&path) {
            let at = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
            return format!("/torchinductor/{}", self.private_file(&path[at..]));
        }
        // These name no file.
        if matches!(file, "" | "??" | "<string>") || public::is_frozen(file) {
            return file.to_owned();
        }
        let out = self.private_file(&path);
        match path.split_once("-packages/").map(|(_, rest)| rest.split('/').collect::<Vec<_>>()) {
            // Wrappers are in the folder of utilities of their package.
            Some(rest) if rest.len() == 3 && matches!(rest[1], "utils" | "_utils") => {
                format!("/site-packages/{}/utils/{out}", self.hash(rest[0]))
            }
            Some(_) => format!("/site-packages/{out}"),
            None => out,
        }
    }

    /// A file of Python or a known package. Its public folders and its public name stay.
    fn known_file(&self, path: &str) -> String {
        let part = |part: &str| {
            let stem = part.strip_suffix(".py").unwrap_or(part);
            let is_public = part.is_empty()
                || public::is_folder(part)
                || public::is_library(part)
                || public::is_name(stem);
            if is_public { part.to_owned() } else { self.private_file(part) }
        };
        let out = path.split('/').map(part).collect::<Vec<_>>().join("/");
        // Python's library on Windows is known by the folders above it.
        let mut folders = out.split('/').skip(1);
        let is_windows = folders.next().is_some_and(|folder| folder.eq_ignore_ascii_case("lib"))
            && !folders.next().is_some_and(|folder| folder.starts_with("python"));
        if is_windows { format!("C:/conda{out}") } else { out }
    }

    /// A file that the program defines. The kind of file stays.
    fn private_file(&self, path: &str) -> String {
        let out = self.with_words(path, path, |rule| &rule.file);
        if let Some(end) = ENDINGS.iter().find(|end| path.ends_with(*end)) {
            return format!("{out}/{}", end.trim_start_matches('/'));
        }
        if path.starts_with('<') {
            return format!(
                "<{}{out}>",
                if path.starts_with("<ipython") { "ipython-" } else { "" }
            );
        }
        match path.rsplit_once('.').filter(|(_, kind)| KINDS.contains(kind)) {
            Some((_, kind)) => format!("{out}.{kind}"),
            None => out,
        }
    }

    fn function(&self, function: &str, file: &str) -> String {
        if !is_python(file) && !file.starts_with('<') && !function.starts_with('<') {
            return self.native(function);
        }
        if let Some(private) =
            function.strip_prefix("<resume in ").and_then(|f| f.strip_suffix('>'))
        {
            return format!("<resume in {}>", self.function(private, file));
        }
        let is_whole = |rule: &Rule| rule.function.strip_prefix('=') == Some(function);
        let is_public = public::is_python_function(function)
            || is_wrapper(function, file)
            || known_part(&file.replace('\\', "/")).is_some() && public::is_name(function)
            || Rules::built_in().iter().any(is_whole);
        if is_public && !function.starts_with("<resume in ") {
            return function.to_owned();
        }
        self.with_words(function, &own_name(function), |rule| &rule.function)
    }

    /// The name of a compiled function. Identifiers of PyTorch and CPython stay.
    fn native(&self, function: &str) -> String {
        let mut out = String::with_capacity(function.len());
        let mut rest = function;
        while let Some(c) = rest.chars().next() {
            // Anything but ASCII punctuation may be a part of a name.
            let is_part = |c: char| !(c.is_ascii_punctuation() || c == ' ') || c == '_';
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(if end == 0 { c.len_utf8() } else { end });
            if end == 0 || public::is_identifier(word) {
                out.push_str(word);
            } else {
                out.push_str(&self.hash(word));
            }
            rest = after;
        }
        if out == function {
            return out;
        }
        let is_whole = |rule: &Rule| rule.function.strip_prefix('=') == Some(function);
        if public::FUNCTIONS.contains(function) || Rules::built_in().iter().any(is_whole) {
            return function.to_owned();
        }
        for word in words(&own_name(function), |rule| &rule.function) {
            if !own_name(&out).contains(word) {
                out = format!("{out}_{word}");
            }
        }
        out
    }

    /// A dotted name in a model. Numbers of layers stay.
    fn tensor(&self, name: &str) -> String {
        let part = |part: &str| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            if is_number || PARTS.contains(part) { part.to_owned() } else { self.hash(part) }
        };
        name.split('.').map(part).collect::<Vec<_>>().join(".")
    }

    /// The file beside a snapshot, without its lines of source.
    pub fn sidecar(&self, sidecar: &Sidecar) -> Sidecar {
        let mut out = sidecar.clone();
        // Without `..`: a new field is told here whether it has names.
        let Sidecar {
            reason,
            host,
            torch,
            backend,
            cuda,
            driver,
            alloc_conf,
            devices,
            tensors,
            uses,
            sources,
            holders,
            dry,
            left_out,
            version: _,
            rank: _,
            world_size: _,
            // Flags with numbers.
            launch: _,
            steps: _,
        } = &mut out;
        sources.clear();
        // Reasons quote what is in the file.
        left_out.clear();
        let word = |text: &mut String, is_public: fn(&str) -> bool| {
            if !is_public(text) {
                *text = self.hash(text);
            }
        };
        for (text, is_public) in [
            (host, (|_| false) as fn(&str) -> bool),
            (reason, public::is_reason),
            (torch, public::is_version),
            (backend, public::is_backend),
            (cuda, public::is_version),
            (driver, public::is_version),
            (alloc_conf, public::is_configuration),
        ] {
            if let Some(text) = text {
                word(text, is_public);
            }
        }
        for device in devices {
            word(&mut device.name, public::is_device);
        }
        for name in uses.iter_mut().flat_map(|uses| &mut uses.names) {
            word(name, public::is_operation);
        }
        for tensor in tensors.iter_mut().flat_map(|at| &mut at.tensors) {
            let record = &mut tensor.record;
            record.name = self.tensor(&record.name);
            word(&mut record.kind, public::is_kind_of_tensor);
            word(&mut record.dtype, public::is_dtype);
        }
        if let Some(holders) = holders {
            self.holders(holders);
        }
        if let Some(dry) = dry {
            self.dry(dry);
        }
        out
    }

    /// What a dry run was of. Lines keep their numbers.
    fn dry(&self, dry: &mut DryRun) {
        let DryRun {
            gpu,
            values,
            read,
            cudnn,
            unknown,
            own_runtimes,
            ended,
            at,
            memory_bytes: _,
            is_searching: _,
            has_kernels: _,
            pid: _,
        } = dry;
        let word = |text: &mut String, is_public: bool| {
            if !is_public {
                *text = self.hash(text);
            }
        };
        let line = |text: &mut String| {
            let (file, number) = text.rsplit_once(':').unwrap_or((text.as_str(), ""));
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            *text =
                if is_number { format!("{}:{number}", self.hash(file)) } else { self.hash(text) };
        };
        let is_gpu = gpu_names().any(|name| name == gpu.as_str());
        word(gpu, is_gpu);
        let is_grade = ["off", "small", "full"].contains(&values.as_str());
        word(values, is_grade);
        for one in read {
            line(&mut one.line);
            let is_operation = public::is_operation(&format!("aten.{}", one.operator));
            word(&mut one.operator, is_operation);
            let is_dtype = public::is_dtype(&one.dtype);
            word(&mut one.dtype, is_dtype);
            let is_kind = ["size", "branch"].contains(&one.decides.as_str());
            word(&mut one.decides, is_kind);
        }
        if let Some(version) = cudnn {
            let is_version = version == "model" || public::is_version(version);
            word(version, is_version);
        }
        if let Some(ended) = ended {
            let known = ["steps", "limit", "interrupt", "KeyboardInterrupt", "OutOfMemoryError"];
            let is_known = known.contains(&ended.as_str());
            word(ended, is_known);
        }
        if let Some(at) = at {
            line(at);
        }
        for name in unknown.iter_mut().chain(own_runtimes) {
            *name = self.hash(name);
        }
    }

    /// A value of a setting. Numbers stay.
    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) if !text.is_empty() => *text = self.hash(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(pairs) => {
                let all = std::mem::take(pairs).into_iter();
                *pairs = all
                    .map(|(key, mut value)| {
                        self.value(&mut value);
                        (self.key(&key), value)
                    })
                    .collect();
            }
            _ => {}
        }
    }

    /// A dotted key of the settings.
    fn key(&self, key: &str) -> String {
        let part = |part: &str| {
            if public::is_setting(part) { part.to_owned() } else { self.hash(part) }
        };
        key.split('.').map(part).collect::<Vec<_>>().join(".")
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

    fn setting(&self, key: &str, value: &str) -> (String, String) {
        let value = match serde_json::from_str(value) {
            Ok(Value::String(text))
                if key.ends_with("_ALLOC_CONF") && public::is_configuration(&text) =>
            {
                value.to_owned()
            }
            Ok(mut json) => {
                self.value(&mut json);
                json.to_string()
            }
            Err(_) => self.hash(value),
        };
        (self.key(key), value)
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

/// Whether a frame is a known function that forwards calls, in any file.
fn is_wrapper(function: &str, file: &str) -> bool {
    !is_framework_file(file) && is_framework_frame(function, file)
}

/// Whether a text is a category that PyTorch's profiler recorded.
fn is_profile_category(text: &str) -> bool {
    let name = text.to_ascii_lowercase();
    name == "autograd_detail" || Category::parse(&name).is_some()
}

/// The end of a path from the folder of a known package, of PyTorch or of Python's own files on, or
/// a known library. `None` for a path of the program.
fn known_part(path: &str) -> Option<&str> {
    let from = |marker: &str| path.rfind(marker).map(|at| &path[at..]);
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(rest) = from(folder) {
            let package = rest[folder.len()..].split(['/', '.']).next().unwrap_or_default();
            return PACKAGES.contains(package).then_some(rest);
        }
    }
    if is_library(path) {
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        return public::is_library(name).then_some(name);
    }
    if !is_python(path) || !is_framework_file(path) || is_generated_file(path) {
        return None;
    }
    let lower = path.to_ascii_lowercase();
    ["/lib/python", "/torch/", "/lib/"]
        .iter()
        .find_map(|folder| Some(&path[lower.rfind(folder)?..]))
}
