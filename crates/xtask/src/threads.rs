//! The worker's module once more, with threads that share its memory: for a large file, on a page
//! that is isolated from other origins. It needs a standard library with atomics, which is compiled
//! here from its sources; where those cannot be had there is no such build, and the page does
//! without.
//!
//! Threads start the module's own JavaScript again, by its address: a bundler would take it apart.
//! So it is laid beside the site as plain files, in a folder that is named after what is in it: no
//! cache can mix two builds.

use crate::wasm::{self, OPTIMIZE, PROFILE, TARGET, UNSTRIPPED};
use crate::{cmd, files, install, repo::Repo};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// What is said where there is no such build.
pub(crate) const ABSENT: &str =
    "threads build skipped: rust-src cannot be had here, and every worker has one thread";

const NAME: &str = "vramscope_worker_threads";

/// Shared memory, of at most what 32 bits reach, which the threads are handed; and what
/// wasm-bindgen must find to give each of them a stack and variables of its own.
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

/// Who downloads this waits for a large file, and not for the download.
const FAST: &str = "profile.wasm.opt-level=3";

/// What the script of the threads says, each once, and what it has to say here.
const PATCHES: [(&str, &str); 4] = [
    // A thread imports the package that it is in by its folder, which only bundlers can read; then
    // by its name.
    ("import('../../..')", "import('../../../vramscope_worker_threads.js')"),
    // The worker waits for a thread that has stopped, for ever, and hears nothing meanwhile. So the
    // thread tells the page, on a channel whose name the worker has put where this finds it
    // (client/threads.ts).
    ("async ({ init, receiver })", "async ({ init, receiver, alarm })"),
    ("receiver: builder.receiver()", "receiver: builder.receiver(), alarm: self.vramscopeAlarm"),
    ("pkg.wbg_rayon_start_worker(receiver);", include_str!("thread-start.js")),
];

/// Whether the site that was built last has it.
pub(crate) fn is_built(repo: &Repo) -> bool {
    files::below(&repo.dist().join("threads")).is_ok_and(|found| !found.is_empty())
}

/// Builds it where it can be built, for Vite to copy; elsewhere there is nothing afterwards, and a
/// line says so.
pub(crate) fn build(repo: &Repo) -> Result<()> {
    let public = repo.path("web/site/public/threads");
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
    let scratch = wasm::generate(repo, NAME, &bytes)?;
    patch(&scratch)?;
    for path in files::below(&scratch)? {
        if files::has_extension(&path, &["js", "wasm"]) && !path.ends_with(format!("{NAME}.js")) {
            wasm::place(&scratch, &out, path.strip_prefix(&scratch)?)?;
        }
    }
    // Last: it says that all others are there.
    wasm::place(&scratch, &out, Path::new(&format!("{NAME}.js")))
}

fn compile(repo: &Repo) -> Result<Vec<u8>> {
    // Other flags would build everything else anew, each time.
    let target = repo.target.join("threads");
    let mut args =
        vec!["build", "--quiet", "--target", TARGET, "--profile", PROFILE, "--config", UNSTRIPPED];
    args.extend(["--config", FAST, "--package", "vramscope-worker", "--features", "threads"]);
    args.extend(["-Zbuild-std=std,panic_abort", "--target-dir"]);
    let mut cargo = cmd::cargo(&args, &repo.root);
    cargo.arg(&target);
    // To build the standard library is what the stable compiler does not promise to be able to; it
    // is.
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", RUSTFLAGS.join("\x1f"));
    cmd::run(&mut cargo)?;
    let compiled = target.join(TARGET).join(PROFILE).join("vramscope_worker.wasm");
    std::fs::read(&compiled).with_context(|| format!("reading {}", compiled.display()))
}

fn patch(scratch: &Path) -> Result<()> {
    let mut scripts: Vec<PathBuf> = files::below(&scratch.join("snippets"))?;
    scripts.retain(|path| path.ends_with("workerHelpers.js"));
    let [script] = scripts.as_slice() else {
        bail!("wasm-bindgen-rayon has {} scripts, not one", scripts.len())
    };
    let mut text =
        std::fs::read_to_string(script).with_context(|| format!("reading {}", script.display()))?;
    for (from, to) in PATCHES {
        if text.matches(from).count() != 1 {
            bail!("{} does not say {from} once: wasm-bindgen-rayon has changed", script.display());
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
