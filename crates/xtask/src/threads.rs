//! Builds the worker's module with threads that share its memory, for large files on a page that is
//! isolated from other origins.
//!
//! The build needs a standard library with atomics, which is compiled from its sources. Without the
//! sources the page has no threads.
//!
//! Each thread imports the module's JavaScript again, by its address, which a bundler would change.
//! So the files are placed beside the site as they are. Their folder is named after a hash of their
//! content, so that no cache can mix two builds.

use crate::wasm::{self, Mode, OPTIMIZE, PROFILE, TARGET, UNSTRIPPED};
use crate::{cmd, files, install, machine, repo::Repo};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The note where the module cannot be built.
pub(crate) const ABSENT: &str =
    "THREADS ARE NOT TESTED: cannot install rust-src, so every worker has one thread";

/// The note where the gate does not build it.
pub(crate) const UNTESTED: &str =
    "threads were not built, nothing of them has changed: `cargo xtask test threads` does";

/// Starts of the paths that the module is made of, besides what the other steps test.
pub(crate) const SOURCES: &[&str] = &[
    "Cargo.",
    "rust-toolchain.toml",
    "crates/vramscope-worker/",
    "crates/xtask/src/threads.rs",
    "crates/xtask/src/thread-start.js",
    "crates/xtask/src/wasm.rs",
    "web/e2e/tests/threads.spec.ts",
    "web/site/vite.config.ts",
    "web/viewer/src/client/",
];

const NAME: &str = "vramscope_worker_threads";

/// Imported shared memory of at most 4 GiB, and the exports with which wasm-bindgen gives each
/// thread its stack and thread-local variables.
const RUSTFLAGS: [&str; 8] = [
    "-Ctarget-feature=+atomics,+simd128",
    "-Clink-arg=--shared-memory",
    "-Clink-arg=--import-memory",
    "-Clink-arg=--max-memory=4294967296",
    "-Clink-arg=--export=__wasm_init_tls",
    "-Clink-arg=--export=__tls_size",
    "-Clink-arg=--export=__tls_align",
    "-Clink-arg=--export=__tls_base",
];

/// Makes cargo compile the standard library from its sources.
const BUILD_STD: &str = "-Zbuild-std=std,panic_abort";
/// That is unstable: this variable makes the stable compiler accept it.
const UNSTABLE: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

/// Replacements in the script of wasm-bindgen-rayon, each of a text that occurs once.
const PATCHES: [(&str, &str); 4] = [
    // A thread imports its package by the folder, which only bundlers resolve: use the file name.
    ("import('../../..')", "import('../../../vramscope_worker_threads.js')"),
    // A worker blocks forever on a thread that has crashed, and handles no messages. So the thread
    // reports the crash to the page, on a channel whose name the worker provides
    // (client/threads.ts).
    ("async ({ init, receiver })", "async ({ init, receiver, alarm })"),
    ("receiver: builder.receiver()", "receiver: builder.receiver(), alarm: self.vramscopeAlarm"),
    ("pkg.wbg_rayon_start_worker(receiver);", include_str!("thread-start.js")),
];

/// True when the site that was built last has the module.
pub(crate) fn is_built(repo: &Repo) -> bool {
    files::below(&repo.dist().join("threads")).is_ok_and(|found| !found.is_empty())
}

/// Builds the module into a folder that Vite copies. Without the sources of the standard library
/// the folder is removed, and a note is printed.
pub(crate) fn build(repo: &Repo) -> Result<()> {
    let public = public(repo);
    if !install::rust_src(repo) {
        println!("{ABSENT}");
        return clear(&public);
    }
    let bytes = compile(repo)?;
    let mark = wasm::fingerprint(
        format!("{} {OPTIMIZE:?} {PATCHES:?}", wasm::fingerprint(&bytes)).as_bytes(),
    );
    let out = public.join(mark.split(' ').next().unwrap_or(NAME));
    if out.join(format!("{NAME}.js")).is_file() {
        return Ok(());
    }
    clear(&public)?;
    let scratch = wasm::generate(repo, NAME, Mode::Release, &bytes)?;
    patch(&scratch)?;
    for path in files::below(&scratch)? {
        if files::has_extension(&path, &["js", "wasm"]) && !path.ends_with(format!("{NAME}.js")) {
            wasm::place(&scratch, &out, path.strip_prefix(&scratch)?)?;
        }
    }
    // Last, because its presence marks a complete build.
    wasm::place(&scratch, &out, Path::new(&format!("{NAME}.js")))
}

/// Removes an older build.
pub(crate) fn remove(repo: &Repo) -> Result<()> {
    clear(&public(repo))
}

fn public(repo: &Repo) -> PathBuf {
    repo.path("web/site/public/threads")
}

fn compile(repo: &Repo) -> Result<Vec<u8>> {
    let mut args =
        vec!["build", "--quiet", "--target", TARGET, "--profile", PROFILE, "--config", UNSTRIPPED];
    args.extend(["--package", "vramscope-worker", "--features", "threads"]);
    args.push(BUILD_STD);
    let mut cargo = cmd::cargo(&args, &repo.root);
    machine::set_flags(repo, &mut cargo, &RUSTFLAGS)?;
    cmd::run(cargo.env(UNSTABLE.0, UNSTABLE.1))?;
    let compiled = repo.target.join(TARGET).join(PROFILE).join("vramscope_worker.wasm");
    std::fs::read(&compiled).with_context(|| format!("reading {}", compiled.display()))
}

fn patch(scratch: &Path) -> Result<()> {
    let mut scripts: Vec<PathBuf> = files::below(&scratch.join("snippets"))?;
    scripts.retain(|path| path.ends_with("workerHelpers.js"));
    let [script] = scripts.as_slice() else {
        bail!("wasm-bindgen-rayon has {} scripts, expected one", scripts.len())
    };
    let mut text =
        std::fs::read_to_string(script).with_context(|| format!("reading {}", script.display()))?;
    for (from, to) in PATCHES {
        if text.matches(from).count() != 1 {
            bail!("{}: expected {from} once: wasm-bindgen-rayon has changed", script.display());
        }
        text = text.replace(from, to);
    }
    std::fs::write(script, text).with_context(|| format!("writing {}", script.display()))
}

fn clear(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}
