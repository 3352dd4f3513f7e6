//! The views and macros of `DuckDB` beside the tables.

use std::fs;
use std::io;
use std::path::Path;

/// The name of the file in a dataset.
pub const SQL_NAME: &str = "vramscope.sql";

/// A view for each table, and macros. The Python package has the same file.
pub const SQL: &str = include_str!("vramscope.sql");

/// Writes [`SQL`] into a dataset, unless it is there.
///
/// # Errors
/// It cannot be written.
pub fn add_sql(dataset: &Path) -> io::Result<()> {
    let path = dataset.join(SQL_NAME);
    if fs::read(&path).is_ok_and(|there| there == SQL.as_bytes()) {
        return Ok(());
    }
    fs::create_dir_all(dataset)?;
    // Another process may write it at the same time.
    let temporary = dataset.join(format!("{SQL_NAME}.{}.tmp", std::process::id()));
    fs::write(&temporary, SQL)?;
    fs::rename(&temporary, &path)
}
