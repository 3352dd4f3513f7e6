//! The named queries about a dataset: of `vramscope sql`.

use crate::sql::SQL;
use std::fmt::Write as _;

/// The queries, each after a line `-- NAME: QUESTION`.
const QUERIES: &str = include_str!("queries.sql");

/// A named query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The name: `peaks`.
    pub name: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// One statement, with its semicolon, below comments that say how to read the answer.
    pub sql: &'static str,
}

/// All queries in their order.
pub fn queries() -> Vec<Query> {
    let query = |part: &'static str| {
        let (first, sql) = part.split_once('\n')?;
        let (name, question) = first.strip_prefix("-- ")?.split_once(": ")?;
        Some(Query { name, question, sql })
    };
    QUERIES.split("\n\n").filter_map(query).map(Query::trimmed).collect()
}

impl Query {
    fn trimmed(self) -> Self {
        Self { sql: self.sql.trim_end_matches('\n'), ..self }
    }

    /// Statements of `DuckDB` that make the views over a dataset. `dataset` is its path or address,
    /// and `variables` are set before.
    ///
    /// # Errors
    /// The name of a variable is no word of small letters, digits and `_`.
    pub fn setup(dataset: &str, variables: &[(String, String)]) -> Result<String, String> {
        let mut out = format!("SET VARIABLE dataset = {};\n", literal(&without_patterns(dataset)));
        for (name, value) in variables {
            let is_word = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !is_word || name == "dataset" {
                return Err(format!("{name:?} is no variable of a query"));
            }
            let value = match value.parse::<i64>() {
                Ok(number) => number.to_string(),
                Err(_) => literal(value),
            };
            writeln!(out, "SET VARIABLE {name} = {value};").expect("writing to memory");
        }
        out.push_str(SQL);
        Ok(out)
    }
}

/// A text of SQL. Characters that end a line or mean something to a shell of `DuckDB` have their
/// numbers.
fn literal(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            c if c.is_control() => {
                write!(out, "' || chr({}) || '", u32::from(c)).expect("writing to memory");
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A path with `*`, `?` and `[` escaped, which are patterns for `DuckDB`.
fn without_patterns(path: &str) -> String {
    let mut out = String::new();
    for c in path.chars() {
        match c {
            '*' | '?' | '[' => out.extend(['[', c, ']']),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_each_query_is_one_statement() {
        let all = queries();
        assert!(all.len() >= 20);
        for (at, query) in all.iter().enumerate() {
            assert!(query.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{query:?}");
            assert!(query.question.ends_with('?'), "{query:?}");
            assert_eq!(query.sql.matches(';').count(), 1, "{query:?}");
            assert!(query.sql.ends_with(';'), "{query:?}");
            assert!(all[..at].iter().all(|other| other.name != query.name), "{query:?}");
        }
        assert_eq!(QUERIES.matches(";\n").count(), all.len(), "nothing is left out");
    }

    #[test]
    fn no_path_leaves_its_text() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\n.shell x"), "'a' || chr(10) || '.shell x'");
        assert_eq!(without_patterns("a[1]*"), "a[[]1][*]");
        let setup = Query::setup("x'; DROP TABLE y; --", &[]).expect("a text");
        assert!(setup.starts_with("SET VARIABLE dataset = 'x''; DROP TABLE y; --';\n"), "{setup}");
        let set = |name: &str, value: &str| Query::setup("x", &[(name.into(), value.into())]);
        assert!(set("stages", "4").is_ok_and(|sql| sql.contains("\nSET VARIABLE stages = 4;\n")));
        assert!(set("after", "d'4").is_ok_and(|sql| sql.contains("after = 'd''4';\n")));
        for name in ["", "a b", "a;b", "A", "dataset", "1a", "é"] {
            assert!(set(name, "1").is_err(), "{name}");
        }
    }
}
