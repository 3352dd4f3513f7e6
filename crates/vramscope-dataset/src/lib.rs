//! Datasets: the ranks of a job as Parquet tables, for engines such as `DuckDB` and Ray.
//!
//! A dataset is a folder with a folder for each table of [`schema`], partitioned by run and
//! iteration. [`Plan`] tells which files it lacks and groups them into parts; a [`PartWriter`]
//! writes one. Files are added one by one, so memory does not depend on their number, and parts are
//! independent, so threads and processes can write several at a time. docs/fleet.md describes the
//! tables. The numbers are those of the report crate.

mod cards;
mod ids;
mod part;
mod plan;
mod rows;
pub mod schema;
mod sql;
mod table;

pub use cards::Cards;
pub use part::{Part, PartWriter, Source};
pub use plan::Plan;
pub use sql::{SQL, SQL_NAME, add_sql, check_dataset};
