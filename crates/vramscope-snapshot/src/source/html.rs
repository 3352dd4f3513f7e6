//! `trace_plot` and `segment_plot` pages: one or more pickles as base64 in a script.
//!
//! The page (`torch/cuda/_memory_viz.py`, since PyTorch 2.1) holds a JSON array of `{"name": ...,
//! "base64": ...}`. Names and data are found by their keys alone. No part of the page is executed.

use super::{NamedSnapshot, Reader};
use crate::event_range::EventFilter;
use crate::report::LoadError;
use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};

/// Reads all snapshots of a page.
pub(crate) struct Html {
    /// Unprocessed text: an incomplete key, name or base64 block.
    tail: Vec<u8>,
    state: ScanState,
    /// The last name before data.
    name: String,
    found: Vec<(String, Reader)>,
    decoded: Vec<u8>,
    bytes: u64,
    /// Whether the page's title is [`TIMELINE_TITLE`].
    is_timeline: bool,
    filter: EventFilter,
}

enum ScanState {
    /// Searching for `"name":` or `"base64":`.
    Outside,
    /// After a key: before the opening quote, then inside the string.
    Value { key: ScriptKey, open: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScriptKey {
    Name,
    Base64,
}

const NAME: &[u8] = b"\"name\":";
const BASE64: &[u8] = b"\"base64\":";
/// The title that `export_memory_timeline` writes (`torch/profiler/_memory_profiler.py`).
const TIMELINE_TITLE: &[u8] = b"<title>GPU Memory Timeline HTML</title>";
/// Base64 is decoded in blocks of this many characters, independent of chunks. Also the limit of a
/// name.
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
            is_timeline: false,
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

    /// Processes some of the text. Returns the rest, or `None` when it needs more text.
    fn step<'a>(&mut self, text: &'a [u8]) -> Result<Option<&'a [u8]>, LoadError> {
        match self.state {
            ScanState::Outside => {
                let name =
                    memchr::memmem::find(text, NAME).map(|at| (at, NAME.len(), ScriptKey::Name));
                let data = memchr::memmem::find(text, BASE64)
                    .map(|at| (at, BASE64.len(), ScriptKey::Base64));
                let Some((at, len, key)) = name.into_iter().chain(data).min() else {
                    self.is_timeline |= memchr::memmem::find(text, TIMELINE_TITLE).is_some();
                    // The end of the chunk may cut a key or the title.
                    let keep = text.len().min(TIMELINE_TITLE.len() - 1);
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
                        // Too long for a name.
                        self.state = ScanState::Outside;
                        Ok(Some(text))
                    }
                    ScriptKey::Base64 if known > BLOCK_CHARS => {
                        let (block, rest) = text.split_at(BLOCK_CHARS);
                        let at = self.bytes - text.len() as u64;
                        // Only the last block may be padded.
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

    /// Decodes text that starts at offset `at` of the page.
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

    pub(crate) fn may_be_snapshot(&self) -> bool {
        self.found.iter().any(|(_, reader)| reader.may_be_snapshot())
    }

    pub(crate) fn finish(self) -> Result<Vec<NamedSnapshot>, LoadError> {
        if self.found.is_empty() && self.is_timeline {
            return Err(LoadError::MemoryTimeline);
        }
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
