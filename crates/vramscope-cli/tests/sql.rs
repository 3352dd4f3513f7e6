//! `vramscope sql`: names, texts, and what is missing. `python/tests/test_fleet.py` has answers.

use crate::common::{folder, vramscope};
use std::fs;
use std::process::{Command, Output};
use vramscope_dataset::queries;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn queries_are_listed_and_printed() {
    let all = queries();
    let list = vramscope(&["sql"], &[]);
    let list = String::from_utf8(list.stdout).expect("UTF-8");
    assert_eq!(list.lines().count(), all.len());
    for (line, query) in list.lines().zip(&all) {
        assert!(line.starts_with(query.name) && line.ends_with(query.question), "{line}");
        let printed = vramscope(&["sql", query.name], &[]);
        assert_eq!(String::from_utf8(printed.stdout).expect("UTF-8"), format!("{}\n", query.sql));
    }
    let unknown = vramscope(&["sql", "peak"], &[]);
    assert_eq!(unknown.status.code(), Some(64));
    assert!(said(&unknown).contains("`vramscope sql` lists"), "{}", said(&unknown));
}

#[test]
fn the_tables_are_described() {
    let tables = vramscope(&["sql", "--tables"], &[]);
    let tables = String::from_utf8(tables.stdout).expect("UTF-8");
    assert!(tables.starts_with("### `ranks`\n"), "{tables}");
    for row in ["### `annotations`\n", "| `stack_id` | text or null |  | Call stack"] {
        assert!(tables.contains(row), "{row}");
    }
}

#[test]
fn what_is_missing_is_told() {
    let folder = folder("sql/missing");
    let none = vramscope(&["sql", "peaks", folder.to_str().expect("UTF-8")], &[]);
    assert_eq!(none.status.code(), Some(64));
    assert!(said(&none).contains("is no dataset"), "{}", said(&none));
    let dataset = folder.join("it's [a] dataset");
    let to = dataset.to_str().expect("UTF-8");
    let made =
        vramscope(&["export", "--as", "parquet", "-o", to], &["recorded/t26/gpt_small.pickle.gz"]);
    assert!(made.status.success(), "{}", said(&made));
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
        command.args(["sql", "peaks", to]);
        command
    };
    let lacking = program().env("PATH", folder.join("empty")).output().expect("it runs");
    assert_eq!(lacking.status.code(), Some(2));
    for part in ["no program `duckdb` on the PATH", "package duckdb", "pip install duckdb"] {
        assert!(said(&lacking).contains(part), "{part}: {}", said(&lacking));
    }
    let wrong = program().args(["--set", "a b=1"]).output().expect("it runs");
    assert_eq!(wrong.status.code(), Some(64));
}

/// A program in place of DuckDB gets the statements, and its rows are printed.
#[cfg(unix)]
#[test]
fn rows_of_the_program_are_printed_in_each_format() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("sql/rows");
    let dataset = folder.join("it's");
    let to = dataset.to_str().expect("UTF-8");
    let made =
        vramscope(&["export", "--as", "parquet", "-o", to], &["recorded/t26/gpt_small.pickle.gz"]);
    assert!(made.status.success(), "{}", said(&made));
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" = --version ] && echo 'v2.0.1 (x) 0' && exit\n\
         /bin/cat > '{}'\n\
         echo '[{{\"a\":1,\"b\":\"x,y\"}},{{\"a\":20,\"b\":null}}]'\n",
        folder.join("asked").display()
    );
    let stand_in = folder.join("duckdb");
    fs::write(&stand_in, script).expect("a file");
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).expect("a program");
    for (format, expected) in [
        ("text", "   a  b\n   1  x,y\n  20\n"),
        ("csv", "a,b\n1,\"x,y\"\n20,\n"),
        (
            "json",
            "{\n \"schema\": \"vramscope.sql/1\",\n \"query\": \"peaks\",\n \"rows\": [\n  \
             {\"a\":1,\"b\":\"x,y\"},\n  {\"a\":20,\"b\":null}\n ]\n}\n",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
        command.args(["sql", "peaks", to, "--set", "stages=2", "--format", format]);
        let output = command.env("PATH", &folder).output().expect("it runs");
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{format}");
        if format == "json" {
            let schema = vramscope(&["schema", "sql"], &[]).stdout;
            let schema = serde_json::from_slice(&schema).expect("JSON");
            let answer = serde_json::from_slice(&output.stdout).expect("JSON");
            assert!(jsonschema::is_valid(&schema, &answer), "{answer}");
        }
    }
    let asked = fs::read_to_string(folder.join("asked")).expect("it was asked");
    assert!(asked.starts_with("SET VARIABLE dataset = '/") && asked.contains("it''s';\n"));
    assert!(asked.contains("\nSET VARIABLE stages = 2;\n") && asked.ends_with("LIMIT 20;\n"));
}
