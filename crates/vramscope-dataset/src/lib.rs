//! Datasets: the ranks of a job as Parquet tables, for engines such as `DuckDB` and Ray.
//!
//! docs/fleet.md describes the tables. The numbers are those of the report crate.

pub mod schema;
