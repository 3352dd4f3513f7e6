//! Datasets: the ranks of a job as Parquet tables, for engines such as `DuckDB` and Ray.
//!
//! A dataset is a folder with a folder for each table of [`schema`], partitioned by run and
//! iteration. [`Plan`] tells which files it lacks and groups them into parts; a [`PartWriter`]
//! writes one. Files are added one by one, so memory does not depend on their number, and parts are
//! independent, so threads and processes can write several at a time. docs/fleets.md describes the
//! tables. The numbers are those of the report crate.

mod bounds;
mod cards;
mod columns;
mod ids;
mod part;
mod plan;
mod queries;
mod regular;
mod rows;
pub mod schema;
mod sql;
mod table;
mod thrift;

pub use cards::Cards;
pub use columns::Batch;
pub use part::{Part, PartWriter, Source};
pub use plan::Plan;
pub use queries::{Query, queries};
#[cfg(unix)]
pub use regular::WITHOUT_WAITING;
pub use regular::{checked, open_regular};
pub use sql::{SQL, SQL_NAME, add_sql, check_dataset};
