//! Reads the lines of an index.

use super::{Entry, FailedFile, SCHEMA};
use crate::card::{Card, Names};
use serde::Deserialize;
use vramscope_units::Bytes;

/// The longest line that is read. A card has a few kilobytes.
const MAX_LINE: usize = 8 << 20;

/// Reads the lines of an index in order.
#[derive(Debug, Default)]
pub struct Reader {
    title: String,
    files: u64,
    next: Option<u64>,
    /// Lines read so far.
    lines: u64,
    is_done: bool,
    skipped_files: u64,
    /// The begin of a line whose end has not come yet.
    partial: Vec<u8>,
    names: Names,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    schema: String,
}

#[derive(Deserialize)]
struct Header {
    title: String,
    files: u64,
    #[serde(default)]
    next: Option<u64>,
}

#[derive(Deserialize)]
struct Done {
    done: bool,
    skipped_files: u64,
}

/// The part of a card's line that the lines after it need, and the place of its file.
#[derive(Deserialize)]
struct Named {
    path: String,
    bytes: Bytes,
    names: Names,
}

impl Reader {
    /// Reads further text of an index, and returns the entries of the lines that end in it. The
    /// text may be cut anywhere. A card that cannot be used is a file without cards, and its error
    /// says why.
    ///
    /// # Errors
    /// The text is no index, or one of another version, or a line without which later lines have no
    /// meaning cannot be read.
    pub fn feed(&mut self, mut text: &[u8]) -> Result<Vec<Entry>, String> {
        let mut entries = Vec::new();
        while let Some(end) = text.iter().position(|&byte| byte == b'\n') {
            self.append(&text[..end])?;
            text = &text[end + 1..];
            let line = std::mem::take(&mut self.partial);
            self.lines += 1;
            if self.lines == 1 {
                self.header(&line)?;
                continue;
            }
            let entry = self.line(&line).map_err(|why| format!("line {}: {why}", self.lines))?;
            entries.extend(entry);
        }
        self.append(text)?;
        Ok(entries)
    }

    fn append(&mut self, text: &[u8]) -> Result<(), String> {
        if self.partial.len() + text.len() > MAX_LINE {
            return Err(format!("line {} is too long", self.lines + 1));
        }
        self.partial.extend_from_slice(text);
        Ok(())
    }

    /// Reads the first line.
    fn header(&mut self, line: &[u8]) -> Result<(), String> {
        let failed = |why: String| format!("line 1: {why}");
        let Schema { schema } = parse(line).map_err(failed)?;
        if schema != SCHEMA {
            return Err(format!("its schema is `{schema}`, expected {SCHEMA}"));
        }
        let Header { title, files, next } = parse(line).map_err(failed)?;
        (self.title, self.files, self.next) = (title, files, next);
        Ok(())
    }

    /// Reads a line after the first. `None` for the last line, which has no card.
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, String> {
        let (path, bytes, why) = match parse::<Card>(line) {
            Ok(mut card) => {
                self.name(std::mem::take(&mut card.names))?;
                match card.check(&self.names) {
                    Ok(()) => return Ok(Some(Ok(Box::new(card)))),
                    Err(why) => (card.path, card.bytes, why),
                }
            }
            Err(why) => {
                if let Ok(Done { done: true, skipped_files }) = parse(line) {
                    (self.is_done, self.skipped_files) = (true, skipped_files);
                    return Ok(None);
                }
                if let Ok(file) = parse(line) {
                    return Ok(Some(Err(file)));
                }
                // Later lines count on its names.
                let Ok(Named { path, bytes, names }) = parse(line) else { return Err(why) };
                self.name(names)?;
                (path, bytes, why)
            }
        };
        let error = format!("its card in line {} is unusable: {why}", self.lines);
        Ok(Some(Err(FailedFile::new(&path, bytes, error))))
    }

    /// Takes the names of a line.
    fn name(&mut self, new: Names) -> Result<(), String> {
        let sites = (self.names.sites.len() + new.sites.len()) as u32;
        if let Some(stack) = new.stacks.iter().find(|stack| stack.site >= sites) {
            let site = stack.site;
            return Err(format!(
                "a stack refers to call site {site}, and {sites} are named so far"
            ));
        }
        self.names.append(new);
        Ok(())
    }

    /// The run's name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The number of files that were opened. A file that is no snapshot has no card.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Where the rest of the index begins, for one that is read in parts.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// The number of files that are no snapshots, once the last line was read.
    pub fn skipped_files(&self) -> u64 {
        self.skipped_files
    }

    /// Whether the last line was read. An index without it is cut off.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The call sites and stacks that the cards of the lines so far refer to.
    pub fn names(&self) -> &Names {
        &self.names
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}
