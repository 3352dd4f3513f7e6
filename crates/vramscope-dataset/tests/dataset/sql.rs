//! The file for `DuckDB` in a dataset. `python/tests/test_fleet.py` runs it.

use crate::common::folder;
use std::fs;
use std::path::Path;
use vramscope_dataset::{SQL, SQL_NAME, add_sql, schema};

#[test]
fn add_sql_replaces_what_is_there_and_leaves_nothing_else() {
    let folder = folder("sql");
    let path = folder.join(SQL_NAME);
    for before in [None, Some("-- of an older version\n"), Some(SQL)] {
        if let Some(text) = before {
            fs::write(&path, text).expect("it can be written");
        }
        add_sql(&folder).expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), SQL);
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
    }
}

#[test]
fn every_table_has_a_view() {
    for table in schema::TABLES {
        let view = format!("CREATE OR REPLACE TEMP VIEW {} AS\n", table.name);
        assert!(SQL.contains(&view) && SQL.contains(&format!("parts('{}')", table.name)), "{view}");
    }
}

#[test]
fn the_python_package_has_the_same_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/vramscope").join(SQL_NAME);
    assert!(fs::read_to_string(&path).expect("it is there") == SQL, "copy {SQL_NAME} there");
}
