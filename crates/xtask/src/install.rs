//! What a fresh machine lacks: the wasm targets, the standard library's sources, the npm packages,
//! browsers. Each is looked for first, so a second run costs nothing and needs no network.

use crate::{cmd, files, repo::Repo};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NODE_AT_LEAST: u32 = 20;

/// Debian's names of the browser, and of the software GL that the browser and the picture tests
/// draw with. The headless shell is Chromium without the program around its pages, whose windows
/// and menus nobody sees in a test.
const DEBIAN_BROWSER: &str = "chromium-headless-shell";
const DEBIAN_GL: [&str; 4] = ["libegl1", "libegl-mesa0", "libgl1-mesa-dri", "libgles2"];
/// Debian's names of Firefox, and of the X display without which it gives no page WebGL.
const DEBIAN_FIREFOX: [&str; 3] = ["firefox-esr", "xvfb", "xauth"];
const FIREFOXES: [&str; 2] = ["firefox-esr", "firefox"];
const BROWSERS: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chromium-browser",
];

/// The standard library of a compilation target.
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
        "the Rust target {name} is missing and could not be installed. Run `rustup target add {name}`, or install your \
         distribution's package of it, and try again"
    )
}

/// The sources of the standard library, which the build with threads compiles with atomics. False,
/// and a line that says so, where they cannot be had: everything else works without.
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

/// Node and the packages that web/package-lock.json names.
pub(crate) fn npm(repo: &Repo) -> Result<()> {
    let web = repo.web();
    let version =
        cmd::probe(&mut cmd::command("node", &["--version"], &web)).with_context(|| {
            format!(
                "Node {NODE_AT_LEAST} or later is needed (https://nodejs.org); `node` was not found"
            )
        })?;
    let major =
        version.trim_start_matches('v').split('.').next().and_then(|n| n.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE_AT_LEAST) {
        bail!("Node {NODE_AT_LEAST} or later is needed; this is {version}");
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
        .context("the npm packages could not be installed")
}

/// The browser of the end-to-end tests: `CHROME`, one on the path, or Debian's, which root can
/// install.
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
        "no browser for the end-to-end tests: put Chromium or Chrome on the PATH, name one in CHROME, or run as root on \
         Debian, where it is installed for you"
    )
}

/// Firefox, `FIREFOX` or one on the path, where there is a display for it; none where these cannot
/// be installed: everything else is tested without.
pub(crate) fn firefox(repo: &Repo) -> Option<PathBuf> {
    if let (None, true) = (found_firefox(), is_ours(repo))
        && let Err(error) = apt(repo, &DEBIAN_FIREFOX)
    {
        println!("{error:#}");
    }
    found_firefox()
}

/// The same, without installing anything.
pub(crate) fn found_firefox() -> Option<PathBuf> {
    let named = std::env::var_os("FIREFOX").map(PathBuf::from).filter(|path| path.is_file());
    let firefox = named.or_else(|| FIREFOXES.into_iter().find_map(on_path))?;
    ["xvfb-run", "xauth"].into_iter().all(|name| on_path(name).is_some()).then_some(firefox)
}

/// Whether packages can be installed here without asking: Debian, as root.
fn is_ours(repo: &Repo) -> bool {
    let root = cmd::probe(&mut cmd::command("id", &["-u"], &repo.root)).is_some_and(|id| id == "0");
    root && on_path("apt-get").is_some() && Path::new("/etc/debian_version").exists()
}

fn apt(repo: &Repo, packages: &[&str]) -> Result<()> {
    println!("installing {}", packages.join(", "));
    cmd::run(&mut cmd::command("apt-get", &["update", "-qq"], &repo.root))?;
    let mut args = vec!["install", "-y", "-qq", "--no-install-recommends"];
    args.extend(packages);
    cmd::run(cmd::command("apt-get", &args, &repo.root).env("DEBIAN_FRONTEND", "noninteractive"))
        .context("Debian's packages could not be installed")
}

/// Installs what is missing of the browser and of software GL, where that can be done without
/// asking.
fn debian_packages(repo: &Repo) -> Result<()> {
    if !is_ours(repo) {
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
    apt(repo, &missing).context("CHROME can name another browser")
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
