//! Datasets of recordings and of generated ranks.

mod common;
mod parts;
mod rows;
mod sql;
