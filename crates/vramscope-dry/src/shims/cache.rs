//! Shims that are kept for the next run.

use super::error::{Error, io_error};
use super::installed::{Files, Installed};
use super::torch::{Torch, cudnn_headers};
use super::{Naming, Written, write_installed};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folders of shims that are kept, the last used first.
const KEPT: usize = 8;
/// The file of a folder with what [`super::write`] answered. Its time is that of the last use.
const SUMMARY: &str = "written.json";
/// The name of a folder that is not complete starts with this.
const INCOMPLETE: &str = ".new-";
/// An incomplete folder of this age is left from a process that was stopped.
const ABANDONED: Duration = Duration::from_hours(24);

/// As [`super::write`] with [`Naming::Cache`], into a folder below `cache`.
///
/// A later call finds it, unless PyTorch, another package with extensions, or `core` has changed.
/// The cache keeps the 8 folders that were used last. Other processes may use it at the same time.
///
/// # Errors
///
/// As [`super::write`].
pub fn cached(packages: &Path, core: &Path, cache: &Path) -> Result<Written, Error> {
    let absolute = |path| std::path::absolute(path).map_err(io_error("find", path));
    let (packages, core, cache) = (absolute(packages)?, absolute(core)?, absolute(cache)?);
    let folder = cache.join(key(&packages, &core)?);
    if let Some(written) = read(&folder)? {
        return Ok(written);
    }
    fs::create_dir_all(&cache).map_err(io_error("create", &cache))?;
    let new = tempfile::Builder::new()
        .prefix(INCOMPLETE)
        .tempdir_in(&cache)
        .map_err(io_error("create a folder in", &cache))?;
    let mut written =
        write_installed(Installed::read(&packages)?, &core, new.path(), Naming::Cache)?;
    for file in &mut written.files {
        *file = folder.join(file.strip_prefix(new.path()).unwrap_or(file));
    }
    let summary = new.path().join(SUMMARY);
    let text = serde_json::to_vec(&written).map_err(|error| Error::Io {
        action: "write",
        file: summary.clone(),
        source: error.into(),
    })?;
    fs::write(&summary, text).map_err(io_error("write", &summary))?;
    if let Err(error) = fs::rename(new.path(), &folder) {
        // Another process was first, or the folder there is not whole.
        if let Some(written) = read(&folder)? {
            return Ok(written);
        }
        fs::remove_dir_all(&folder).map_err(|_| io_error("write", &folder)(error))?;
        fs::rename(new.path(), &folder).map_err(io_error("write", &folder))?;
    }
    prune(&cache)?;
    Ok(written)
}

/// A name for all that the shims depend on: path, size and time of each file.
fn key(packages: &Path, core: &Path) -> Result<String, Error> {
    Torch::read(packages)?;
    let files = Files::find(packages)?;
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let texts = [packages.join("torch/version.py"), core.to_owned()];
    for file in files.all().chain(&texts) {
        let data = fs::metadata(file).map_err(io_error("read", file))?;
        let time = data.modified().map_err(io_error("read", file))?;
        (file, data.len(), time).hash(&mut hasher);
    }
    for file in cudnn_headers(packages) {
        let data = fs::metadata(file).ok();
        data.map(|data| (data.len(), data.modified().ok())).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Reads a folder of the cache and marks it as used. `None` if it is not there or not whole.
fn read(folder: &Path) -> Result<Option<Written>, Error> {
    let summary = folder.join(SUMMARY);
    let Ok(text) = fs::read(&summary) else { return Ok(None) };
    let Ok(written) = serde_json::from_slice::<Written>(&text) else { return Ok(None) };
    if !written.files.iter().all(|file| file.is_file()) {
        return Ok(None);
    }
    let file =
        fs::File::options().append(true).open(&summary).map_err(io_error("open", &summary))?;
    file.set_modified(SystemTime::now()).map_err(io_error("change the time of", &summary))?;
    Ok(Some(written))
}

/// Removes all but the last used folders. Another process may do the same: a folder that is gone
/// is no error.
fn prune(cache: &Path) -> Result<(), Error> {
    let mut folders: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(cache).map_err(io_error("read", cache))? {
        let path = entry.map_err(io_error("read", cache))?.path();
        let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
        let is_incomplete =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(INCOMPLETE));
        if !is_incomplete {
            if let Ok(time) = time(&path.join(SUMMARY)) {
                folders.push((time, path));
            }
        } else if time(&path).is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED)) {
            remove(&path)?;
        }
    }
    folders.sort_by(|a, b| b.cmp(a));
    folders.iter().skip(KEPT).try_for_each(|(_, path)| remove(path))
}

fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io_error("remove", folder)(error))
        }
        _ => Ok(()),
    }
}
