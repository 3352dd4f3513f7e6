//! Reads a log in pieces, so that memory does not grow with it. A message that begins in a piece
//! has all of its lines there, and the lines before it.

use std::borrow::Cow;
use std::io::{self, Read};

/// Bytes that are read at a time.
const BYTES: u64 = 4 << 20;

/// The longest row in bytes. A longer line is several rows: some logs have no line breaks.
const MAX_ROW: usize = 64 << 10;

/// Rows of a piece that are those of the piece before, and rows that are those of the next. A
/// message that a terminal of 80 columns wraps has fewer.
const MARGIN: usize = 64;

/// A part of a log.
pub(super) struct Piece<'a> {
    pub(super) rows: Vec<Row<'a>>,
    /// Messages that begin in an earlier row belong to the piece before.
    pub(super) first: usize,
    /// Messages that begin in this row or later belong to the next piece.
    pub(super) end: usize,
}

/// A line of a log, or a part of a long line.
pub(super) struct Row<'a> {
    /// The line's number in the log, from 1.
    pub(super) number: u32,
    pub(super) text: Cow<'a, str>,
}

/// Calls `take` with each piece of a log, and returns the number of its lines.
pub(super) fn each(mut log: impl Read, mut take: impl FnMut(&Piece<'_>)) -> io::Result<usize> {
    let mut bytes = Vec::new();
    // The number of the first line in `bytes`, and the rows that were taken.
    let (mut number, mut first) = (1, 0);
    loop {
        let is_last = (log.by_ref().take(BYTES).read_to_end(&mut bytes)? as u64) < BYTES;
        let ends = ends(&bytes, is_last);
        let mut begins = vec![(0, number)];
        begins.extend(ends.iter().map(|&end| {
            number += usize::from(bytes[end - 1] == b'\n');
            (end, number)
        }));
        let rows = ends.iter().zip(&begins).map(|(&end, &(begin, number))| Row {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            text: String::from_utf8_lossy(&bytes[begin..end]),
        });
        let rows: Vec<Row<'_>> = rows.collect();
        let end = if is_last { rows.len() } else { rows.len().saturating_sub(MARGIN).max(first) };
        take(&Piece { rows, first, end });
        if is_last {
            let has_line_break = bytes.last().is_none_or(|&last| last == b'\n');
            return Ok(number - usize::from(has_line_break));
        }
        let kept = end.saturating_sub(MARGIN);
        first = end - kept;
        let (begin, line) = begins[kept];
        number = line;
        bytes.drain(..begin);
    }
}

/// The ends of rows. The last row may continue, unless it is the log's last.
fn ends(bytes: &[u8], is_last: bool) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut begin = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let end = begin + line.len();
        while end - begin > MAX_ROW {
            let is_boundary = |at: &usize| bytes[*at] & 0xc0 != 0x80;
            begin = (begin + 1..=begin + MAX_ROW).rev().find(is_boundary).unwrap_or(end);
            ends.push(begin);
        }
        if line.ends_with(b"\n") || is_last {
            ends.push(end);
        }
        begin = end;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_each_row_once() {
        let long = "\u{e9}".repeat(MAX_ROW);
        for log in [String::new(), "a".into(), "a\n".into(), "a\nb".into(), long.clone() + "\nb\n"]
        {
            let mut all = String::new();
            let lines = each(log.as_bytes(), |piece| {
                piece.rows[piece.first..piece.end].iter().for_each(|row| all += &row.text);
            });
            assert_eq!((lines.expect("memory"), all), (log.lines().count(), log));
        }
        let line = format!("step 1 {}\n", "x".repeat(90));
        let log = line.repeat(100_000) + &long + "\n" + &line.repeat(100);
        let (mut rows, mut numbers) = (String::new(), Vec::new());
        let lines = each(log.as_bytes(), |piece| {
            assert!(piece.rows.iter().map(|row| row.text.len()).sum::<usize>() < 20 << 20);
            for row in &piece.rows[piece.first..piece.end] {
                rows += &row.text;
                numbers.push(row.number);
            }
        });
        assert!(rows == log, "rows are missing");
        assert_eq!(lines.expect("memory"), 100_101);
        numbers.dedup();
        assert_eq!(numbers, (1..=100_101).collect::<Vec<u32>>());
    }
}
