//! Packs the npm package as it would be published, and builds the apps of web/examples and the
//! extension for VS Code with it.
//!
//! Each app is copied to a folder that sees no other `node_modules`, installs the package from its
//! tarball, and is built by its bundler, like an app of a user.

use crate::{cmd, extension, files, install, notices, repo::Repo};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::path::{Path, PathBuf};

/// Packs, installs and builds. The pages of each app are then in `target/examples/NAME/dist`.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let package = pack(repo)?;
    println!("packed {}", package.display());
    let names = names(repo)?;
    std::thread::scope(|scope| {
        let mut builds = Vec::new();
        for name in &names {
            let package = &package;
            builds.push(scope.spawn(move || {
                build(repo, name, package).with_context(|| format!("the example {name}"))
            }));
        }
        builds
            .into_iter()
            .try_for_each(|build| build.join().map_err(|_| anyhow!("a build panicked"))?)
    })?;
    types(repo)?;
    extension::build(repo)?;
    println!("built the examples {}", names.join(", "));
    Ok(())
}

/// The folder of the built apps.
pub(crate) fn folder(repo: &Repo) -> PathBuf {
    repo.target.join("examples")
}

/// Packs the tarball with the wasm that was built last.
pub(crate) fn pack(repo: &Repo) -> Result<PathBuf> {
    let viewer = repo.path("web/viewer");
    if !viewer.join("wasm").is_dir() {
        bail!("{} is missing: run `cargo xtask build` first", viewer.join("wasm").display());
    }
    install::npm(repo)?;
    // An earlier build may have left files that no longer belong to the package.
    let dist = viewer.join("dist");
    if dist.is_dir() {
        std::fs::remove_dir_all(&dist).with_context(|| format!("removing {}", dist.display()))?;
    }
    for script in ["build", "standalone", "inline"] {
        cmd::output(&mut cmd::command("npm", &["run", "--silent", script], &viewer))?;
    }
    notices::copy(repo, &viewer)?;
    let out = repo.target.join("package");
    std::fs::create_dir_all(&out)?;
    let mut npm = cmd::command("npm", &["pack", "--silent", "--pack-destination"], &viewer);
    let name = cmd::output(npm.arg(&out))?;
    let package = out.join(name.trim());
    let packed = cmd::output(cmd::command("tar", &["-t", "-z", "-f"], &out).arg(&package))?;
    for name in notices::FILES {
        let is_there = packed.lines().any(|line| line == format!("package/{name}"));
        ensure!(is_there, "{} does not have {name}", package.display());
    }
    let mut lint =
        cmd::command("node", &["node_modules/publint/src/cli.js", "--strict"], &repo.web());
    cmd::output(lint.arg(&package))?;
    Ok(package)
}

/// The folders of web/examples that hold an app.
fn names(repo: &Repo) -> Result<Vec<String>> {
    let folder = repo.path("web/examples");
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.path().join("package.json").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn build(repo: &Repo, name: &str, package: &Path) -> Result<()> {
    let app = folder(repo).join(name);
    refresh(&repo.path("web/examples").join(name), &app)?;
    let modules = app.join("node_modules");
    let manifests = [app.join("package.json"), repo.path("web/viewer/package.json")]
        .map(std::fs::read_to_string);
    let wanted = manifests.into_iter().collect::<Result<String, _>>()?;
    let stamp = modules.join("installed.stamp");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        // Only the viewer has changed, which needs no network.
        let viewer = modules.join("vramscope-viewer");
        std::fs::remove_dir_all(&viewer)?;
        std::fs::create_dir_all(&viewer)?;
        let mut tar = cmd::command("tar", &["-x", "-z", "--strip-components=1", "-f"], &viewer);
        cmd::output(tar.arg(package))?;
    } else {
        if modules.is_dir() {
            std::fs::remove_dir_all(&modules)?;
        }
        let args = [
            "install",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--prefer-offline",
            "--loglevel=error",
        ];
        cmd::output(cmd::command("npm", &args, &app).arg(package))?;
        std::fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    }
    cmd::output(&mut cmd::command("npm", &["run", "--silent", "build"], &app)).map(drop)
}

/// Copies the files of an app again. Installed packages stay.
fn refresh(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(to)? {
        let path = entry?.path();
        if path.is_file() {
            std::fs::remove_file(path)?;
        } else if path.ends_with("dist") {
            std::fs::remove_dir_all(path)?;
        }
    }
    for path in files::below(from)? {
        let below = path.strip_prefix(from)?;
        // The results of a build by hand are not part of the app.
        if !below.starts_with("node_modules") && !below.starts_with("dist") {
            std::fs::copy(&path, to.join(below))
                .with_context(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(())
}

/// Checks the package's types as the compiler of a user does, without `skipLibCheck`.
fn types(repo: &Repo) -> Result<()> {
    let compiler = repo.path("web/node_modules/typescript/bin/tsc");
    let mut node = cmd::command("node", &[], &folder(repo).join("vite"));
    cmd::output(node.arg(compiler).args(["-p", "."])).context("the types of the package").map(drop)
}
