//! `vramscope sql`: the named queries about a dataset, which DuckDB answers.

mod duckdb;

use crate::Failure;
use crate::arguments::{Format, RowFormat, Sql as Arguments};
use crate::output::{self, STRONG, Table, complain, styled};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;
use vramscope_dataset::schema::markdown;
use vramscope_dataset::{Cards, Query, queries};

/// Columns of words of at most this width are never cut.
const MAX_WHOLE: usize = 16;

/// Columns of longer texts are left out where the terminal is narrow.
const MAX_WORDS: usize = 60;

/// `vramscope.sql/1`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// The schema's name and version.
    schema: &'static str,
    /// The name of the query.
    query: &'static str,
    /// The rows, each with the columns of the query. Values are those of DuckDB.
    rows: Vec<Map<String, Value>>,
}

/// Lists the queries or the tables, prints a query, or asks DuckDB about a dataset.
///
/// # Errors
/// The query does not exist, the dataset cannot be read, there is no DuckDB, it fails, or the
/// output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.tables {
        write!(io::stdout(), "{}", markdown())?;
        return Ok(());
    }
    let all = queries();
    let Some(name) = &arguments.name else {
        let mut out = anstream::stdout().lock();
        let width = all.iter().map(|query| query.name.len()).max().unwrap_or_default();
        for Query { name, question, .. } in &all {
            writeln!(out, "{}  {question}", styled(STRONG, format!("{name:<width$}")))?;
        }
        return Ok(());
    };
    let Some(query) = all.iter().find(|query| query.name == name) else {
        let message = format!("no query {name:?}: `vramscope sql` lists all of them");
        return Err(Failure::Usage(message));
    };
    let Some(dataset) = &arguments.dataset else {
        writeln!(io::stdout(), "{}", query.sql)?;
        return Ok(());
    };
    let place = place(dataset)?;
    let setup = Query::setup(&place, &arguments.set)
        .map_err(|why| Failure::Usage(format!("--set: {why}")))?;
    let rows = duckdb::rows(&setup, query.sql).map_err(|why| {
        complain(format_args!("sql {name}: {why}"));
        Failure::Input
    })?;
    let answer = Answer { schema: "vramscope.sql/1", query: query.name, rows };
    match arguments.format {
        RowFormat::Csv => csv(&answer),
        RowFormat::Json => output::print(&answer, Format::Json, |_, _| Ok(())),
        RowFormat::Text => output::print(&answer, Format::Text, |out, answer| table(out, answer)),
    }
}

/// The whole path of a dataset; an address as it is.
fn place(dataset: &str) -> Result<String, Failure> {
    if dataset.contains("://") {
        return Ok(dataset.to_owned());
    }
    let path = Path::new(dataset);
    if Cards::open(path)?.is_none() {
        return Err(Failure::Usage(format!(
            "{dataset} is no dataset: `vramscope export PATH.. --as parquet -o DATASET` writes one"
        )));
    }
    Ok(std::path::absolute(path)?.to_string_lossy().into_owned())
}

/// The columns of the rows in their order.
fn columns(answer: &Answer) -> Vec<&str> {
    answer.rows.first().map(|row| row.keys().map(String::as_str).collect()).unwrap_or_default()
}

/// A value in words; nothing for null.
fn word(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn table(out: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    let names = columns(answer);
    if names.is_empty() {
        return writeln!(out, "No rows.");
    }
    let is_number = |name: &&str| {
        let mut values = answer.rows.iter().map(|row| &row[*name]);
        values.all(|value| value.is_number() || value.is_null())
    };
    let right: Vec<bool> = names.iter().map(is_number).collect();
    let mut table = Table::new(&names, &right);
    let widest = |name: &&str| {
        let cells = answer.rows.iter().map(|row| word(row.get(*name)).chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<usize> = names.iter().map(widest).collect();
    table.whole((0..names.len()).filter(|&at| widths[at] <= MAX_WHOLE));
    table.optional((0..names.len()).rev().filter(|&at| widths[at] > MAX_WORDS));
    for row in &answer.rows {
        table.row(names.iter().map(|name| word(row.get(*name))).collect());
    }
    table.write(out)
}

fn csv(answer: &Answer) -> Result<(), Failure> {
    let cell = |text: String| {
        if text.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    let names = columns(answer);
    let head: Vec<String> = names.iter().map(|name| cell((*name).to_owned())).collect();
    let mut out = io::BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", head.join(","))?;
    for row in &answer.rows {
        let cells: Vec<String> = names.iter().map(|name| cell(word(row.get(*name)))).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(out.flush()?)
}
