//! `trace_plot` and `segment_plot` pages: one or more pickles as base64 in a script.
//!
//! The page (`torch/cuda/_memory_viz.py`, since PyTorch 2.1) holds a JSON array of `{"name": ...,
//! "base64": ...}`. Names and data are found by their keys alone. No part of the page is executed.

use super::{NamedSnapshot, Options, Reader};
use crate::report::LoadError;
use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use vramscope_pickle::{PickleError, held_limit};

/// Reads all snapshots of a page.
pub(crate) struct Html {
    /// Unprocessed text: an incomplete key, name or base64 block.
    tail: Vec<u8>,
    state: ScanState,
    /// The last name before data.
    name: String,
    /// The snapshot that is being read, and its name.
    open: Option<(String, Reader)>,
    found: Vec<NamedSnapshot>,
    /// Whether a snapshot that has ended was one, as far as it could be read.
    may_be_snapshot: bool,
    /// About the bytes of memory that `found` holds, with what is computed from it.
    held: usize,
    decoded: Vec<u8>,
    bytes: u64,
    /// Whether the page's title is [`TIMELINE_TITLE`].
    is_timeline: bool,
    /// For the snapshots.
    options: Options,
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

/// Bytes of memory of a snapshot without content, with what is computed from it.
const SNAPSHOT_BYTES: usize = 16 << 10;

const NAME: &[u8] = b"\"name\":";
const BASE64: &[u8] = b"\"base64\":";
/// The title that `export_memory_timeline` writes (`torch/profiler/_memory_profiler.py`).
const TIMELINE_TITLE: &[u8] = b"<title>GPU Memory Timeline HTML</title>";
/// Base64 is decoded in blocks of this many characters, independent of chunks. Also the limit of a
/// name.
const BLOCK_CHARS: usize = 64 << 10;

impl Html {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            tail: Vec::new(),
            state: ScanState::Outside,
            name: String::new(),
            open: None,
            found: Vec::new(),
            may_be_snapshot: false,
            held: 0,
            decoded: Vec::new(),
            bytes: 0,
            is_timeline: false,
            options,
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

    /// Ends the snapshot that is being read.
    fn close(&mut self) -> Result<(), LoadError> {
        let Some((name, reader)) = self.open.take() else { return Ok(()) };
        self.may_be_snapshot |= reader.may_be_snapshot();
        for inner in reader.finish()? {
            self.held += inner.snapshot.memory() + SNAPSHOT_BYTES;
            self.found.push(NamedSnapshot { name: name.clone(), ..inner });
        }
        let held = self.memory() as u64;
        if held > held_limit(self.bytes) {
            return Err(PickleError::Memory { asked: held, at: self.bytes }.into());
        }
        if held > self.options.max_memory {
            let max = self.options.max_memory;
            return Err(PickleError::MaxMemory { max, at: self.bytes }.into());
        }
        Ok(())
    }

    /// Processes some of the text. Returns the rest, or `None` when it needs more text.
    fn step<'a>(&mut self, text: &'a [u8]) -> Result<Option<&'a [u8]>, LoadError> {
        match self.state {
            ScanState::Outside => {
                let Some((end, key)) = next_key(text) else {
                    self.is_timeline |= memchr::memmem::find(text, TIMELINE_TITLE).is_some();
                    // The end of the chunk may cut a key or the title.
                    let keep = text.len().min(TIMELINE_TITLE.len() - 1);
                    self.tail = Vec::new();
                    return Ok((keep < text.len()).then(|| &text[text.len() - keep..]));
                };
                self.state = ScanState::Value { key, open: false };
                Ok(Some(&text[end..]))
            }
            ScanState::Value { key, open: false } => match text.trim_ascii_start() {
                // White space is not kept.
                [] => Ok((!text.is_empty()).then_some(&[])),
                [b'"', rest @ ..] => {
                    self.state = ScanState::Value { key, open: true };
                    if key == ScriptKey::Base64 {
                        let reader = Reader::with_options(self.options.clone());
                        self.open = Some((std::mem::take(&mut self.name), reader));
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
                            self.close()?;
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
        match &mut self.open {
            Some((_, reader)) => reader.feed(&self.decoded),
            None => Ok(()),
        }
    }

    pub(crate) fn reserve_ahead(&mut self, read: u64, total: u64) {
        if let Some((_, reader)) = &mut self.open {
            reader.reserve_ahead(read, total);
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.open.as_ref().map_or(0, |(_, reader)| reader.memory())
            + self.held
            + self.tail.capacity()
            + self.decoded.capacity()
    }

    pub(crate) fn may_be_snapshot(&self) -> bool {
        self.may_be_snapshot
            || self.open.as_ref().is_some_and(|(_, reader)| reader.may_be_snapshot())
    }

    pub(crate) fn finish(mut self) -> Result<Vec<NamedSnapshot>, LoadError> {
        self.close()?;
        if self.found.is_empty() && self.is_timeline {
            return Err(LoadError::MemoryTimeline);
        }
        if self.found.is_empty() {
            return Err(LoadError::Html { bytes: self.bytes });
        }
        Ok(self.found)
    }
}

/// The first key in a text, and the index after it. One search for the end that both keys have, so
/// that a text of many keys of one kind takes linear time.
fn next_key(text: &[u8]) -> Option<(usize, ScriptKey)> {
    memchr::memmem::find_iter(text, b"\":").find_map(|at| {
        let end = at + 2;
        let is = |key: &[u8]| text[..end].ends_with(key);
        match (is(NAME), is(BASE64)) {
            (true, _) => Some((end, ScriptKey::Name)),
            (_, true) => Some((end, ScriptKey::Base64)),
            _ => None,
        }
    })
}
