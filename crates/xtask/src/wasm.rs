//! Builds the two wasm modules: compiles them, binds them to JavaScript, optimizes them with
//! wasm-opt, and places them beside the viewer's TypeScript.
//!
//! wasm-bindgen is used as a library, so that its version is the one in Cargo.lock. The module
//! `threads` builds the worker's module once more, with threads.

use crate::{cmd, files, machine, repo::Repo};
use anyhow::{Context, Result, anyhow};
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
pub(crate) const PROFILE: &str = "wasm";

/// How the modules are built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What a visitor downloads.
    Release,
    /// Compiled in a fraction of the time: larger and slower modules, without wasm-opt.
    Fast,
}

impl Mode {
    fn profile(self) -> &'static str {
        match self {
            Self::Release => PROFILE,
            Self::Fast => "wasm-fast",
        }
    }
}

/// A crate that is built as a wasm module.
#[derive(Clone, Copy)]
struct Module {
    /// The module's file name beside the TypeScript, and cargo's, without extension.
    name: &'static str,
    package: &'static str,
}

const MODULES: [Module; 2] = [
    Module { name: "vramscope_worker", package: "vramscope-worker" },
    Module { name: "vramscope_view", package: "vramscope-view" },
];

/// Every browser with WebGL2 and module workers has SIMD.
const RUSTFLAGS: &str = "-Ctarget-feature=+simd128";

/// The linker must not strip: it would drop the section that tells wasm-bindgen and wasm-opt which
/// target features are in use. They strip instead.
pub(crate) const UNSTRIPPED: &str = "profile.wasm.strip=\"none\"";

/// Builds all modules into web/viewer/wasm.
pub(crate) fn build(repo: &Repo, mode: Mode) -> Result<()> {
    crate::install::target(repo, TARGET)?;
    crate::install::npm(repo)?;
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for module in MODULES {
            // wasm-opt of one module runs while the next one compiles.
            let compiled = compile(repo, module, mode)?;
            workers.push(scope.spawn(move || bind(repo, module, mode, &compiled)));
        }
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow!("wasm-bindgen panicked"))?)
    })
}

fn compile(repo: &Repo, module: Module, mode: Mode) -> Result<Vec<u8>> {
    let profile = mode.profile();
    let unstripped = format!("profile.{profile}.strip=\"none\"");
    let mut args = vec!["build", "--quiet", "--target", TARGET, "--profile", profile];
    args.extend(["--config", &unstripped, "--package", module.package]);
    let mut cargo = cmd::cargo(&args, &repo.root);
    machine::set_flags(repo, &mut cargo, &[RUSTFLAGS])?;
    cmd::run(&mut cargo)?;
    let compiled = repo.target.join(TARGET).join(profile).join(format!("{}.wasm", module.name));
    std::fs::read(&compiled).with_context(|| format!("reading {}", compiled.display()))
}

/// Runs wasm-bindgen and wasm-opt for one module, unless its bytes are those of the last run.
fn bind(repo: &Repo, module: Module, mode: Mode, bytes: &[u8]) -> Result<()> {
    let module = module.name;
    let out = repo.path("web/viewer/wasm");
    let stamp = out.join(format!("{module}.stamp"));
    let options = if mode == Mode::Release { OPTIMIZE.join(" ") } else { String::new() };
    let mark = format!("{} {options}\n", fingerprint(bytes));
    let products = [format!("{module}_bg.wasm"), format!("{module}.d.ts"), format!("{module}.js")];
    if products.iter().all(|p| out.join(p).is_file())
        && std::fs::read_to_string(&stamp).is_ok_and(|old| old == mark)
    {
        return Ok(());
    }
    let scratch = generate(repo, module, mode, bytes)?;
    std::fs::create_dir_all(&out)?;
    // The JavaScript comes last: a server that watches it reloads the page, which needs the wasm.
    for name in
        files::below(&scratch)?.iter().map(|p| p.strip_prefix(&scratch).map(Path::to_path_buf))
    {
        let name = name?;
        if name != Path::new(&products[2]) {
            place(&scratch, &out, &name)?;
        }
    }
    place(&scratch, &out, Path::new(&products[2]))?;
    std::fs::write(&stamp, mark).with_context(|| format!("writing {}", stamp.display()))
}

/// Runs wasm-bindgen and wasm-opt, and returns the folder with their output only.
pub(crate) fn generate(repo: &Repo, module: &str, mode: Mode, bytes: &[u8]) -> Result<PathBuf> {
    let scratch = repo.target.join("xtask").join(module);
    if scratch.is_dir() {
        std::fs::remove_dir_all(&scratch)
            .with_context(|| format!("emptying {}", scratch.display()))?;
    }
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen
        .input_bytes(module, bytes.to_vec())
        .web(true)?
        .typescript(true)
        .omit_default_module_path(false);
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(&scratch).with_context(|| format!("wasm-bindgen of {module}"))?;
    if mode == Mode::Release {
        optimize(repo, &scratch.join(format!("{module}_bg.wasm")))?;
    }
    Ok(scratch)
}

/// Options of wasm-opt.
///
/// An engine runs a new module unoptimized, and replaces a function by its optimized code when it
/// is called again. The parser's loop must not be inlined into a function that is called once per
/// file, so larger functions than 20 bytes are not inlined into their only caller.
///
/// The lowest kilobyte of memory is the end of the stack, which no valid pointer reaches.
pub(crate) const OPTIMIZE: [&str; 3] =
    ["-O3", "--one-caller-inline-max-function-size=20", "--low-memory-unused"];

fn optimize(repo: &Repo, wasm: &Path) -> Result<()> {
    let optimized: PathBuf = wasm.with_extension("optimized");
    let mut command = cmd::command("node", &[], &repo.root);
    command.arg(repo.path("web/node_modules/binaryen/bin/wasm-opt")).args(OPTIMIZE);
    cmd::output(command.arg(wasm).arg("-o").arg(&optimized))?;
    std::fs::rename(&optimized, wasm).with_context(|| format!("replacing {}", wasm.display()))
}

pub(crate) fn place(from: &Path, to: &Path, name: &Path) -> Result<()> {
    let target = to.join(name);
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::copy(from.join(name), &target)
        .with_context(|| format!("writing {}", target.display()))?;
    Ok(())
}

pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x} {}", hasher.finish(), bytes.len())
}
