//! All integration tests, in one binary: linking one takes less time than linking many.

/// Compares a text with the file of this name in `snapshots`.
macro_rules! assert_golden {
    ($name:expr, $text:expr) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!($name, $text));
    }};
}

mod command_set;
mod commands;
mod common;
mod dataset;
mod diff;
mod explain;
mod findings;
mod folders;
mod gallery;
mod golden;
mod html;
mod index;
mod indexed;
mod lists;
mod ranks;
mod schema;
mod series;
mod show;
mod sidecar;
mod source;
mod sql;
mod summary;
mod texts;
mod titles;
mod trace;
mod what_if;
