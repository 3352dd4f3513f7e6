//! `trace_plot` and `segment_plot` pages: pickles in base64 inside a script, possibly several.
//!
//! The page (`torch/cuda/_memory_viz.py`, since 2.1) holds a JSON array of `{"name": ..., "base64":
//! ...}`. Names and data are found by their keys, whatever stands between; nothing of the page is
//! run.

use super::{NamedSnapshot, Reader};
use crate::event_range::EventFilter;
use crate::report::LoadError;
use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};

/// Reads all snapshots of a page.
pub(crate) struct Html {
    /// Text not understood yet: less than a key, or less than four characters of base64.
    tail: Vec<u8>,
    state: ScanState,
    /// The last name seen before data.
    name: String,
    found: Vec<(String, Reader)>,
    decoded: Vec<u8>,
    bytes: u64,
    filter: EventFilter,
}

enum ScanState {
    /// Looking for `"name":` or `"base64":`.
    Outside,
    /// Behind the key: before the opening quote, then in the text.
    Value { key: ScriptKey, open: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScriptKey {
    Name,
    Base64,
}

const NAME: &[u8] = b"\"name\":";
const BASE64: &[u8] = b"\"base64\":";
/// Characters that are decoded at a time, so that it does not matter how they arrive; and the most
/// that a name may have.
const BLOCK_CHARS: usize = 64 << 10;

impl Html {
    pub(crate) fn new(filter: EventFilter) -> Self {
        Self {
            tail: Vec::new(),
            state: ScanState::Outside,
            name: String::new(),
            found: Vec::new(),
            decoded: Vec::new(),
            bytes: 0,
            filter,
        }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        self.bytes += chunk.len() as u64;
        let mut text = std::mem::take(&mut self.tail);
        text.extend_from_slice(chunk);
        let mut rest = text.as_slice();
        while let Some(after) = self.step(rest)? {
            rest = after;
        }
        self.tail = rest.to_vec();
        Ok(())
    }

    /// Understand some of the text; `None` when more is needed first.
    fn step<'a>(&mut self, text: &'a [u8]) -> Result<Option<&'a [u8]>, LoadError> {
        match self.state {
            ScanState::Outside => {
                let name =
                    memchr::memmem::find(text, NAME).map(|at| (at, NAME.len(), ScriptKey::Name));
                let data = memchr::memmem::find(text, BASE64)
                    .map(|at| (at, BASE64.len(), ScriptKey::Base64));
                let Some((at, len, key)) = name.into_iter().chain(data).min() else {
                    // A key may be cut by the chunk's end.
                    let keep = text.len().min(BASE64.len() - 1);
                    self.tail = Vec::new();
                    return Ok((keep < text.len()).then(|| &text[text.len() - keep..]));
                };
                self.state = ScanState::Value { key, open: false };
                Ok(Some(&text[at + len..]))
            }
            ScanState::Value { key, open: false } => match text.trim_ascii_start() {
                [] => Ok(None),
                [b'"', rest @ ..] => {
                    self.state = ScanState::Value { key, open: true };
                    if key == ScriptKey::Base64 {
                        let reader = Reader::with_filter(self.filter.clone());
                        self.found.push((std::mem::take(&mut self.name), reader));
                    }
                    Ok(Some(rest))
                }
                rest => {
                    self.state = ScanState::Outside;
                    Ok(Some(rest))
                }
            },
            ScanState::Value { key, open: true } => {
                let end = memchr::memchr(b'"', text);
                let known = end.unwrap_or(text.len());
                match key {
                    ScriptKey::Name if known > BLOCK_CHARS => {
                        // Whatever this is, no snapshot is called so.
                        self.state = ScanState::Outside;
                        Ok(Some(text))
                    }
                    ScriptKey::Base64 if known > BLOCK_CHARS => {
                        let (block, rest) = text.split_at(BLOCK_CHARS);
                        let at = self.bytes - text.len() as u64;
                        // Only the end is padded.
                        if let Some(padding) = memchr::memchr(b'=', block) {
                            return Err(LoadError::Base64 { at: at + padding as u64 });
                        }
                        self.decode(block, at)?;
                        Ok(Some(rest))
                    }
                    _ if end.is_none() => Ok(None),
                    key => {
                        if key == ScriptKey::Name {
                            self.name = String::from_utf8_lossy(&text[..known]).into_owned();
                        } else {
                            self.decode(&text[..known], self.bytes - text.len() as u64)?;
                        }
                        self.state = ScanState::Outside;
                        Ok(Some(&text[known + 1..]))
                    }
                }
            }
        }
    }

    /// Text that begins at `at` in the page.
    fn decode(&mut self, text: &[u8], at: u64) -> Result<(), LoadError> {
        self.decoded.clear();
        STANDARD.decode_vec(text, &mut self.decoded).map_err(|error| {
            let within = match error {
                DecodeError::InvalidByte(within, _) | DecodeError::InvalidLastSymbol(within, _) => {
                    within
                }
                DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len(),
            };
            LoadError::Base64 { at: at + within as u64 }
        })?;
        match self.found.last_mut() {
            Some((_, reader)) => reader.feed(&self.decoded),
            None => Ok(()),
        }
    }

    pub(crate) fn reserve_ahead(&mut self, read: u64, total: u64) {
        if let Some((_, reader)) = self.found.last_mut() {
            reader.reserve_ahead(read, total);
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.found.iter().map(|(_, reader)| reader.memory()).sum::<usize>()
            + self.tail.capacity()
            + self.decoded.capacity()
    }

    pub(crate) fn finish(self) -> Result<Vec<NamedSnapshot>, LoadError> {
        if self.found.is_empty() {
            return Err(LoadError::Html { bytes: self.bytes });
        }
        let mut out = Vec::new();
        for (name, reader) in self.found {
            for inner in reader.finish()? {
                out.push(NamedSnapshot { name: name.clone(), ..inner });
            }
        }
        Ok(out)
    }
}
