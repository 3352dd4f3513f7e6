//! What holds for every file of a release: it names no folder of the machine that built it, its
//! licenses are those of the repository, and on Linux it runs on old systems.

use super::empty;
use crate::{cmd, files, machine, notices, repo::Repo};
use anyhow::{Context, Result, anyhow, ensure};
use std::fs::File;
use std::path::Path;

/// The newest C library that programs and modules for Linux may need: that of manylinux2014.
pub(super) const GLIBC: &str = "2.17";

/// Unpacks an archive, and checks the files in it.
pub(super) fn check(repo: &Repo, archive: &Path) -> Result<()> {
    let folder = repo.target.join("release-unpacked");
    empty(&folder)?;
    unpack(archive, &folder)?;
    let machine = machine::folders(repo)?;
    let unpacked = files::below(&folder)?;
    ensure!(!unpacked.is_empty(), "{} is empty", archive.display());
    for path in unpacked {
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.strip_prefix(&folder)?.to_string_lossy();
        check_file(&name, &bytes, &machine).with_context(|| archive.display().to_string())?;
        let license = notices::FILES.into_iter().find(|license| path.ends_with(license));
        if let Some(license) = license {
            let is_ours = std::fs::read(repo.path(license))? == bytes;
            ensure!(is_ours, "{name} of {} is not {license}", archive.display());
        }
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))
}

/// Unpacks a zip (`.whl`, `.vsix`), or a compressed tar.
fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    if files::has_extension(archive, &["whl", "vsix"]) {
        let mut zip = cmd::command("python3", &["-m", "zipfile", "-e"], folder);
        return cmd::output(zip.arg(archive).arg(folder)).map(drop);
    }
    // From stdin, because GNU tar takes `C:` for the name of another machine.
    let packed = File::open(archive).with_context(|| format!("opening {}", archive.display()))?;
    let mut tar = cmd::command("tar", &["-x", "-z", "-f", "-"], folder);
    cmd::output(tar.stdin(packed)).map(drop)
}

/// Fails for a file that names a folder, or needs a newer C library.
pub(super) fn check_file(name: &str, bytes: &[u8], folders: &[String]) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    if let Some((folder, at)) = folders.iter().find_map(|f| Some((f, text.find(f.as_str())?))) {
        let rest: String = text[at..].chars().take_while(|c| !c.is_control()).take(120).collect();
        return Err(anyhow!("{name} names {folder}, a folder of this machine: {rest}"));
    }
    if bytes.starts_with(b"\x7fELF") {
        let newest = newest_glibc(&text).with_context(|| format!("{name} names no C library"))?;
        let allowed = version(GLIBC).context("a version")?;
        ensure!(newest <= allowed, "{name} needs the C library {newest:?}, expected {GLIBC}");
    }
    Ok(())
}

/// The newest version of the C library that the symbols of a program name.
fn newest_glibc(text: &str) -> Option<(u32, u32)> {
    text.split("GLIBC_").skip(1).filter_map(version).max()
}

/// The two numbers with which a text begins: `2.17`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}
