//! Everything that the continuous integration checks, in order; the first failure stops it.

use crate::{cmd, cost, dev, examples, install, repo::Repo, site, size, threads, tidy};
use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Repo) -> Result<()>,
}

const STEPS: [Step; 16] = [
    Step {
        name: "install",
        what: "wasm targets, library sources, npm packages, browser",
        run: install_all,
    },
    Step { name: "fmt", what: "rustfmt", run: fmt },
    Step { name: "tidy", what: "dependencies, lengths, paths", run: tidy::run },
    Step { name: "clippy", what: "lints, natively", run: clippy },
    Step { name: "clippy-wasm", what: "lints, as the browser gets them", run: clippy_wasm },
    Step { name: "test", what: "unit, golden, property, scenario and document tests", run: native },
    Step { name: "doc", what: "documentation without warnings", run: doc },
    Step { name: "32-bit", what: "core tests with 32-bit pointers", run: narrow },
    Step { name: "build", what: "wasm, TypeScript, the site", run: site::build },
    Step { name: "web", what: "types of all TypeScript, Biome", run: web },
    Step { name: "size", what: "the page's weight", run: size::run },
    Step {
        name: "cost",
        what: "instructions and memory that files take",
        run: |repo| cost::run(repo, false),
    },
    Step { name: "dev", what: "the development server", run: |repo| dev::run(repo, 5173, true) },
    Step {
        name: "examples",
        what: "the npm package, and apps that are built with it",
        run: examples::run,
    },
    Step { name: "e2e", what: "the built site in a browser", run: e2e },
    Step { name: "firefox", what: "the main path in Firefox", run: firefox },
];

/// What is said where there is no Firefox, or no display for it.
const NO_FIREFOX: &str = "FIREFOX IS NOT TESTED: firefox-esr, xvfb and xauth cannot be had here";

/// The crates whose arithmetic must hold where `usize` has 32 bits.
const NARROW: [&str; 4] =
    ["vramscope-pickle", "vramscope-snapshot", "vramscope-analysis", "vramscope-layout"];
const NARROW_TARGET: &str = "wasm32-wasip1";

/// The names, for `--list`.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:12} {}", step.name, step.what);
    }
}

/// Runs the named steps, or all.
pub(crate) fn run(repo: &Repo, names: &[String]) -> Result<()> {
    if let Some(unknown) =
        names.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str()))
    {
        bail!("there is no step {unknown}; `cargo xtask test --list` names them");
    }
    let before = tracked_state(repo);
    let started = Instant::now();
    let mut times = Vec::new();
    let mut ahead = None;
    for step in
        STEPS.iter().filter(|step| names.is_empty() || names.iter().any(|name| name == step.name))
    {
        // The optimized wasm is mostly the work of one core, in a target folder of its own: it is
        // built beside the lints and tests, which leave cores idle now and then.
        if step.name == "clippy" && names.is_empty() {
            ahead = Some(Ahead::start(repo)?);
        }
        println!("\n==> {}: {}", step.name, step.what);
        let start = Instant::now();
        let done = match ahead.take_if(|_| step.name == "build") {
            Some(build) => build.finish(),
            None => (step.run)(repo),
        };
        let done = done.with_context(|| format!("step {}", step.name));
        times.push((step.name, start.elapsed()));
        if done.is_err() {
            print_times(&times, started.elapsed());
        }
        done?;
    }
    if tracked_state(repo) != before {
        bail!(
            "the run changed tracked files: generated ones were not current. `git diff` shows them; commit them"
        );
    }
    print_times(&times, started.elapsed());
    if names.is_empty() || names.iter().any(|name| name == "build") {
        println!(
            "\n{}",
            if threads::is_built(repo) { "the threads build is there" } else { threads::ABSENT }
        );
    }
    if names.is_empty() || names.iter().any(|name| name == "firefox") {
        println!(
            "{}",
            if install::found_firefox().is_some() {
                "Firefox goes the main path"
            } else {
                NO_FIREFOX
            }
        );
    }
    Ok(())
}

/// The step `build` in a process of its own, whose words are kept until its turn has come.
struct Ahead {
    child: Child,
    log: PathBuf,
}

impl Ahead {
    fn start(repo: &Repo) -> Result<Self> {
        let log = repo.target.join("xtask/build.log");
        std::fs::create_dir_all(repo.target.join("xtask"))?;
        let words =
            std::fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("build").current_dir(&repo.root).stdin(Stdio::null());
        let child = command
            .stdout(words.try_clone()?)
            .stderr(words)
            .spawn()
            .context("starting the build")?;
        Ok(Self { child, log })
    }

    fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        print!("{}", std::fs::read_to_string(&self.log)?);
        if status.success() { Ok(()) } else { bail!("the build failed ({status})") }
    }
}

impl Drop for Ahead {
    /// When an earlier step fails, nobody waits for the build.
    fn drop(&mut self) {
        drop(self.child.kill());
    }
}

fn print_times(times: &[(&str, Duration)], all: Duration) {
    println!("\n{:>8}  step", "seconds");
    for (name, time) in times.iter().chain([&("in all", all)]) {
        println!("{:>8.1}  {name}", time.as_secs_f64());
    }
}

/// What git sees of the working tree: whatever the steps do, it must stay. None outside of a
/// checkout.
fn tracked_state(repo: &Repo) -> Option<(String, String)> {
    let git = |args: &[&str]| cmd::probe(&mut cmd::command("git", args, &repo.root));
    Some((git(&["status", "--porcelain"])?, git(&["diff", "--no-ext-diff", "--stat", "HEAD"])?))
}

fn install_all(repo: &Repo) -> Result<()> {
    install::target(repo, "wasm32-unknown-unknown")?;
    install::target(repo, NARROW_TARGET)?;
    println!("{}", if install::rust_src(repo) { "threads can be built" } else { threads::ABSENT });
    install::npm(repo)?;
    println!(
        "{}",
        install::firefox(repo)
            .map_or_else(|| NO_FIREFOX.to_owned(), |path| format!("Firefox: {}", path.display()))
    );
    install::browser(repo).map(|path| println!("browser: {}", path.display()))
}

fn fmt(repo: &Repo) -> Result<()> {
    cmd::run(&mut cmd::cargo(&["fmt", "--all", "--check"], &repo.root))
}

fn clippy(repo: &Repo) -> Result<()> {
    let args = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "--deny",
        "warnings",
    ];
    cmd::run(&mut cmd::cargo(&args, &repo.root))
}

fn clippy_wasm(repo: &Repo) -> Result<()> {
    let packages: [&[&str]; 2] = [
        &["--package", "vramscope-worker", "--package", "vramscope-view"],
        &["--package", "vramscope-worker", "--no-default-features"],
    ];
    for of in packages {
        let mut args = vec!["clippy", "--quiet", "--target", "wasm32-unknown-unknown"];
        args.extend(of);
        args.extend(["--", "--deny", "warnings"]);
        cmd::run(
            cmd::cargo(&args, &repo.root)
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS"),
        )?;
    }
    Ok(())
}

/// Also tells whether the generated TypeScript types are current: that is a test of
/// vramscope-protocol.
fn native(repo: &Repo) -> Result<()> {
    cmd::run(&mut cmd::cargo(&["test", "--quiet", "--workspace", "--all-features"], &repo.root))
}

fn doc(repo: &Repo) -> Result<()> {
    let args = ["doc", "--quiet", "--workspace", "--no-deps", "--all-features"];
    cmd::run(cmd::cargo(&args, &repo.root).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn narrow(repo: &Repo) -> Result<()> {
    let mut args = vec!["test", "--quiet", "--target", NARROW_TARGET, "--lib", "--tests"];
    args.extend(["--features", "vramscope-analysis/slices"]);
    for name in NARROW {
        args.extend(["--package", name]);
    }
    let runner = repo.path("scripts/wasi-run.mjs");
    let mut cargo = cmd::cargo(&args, &repo.root);
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    // What these ask of the system, there is not in the sandbox: the workspace's place, and many
    // cases.
    cargo
        .env("INSTA_WORKSPACE_ROOT", &repo.root)
        .env("INSTA_UPDATE", "no")
        .env("PROPTEST_CASES", "32");
    // Within V8's fast calls Node's WASI may make it collect garbage, which ends the process with
    // SIGSEGV, now and then only after the last test (nodejs/node#46777).
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
    let browser = install::browser(repo)?;
    let program = program(repo)?;
    // So that this step can be run without the one before it.
    if !examples::folder(repo).is_dir() {
        examples::run(repo)?;
    }
    let mut npm = cmd::command("npm", &["run", "--silent", "test", "-w", "e2e"], &repo.web());
    npm.env("CHROME", browser).env("EXAMPLES", examples::folder(repo));
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

/// The program, whose numbers are what the page's are held against.
fn program(repo: &Repo) -> Result<PathBuf> {
    cmd::run(&mut cmd::cargo(
        &["build", "--quiet", "--package", "vramscope-cli", "--features", "page"],
        &repo.root,
    ))?;
    Ok(repo.target.join("debug").join("vramscope"))
}

fn free_port() -> Result<String> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port().to_string())
}
