//! The extension for VS Code: built with the viewer, packed as it would be published, and tested in
//! VS Code's server, whose window is a browser.

use crate::{cmd, files, install, repo::Repo};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// The largest package in bytes.
const MAX_BYTES: u64 = 3 << 20;

/// Modules of the server that are compiled: its log, and the end of its hosts of extensions with
/// it. Terminals and encryption stay out.
const COMPILED: [&str; 2] = ["@vscode/spdlog", "native-watchdog"];

/// Builds the extension into `vscode/dist`.
pub(crate) fn build(repo: &Repo) -> Result<()> {
    cmd::run(&mut cmd::command("node", &["build.mjs"], &repo.path("vscode")))
}

/// Packs the extension into this file.
pub(crate) fn package(repo: &Repo, path: &Path) -> Result<()> {
    let folder = repo.path("vscode");
    packages(&folder, "ci")?;
    let mut npm = cmd::command("npm", &["run", "--silent", "package", "--", "--out"], &folder);
    cmd::output(npm.arg(path))?;
    let bytes = std::fs::metadata(path)?.len();
    ensure!(bytes <= MAX_BYTES, "{} has {bytes} bytes, of {MAX_BYTES}", path.display());
    println!("packed {} ({bytes} bytes)", path.display());
    Ok(())
}

/// Opens snapshots in VS Code.
pub(crate) fn long(repo: &Repo) -> Result<()> {
    println!("\n==> long: the extension in VS Code");
    if !repo.path("web/viewer/wasm").is_dir() {
        bail!("the extension has the viewer: run `cargo xtask build` first");
    }
    install::npm(repo)?;
    let vsix = repo.target.join("vramscope.vsix");
    package(repo, &vsix)?;
    let server = server(repo)?;
    let browser = install::browser(repo)?;
    let mut npm = cmd::command("npm", &["run", "--silent", "vscode", "-w", "e2e"], &repo.web());
    cmd::run(npm.env("CHROME", browser).env("CODE_SERVER", server).env("VSIX", vsix))
}

/// Installs VS Code's server as code-server packs it. Returns its script.
fn server(repo: &Repo) -> Result<PathBuf> {
    let folder = repo.target.join("code-server");
    let code = folder.join("node_modules/code-server/lib/vscode");
    let script = code.join("out/server-main.js");
    let complete = folder.join("complete");
    let from = repo.path("web/e2e/vscode");
    let lock = std::fs::read_to_string(from.join("package-lock.json"))?;
    if std::fs::read_to_string(&complete).is_ok_and(|installed| installed == lock) {
        return Ok(script);
    }
    println!("installing code-server");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(from.join(name), folder.join(name))?;
    }
    packages(&folder, "ci")?;
    // Its lock and its list of packages differ a little, so `npm ci` refuses them.
    packages(&code, "install")?;
    let mut rebuild = cmd::command("npm", &["rebuild", "--silent"], &code);
    rebuild.args(COMPILED);
    if let Some(prefix) = headers(repo) {
        rebuild.arg(format!("--nodedir={}", prefix.display()));
    }
    cmd::output(&mut rebuild)?;
    // Its installer fetches the search program from elsewhere. The registry has it, too.
    let search = code.join("node_modules/@vscode/ripgrep/bin");
    std::fs::create_dir_all(&search)?;
    std::fs::copy(folder.join("node_modules/@vscode/ripgrep-linux-x64/bin/rg"), search.join("rg"))?;
    std::fs::write(&complete, lock).with_context(|| format!("writing {}", complete.display()))?;
    Ok(script)
}

/// Installs the locked packages of a folder, without their scripts, if the lock has changed.
fn packages(folder: &Path, command: &str) -> Result<()> {
    let lock = files::modified(&folder.join("package-lock.json"));
    let installed = files::modified(&folder.join("node_modules/.package-lock.json"));
    if lock.is_some() && installed >= lock {
        return Ok(());
    }
    let args = [command, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    let mut npm = cmd::command("npm", &args, folder);
    cmd::output(npm.args(["--no-save", "--omit=optional"]))
        .with_context(|| format!("cannot install the packages of {}", folder.display()))
        .map(drop)
}

/// Where Node's headers lie, if they are installed. Without them they are downloaded.
fn headers(repo: &Repo) -> Option<PathBuf> {
    let print = ["--print", "process.execPath"];
    let node = cmd::probe(&mut cmd::command("node", &print, &repo.root))?;
    let prefix = Path::new(&node).parent()?.parent()?;
    prefix.join("include/node/node.h").is_file().then(|| prefix.to_owned())
}
