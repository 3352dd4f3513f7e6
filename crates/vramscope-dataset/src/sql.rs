//! The views and macros of `DuckDB` beside the tables. The file also marks the folder as a dataset.

use crate::part::named;
use crate::regular::open_regular;
use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

/// The name of the file in a dataset.
pub const SQL_NAME: &str = "vramscope.sql";

/// A view for each table, and macros. The Python package has the same file.
pub const SQL: &str = include_str!("vramscope.sql");

/// The first line of [`SQL`], by which a dataset is known, whatever its version.
const MARK: &str = "-- Views and macros over a dataset that `vramscope export --as parquet` wrote";

/// Begins the names of unfinished copies of [`SQL`].
const UNFINISHED: &str = ".vramscope.sql.";

/// Checks that a folder is a dataset, is empty or does not exist.
///
/// # Errors
/// `InvalidInput` if it holds anything else, unless `force`: then it may hold other files, which
/// stay. `InvalidInput` if [`SQL_NAME`] is not a file of this program.
pub fn check_dataset(dataset: &Path, force: bool) -> io::Result<()> {
    let refused = |why: String| Err(io::Error::new(ErrorKind::InvalidInput, why));
    let shown = dataset.display();
    let mark = dataset.join(SQL_NAME);
    match fs::symlink_metadata(&mark) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(named(error, &mark)),
        Ok(of) if of.is_file() => {
            let text = read(&mark).map_err(|error| named(error, &mark))?;
            if text.starts_with(MARK.as_bytes()) {
                return Ok(());
            }
            return refused(format!(
                "{shown} has a {SQL_NAME} of another program: choose another folder"
            ));
        }
        Ok(_) => {
            return refused(format!("{SQL_NAME} in {shown} is no file: choose another folder"));
        }
    }
    let entries = match fs::read_dir(dataset) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(named(error, dataset)),
        Ok(entries) => entries,
    };
    for entry in entries {
        let name = entry?.file_name();
        if !force && !name.to_string_lossy().starts_with(UNFINISHED) {
            return refused(format!(
                "{shown} is not empty and no dataset of vramscope: choose another folder, or add \
                 --force to write the dataset beside what is there"
            ));
        }
    }
    Ok(())
}

/// The file's first bytes: as many as [`SQL`] has, and one more.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(SQL.len() as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes [`SQL`] into a dataset, unless it is there.
///
/// # Errors
/// It cannot be written.
pub fn add_sql(dataset: &Path) -> io::Result<()> {
    let path = dataset.join(SQL_NAME);
    if read(&path).is_ok_and(|there| there == SQL.as_bytes()) {
        return Ok(());
    }
    fs::create_dir_all(dataset)?;
    // Another process may write it at the same time.
    let mut unfinished = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        unfinished.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut unfinished = unfinished.prefix(UNFINISHED).tempfile_in(dataset)?;
    unfinished.write_all(SQL.as_bytes())?;
    unfinished.persist(&path)?;
    Ok(())
}
