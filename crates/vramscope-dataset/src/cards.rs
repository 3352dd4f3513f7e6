//! The cards of a dataset: what `vramscope export --as index` needs of it.

use crate::bounds::{self, Used};
use crate::part::ENDING;
use crate::plan::{entries, partitions};
use crate::schema::RANKS;
use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch};
use rustc_hash::FxHashSet;
use std::io;
use std::path::{Path, PathBuf};

/// The files of the table `ranks` of a dataset, by run and iteration.
#[derive(Debug)]
pub struct Cards {
    files: Vec<PathBuf>,
}

impl Cards {
    /// The cards of the dataset in a folder. `None` if the folder is no dataset.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn open(dataset: &Path) -> io::Result<Option<Self>> {
        let table = dataset.join(RANKS.name);
        let mut files = Vec::new();
        for partition in partitions(&table)? {
            let folder = table.join(partition);
            let names = entries(&folder)?;
            let parts = names.iter().filter(|name| name.ends_with(ENDING));
            files.extend(parts.map(|name| folder.join(name)));
        }
        Ok((!files.is_empty()).then_some(Self { files }))
    }

    /// The number of snapshot files.
    ///
    /// # Errors
    /// A file of the dataset cannot be read.
    pub fn count(&self) -> io::Result<usize> {
        let mut known = FxHashSet::default();
        self.each("path", |path| {
            known.extend(path.map(str::to_owned));
            Ok(())
        })?;
        Ok(known.len())
    }

    /// Calls `take` with the JSON of each card.
    ///
    /// # Errors
    /// A file of the dataset cannot be read or has rows without a card, or `take` fails.
    pub fn read(&self, mut take: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        self.each("card", |card| match card {
            Some(card) => take(card),
            None => Err(io::Error::other("it has ranks without a card: export it again")),
        })
    }

    fn each(
        &self,
        name: &str,
        mut take: impl FnMut(Option<&str>) -> io::Result<()>,
    ) -> io::Result<()> {
        for path in &self.files {
            column(path, name, &mut take).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        }
        Ok(())
    }
}

/// Calls `take` with the values of a column of texts.
fn column(
    path: &Path,
    name: &str,
    take: &mut impl FnMut(Option<&str>) -> io::Result<()>,
) -> io::Result<()> {
    let mut used = Used::default();
    for batch in bounds::read(path, &[name], bounds::CARDS)? {
        let batch: RecordBatch = batch.map_err(io::Error::other)?;
        let column = batch.column_by_name(name);
        let texts = column
            .ok_or_else(|| io::Error::other(format!("it has no column {name}")))?
            .as_string_opt::<i32>()
            .ok_or_else(|| io::Error::other(format!("its column {name} is no text")))?;
        for at in 0..texts.len() {
            used.add(texts.value(at))?;
            take((!texts.is_null(at)).then(|| texts.value(at)))?;
        }
    }
    Ok(())
}
