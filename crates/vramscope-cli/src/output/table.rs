//! Tables with aligned columns that fit the terminal.

use super::{FAINT, styled};
use crate::printable::printable;
use crate::width::{columns, middle};
use std::borrow::Cow;
use std::io::{self, Write};

/// A column of words is cut to no fewer characters.
const LEAST_WORDS: usize = 10;

/// Columns of words that are wider than this are cut before a column is left out.
const USUAL_WORDS: usize = 28;

/// A table with headings, written with aligned columns.
pub(crate) struct Table {
    /// The headings, then the rows.
    rows: Vec<Vec<String>>,
    /// Whether each column is right-aligned.
    right_aligned: Vec<bool>,
    /// Columns that are left out where the terminal is narrow, the first of them first.
    optional: Vec<usize>,
    /// Columns of words that are never cut, such as ids.
    whole: Vec<usize>,
}

impl Table {
    /// An empty table. Columns of numbers are right-aligned.
    pub(crate) fn new(head: &[&str], right_aligned: &[bool]) -> Self {
        let head = head.iter().map(|h| (*h).to_owned()).collect();
        Self {
            rows: vec![head],
            right_aligned: right_aligned.to_vec(),
            optional: Vec::new(),
            whole: Vec::new(),
        }
    }

    /// Names columns that may be left out where the terminal is narrow, the first of them first.
    pub(crate) fn optional(&mut self, columns: impl IntoIterator<Item = usize>) {
        self.optional = columns.into_iter().collect();
    }

    /// Names columns of words that are never cut.
    pub(crate) fn whole(&mut self, columns: impl IntoIterator<Item = usize>) {
        self.whole = columns.into_iter().collect();
    }

    /// Whether the cells of a column are shown whole or not at all.
    fn is_whole(&self, column: usize) -> bool {
        self.right_aligned[column] || self.whole.contains(&column)
    }

    /// Adds a row. Characters of its cells that act on a terminal are shown.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        for cell in &mut cells {
            if let Cow::Owned(shown) = printable(cell) {
                *cell = shown;
            }
        }
        self.rows.push(cells);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let shown = self.fitting(columns());
        for (i, row) in self.rows.iter().enumerate() {
            let mut line = String::from(" ");
            for &(column, width) in &shown {
                let cell = if self.is_whole(column) {
                    row[column].clone()
                } else {
                    middle(&row[column], width)
                };
                let space = " ".repeat(width.saturating_sub(cell.chars().count()));
                let is_last = shown.last().is_some_and(|&(last, _)| last == column);
                line.push(' ');
                match (self.right_aligned[column], is_last) {
                    (true, _) => line.extend([space.as_str(), &cell, " "]),
                    (false, true) => line.push_str(&cell),
                    (false, false) => line.extend([cell.as_str(), &space, " "]),
                }
            }
            if i == 0 {
                line = styled(FAINT, line.trim_end());
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// The columns that fit a line of `most` characters, with their widths. Words are cut; columns
    /// of numbers are shown whole or not at all.
    fn fitting(&self, most: usize) -> Vec<(usize, usize)> {
        let width =
            |column: usize| self.rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
        let mut shown: Vec<(usize, usize)> =
            (0..self.right_aligned.len()).map(|column| (column, width(column))).collect();
        // A space before and after each, and one before all.
        let sum = |shown: &[(usize, usize)]| shown.iter().map(|of| of.1 + 2).sum::<usize>();
        let least = |shown: &[(usize, usize)]| {
            let cut = |&(column, width): &(usize, usize)| {
                if self.is_whole(column) { width } else { width.min(USUAL_WORDS) }
            };
            shown.iter().map(|of| cut(of) + 2).sum::<usize>()
        };
        for &column in &self.optional {
            if least(&shown) <= most {
                break;
            }
            shown.retain(|of| of.0 != column);
        }
        while sum(&shown) > most {
            let words = shown.iter_mut().filter(|of| !self.is_whole(of.0));
            // Of equally wide ones the first: the last names the place.
            let Some(widest) = words.rev().max_by_key(|of| of.1) else { break };
            if widest.1 <= LEAST_WORDS {
                break;
            }
            widest.1 -= 1;
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn table() -> Table {
        let mut table = Table::new(&["bytes", "blocks", "site"], &[true, true, false]);
        table.row(vec!["12.00 MiB".to_owned(), "3".to_owned(), "a".repeat(60)]);
        table
    }

    #[test]
    fn words_are_cut_and_numbers_are_not() {
        assert_eq!(table().fitting(100), [(0, 9), (1, 6), (2, 60)]);
        assert_eq!(table().fitting(60), [(0, 9), (1, 6), (2, 39)]);
    }

    #[test]
    fn optional_columns_go_where_words_would_be_short() {
        let mut table = table();
        table.optional([1]);
        assert_eq!(table.fitting(60).len(), 3);
        assert_eq!(table.fitting(44), [(0, 9), (2, 31)]);
    }
}
