//! File formats around a snapshot: plain pickle, gzip, zip, HTML page, JSON. They are detected by
//! content, never by file name.

mod gzip;
mod html;
mod zip;

use crate::event_range::EventFilter;
use crate::json;
use crate::load::{PickleLoader, RowCounts, TraceProgress};
use crate::report::LoadError;
use crate::snapshot::Snapshot;
use vramscope_pickle::{MemoryUse, PickleError};

/// A snapshot, and its name inside the file.
#[derive(Debug)]
pub struct NamedSnapshot {
    /// Empty unless the file is an HTML page with named snapshots.
    pub name: String,
    /// The snapshot.
    pub snapshot: Snapshot,
}

pub(crate) const TORCH_SAVE: &str =
    "this is a torch.save checkpoint, not a memory snapshot: take a snapshot and open that";

/// Reads a file of any supported format from chunks of bytes.
///
/// ```
/// use vramscope_snapshot::Reader;
///
/// let json = br#"{"segments": [], "device_traces": [[
///     {"action": "alloc", "addr": 4096, "size": 100}]]}"#;
/// let mut reader = Reader::default();
/// for chunk in json.chunks(7) {
///     reader.feed(chunk)?;
/// }
/// let named = reader.finish()?;
/// assert_eq!(named[0].snapshot.devices[0].events, 0..1);
/// # Ok::<(), vramscope_snapshot::LoadError>(())
/// ```
#[derive(Default)]
pub struct Reader {
    format: Format,
    options: Options,
}

/// How to read a file, and the files inside it.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) filter: EventFilter,
    /// Limit of the bytes held, whatever the file's length.
    pub(crate) max_memory: u64,
    /// Containers around this file.
    depth: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { filter: EventFilter::default(), max_memory: u64::MAX, depth: 0 }
    }
}

impl Options {
    /// The options for what this file contains.
    ///
    /// # Errors
    /// The file is inside too many others.
    fn inside(&self) -> Result<Self, LoadError> {
        if self.depth >= MAX_NESTED_FILES {
            return Err(LoadError::Nested { limit: MAX_NESTED_FILES });
        }
        Ok(Self { depth: self.depth + 1, ..self.clone() })
    }
}

/// Limit of containers around a snapshot: a gzipped page of gzipped pickles has two. Some gzip
/// files contain themselves.
const MAX_NESTED_FILES: u32 = 4;

#[derive(Default)]
enum Format {
    /// Too few bytes to detect the format.
    #[default]
    Empty,
    Sniffing(Vec<u8>),
    Pickle(Box<PickleLoader>),
    Gzip(Box<gzip::Gzip>),
    Zip(Box<zip::Zip>),
    Html(Box<html::Html>),
    Json(Vec<u8>),
}

/// Bytes that distinguish all formats, without leading white space.
const SNIFF_BYTES: usize = 9;
/// Limit of white space before a text format.
const MAX_LEADING_SPACE: usize = 1 << 16;

impl Reader {
    /// Creates a reader that keeps, of every trace, the events of this range and those of blocks
    /// live in it. Every state in the range equals that of the whole file. All segment events are
    /// kept.
    pub fn for_event_range(events: std::ops::Range<u32>) -> Self {
        Self::with_options(Options { filter: EventFilter(Some(events)), ..Options::default() })
    }

    /// Limits the bytes of memory that reading holds, whatever the file's length. In any case they
    /// are limited to 64 bytes per byte of the unpacked file, above 64 MiB. Must be called before
    /// the first byte.
    #[must_use]
    pub fn with_max_memory(mut self, bytes: u64) -> Self {
        self.options.max_memory = bytes;
        self
    }

    fn with_options(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Drops the rows of all events, read and to come, to save memory. Only
    /// [`Reader::trace_progress`] goes on, and the file yields no snapshot. Returns false, with no
    /// effect, unless the file is a pickle, plain or in a zip archive.
    pub fn only_count(&mut self) -> bool {
        match &mut self.format {
            Format::Pickle(pickle) => pickle.only_count(),
            Format::Zip(zip) => return zip.only_count(),
            _ => return false,
        }
        true
    }

    /// The numbers of events read so far. Zero unless the file is a pickle, plain or in a zip
    /// archive.
    pub fn rows(&self) -> RowCounts {
        self.pickle().map_or_else(RowCounts::default, PickleLoader::rows)
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// When the file is not a snapshot. The reader must not be used after an error.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        match &mut self.format {
            Format::Pickle(pickle) => pickle.feed(chunk),
            Format::Gzip(gzip) => gzip.feed(chunk),
            Format::Zip(zip) => zip.feed(chunk),
            Format::Html(html) => html.feed(chunk),
            Format::Json(text) => {
                let bytes = (text.len() + chunk.len()) as u64;
                if bytes > self.options.max_memory {
                    let max = self.options.max_memory;
                    return Err(PickleError::MaxMemory { max, at: bytes }.into());
                }
                text.extend_from_slice(chunk);
                Ok(())
            }
            // The first chunk nearly always decides, and is not copied then.
            Format::Empty if trimmed(chunk).len() >= SNIFF_BYTES => self.detect(chunk),
            Format::Empty | Format::Sniffing(_) => {
                let mut head = match std::mem::take(&mut self.format) {
                    Format::Sniffing(head) => head,
                    _ => Vec::new(),
                };
                head.extend_from_slice(chunk);
                if trimmed(&head).len() < SNIFF_BYTES {
                    check_leading_space(&head)?;
                    self.format = Format::Sniffing(head);
                    return Ok(());
                }
                self.detect(&head)
            }
        }
    }

    fn detect(&mut self, head: &[u8]) -> Result<(), LoadError> {
        check_leading_space(head)?;
        // A fixed number of bytes, so that chunking does not change the result.
        let start = trimmed(head);
        let start = &start[..start.len().min(SNIFF_BYTES)];
        self.format = match start {
            _ if head.starts_with(b"\x1f\x8b") => {
                Format::Gzip(Box::new(gzip::Gzip::new(self.options.inside()?)))
            }
            _ if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") => {
                Format::Zip(Box::new(zip::Zip::new(self.options.clone())))
            }
            // Protocols 2 to 5 start with PROTO.
            _ if head.first() == Some(&0x80) => {
                Format::Pickle(Box::new(PickleLoader::new(&self.options)))
            }
            [b'<', b'!' | b'h' | b'H' | b'?' | b's' | b'S' | b'\n', ..] => {
                Format::Html(Box::new(html::Html::new(self.options.inside()?)))
            }
            [b'{' | b'[', ..] => Format::Json(Vec::new()),
            // Protocols 0 and 1 have no header, but do not start like text.
            _ if is_old_pickle(start) => Format::Pickle(Box::new(PickleLoader::new(&self.options))),
            _ => return Err(LoadError::Unknown { found: start_of(start) }),
        };
        self.feed(head)
    }

    /// Reserves capacity for the rest of the file, of whose `total` bytes `read` have arrived or
    /// are about to. A hint only: it affects allocation, never the result.
    pub fn reserve_ahead(&mut self, read: u64, total: u64) {
        match &mut self.format {
            Format::Pickle(pickle) => pickle.reserve_ahead(read, total),
            Format::Gzip(gzip) => gzip.reserve_ahead(read, total),
            Format::Zip(zip) => zip.reserve_ahead(read, total),
            Format::Html(html) => html.reserve_ahead(read, total),
            _ => {}
        }
    }

    /// The traces from index `from` on, up to the last complete batch. Includes at least the traces
    /// that the last bytes extended. Empty unless the file is a pickle, plain or in a zip
    /// archive.
    pub fn trace_progress(&self, from: u32) -> impl Iterator<Item = TraceProgress<'_>> {
        self.pickle().into_iter().flat_map(move |pickle| pickle.trace_progress(from))
    }

    /// The parser's memory. `None` unless the file is a pickle, plain or in a zip archive.
    pub fn memory_use(&self) -> Option<MemoryUse> {
        self.pickle().map(PickleLoader::memory_use)
    }

    /// The loader of a pickle that is plain, or in a zip archive.
    fn pickle(&self) -> Option<&PickleLoader> {
        match &self.format {
            Format::Pickle(pickle) => Some(pickle),
            Format::Zip(zip) => zip.reader()?.pickle(),
            _ => None,
        }
    }

    /// Whether the bytes so far show a part of a snapshot, or are too few to tell.
    ///
    /// It tells a damaged snapshot from another damaged file, also after an error.
    pub fn may_be_snapshot(&self) -> bool {
        match &self.format {
            Format::Empty | Format::Sniffing(_) => true,
            Format::Pickle(pickle) => pickle.may_be_snapshot(),
            Format::Gzip(gzip) => gzip.may_be_snapshot(),
            Format::Zip(zip) => zip.may_be_snapshot(),
            Format::Html(html) => html.may_be_snapshot(),
            Format::Json(text) => has_snapshot_key(text),
        }
    }

    /// Bytes of memory held now.
    pub fn memory(&self) -> usize {
        match &self.format {
            Format::Pickle(pickle) => pickle.memory(),
            Format::Gzip(gzip) => gzip.memory(),
            Format::Zip(zip) => zip.memory(),
            Format::Html(html) => html.memory(),
            Format::Json(text) | Format::Sniffing(text) => text.capacity(),
            Format::Empty => 0,
        }
    }

    /// Ends the file and returns its snapshots.
    ///
    /// # Errors
    /// When the file is incomplete, or not a snapshot.
    pub fn finish(mut self) -> Result<Vec<NamedSnapshot>, LoadError> {
        if let Format::Sniffing(head) = &mut self.format {
            let head = std::mem::take(head);
            self.detect(&head)?;
        }
        let one = |snapshot| vec![NamedSnapshot { name: String::new(), snapshot }];
        match self.format {
            Format::Empty => PickleLoader::default().finish().map(one),
            Format::Sniffing(head) => Err(LoadError::Unknown { found: start_of(&head) }),
            Format::Pickle(pickle) => pickle.finish().map(one),
            Format::Json(text) => json::load(&text, &self.options).map(one),
            Format::Gzip(gzip) => gzip.finish(),
            Format::Zip(zip) => zip.finish(),
            Format::Html(html) => html.finish(),
        }
    }
}

/// Whether a text or pickle has a key of a snapshot's root or segments.
pub(crate) fn has_snapshot_key(bytes: &[u8]) -> bool {
    [&b"device_traces"[..], b"segments", b"total_size"]
        .iter()
        .any(|key| memchr::memmem::find(bytes, key).is_some())
}

/// Strips a byte-order mark and white space, which only text formats start with.
fn trimmed(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

fn check_leading_space(head: &[u8]) -> Result<(), LoadError> {
    if head.len() - trimmed(head).len() > MAX_LEADING_SPACE {
        return Err(LoadError::Unknown { found: "white space".to_owned() });
    }
    Ok(())
}

/// Whether a pickle of protocol 0 or 1 may start so. It starts with a mark (followed by DICT, LIST,
/// PUT or values), an empty container, a class, or a number.
fn is_old_pickle(head: &[u8]) -> bool {
    match head {
        [b'(', b'd' | b'l', b'p' | b'q' | b'r', ..]
        | [b']' | b'}', b'p' | b'q' | b'r' | b'(' | b'.' | 0x94, ..] => true,
        [b'(', rest @ ..] => {
            matches!(rest.first(), Some(b'd' | b'l' | b'(' | b'K' | b'M' | b'J' | b'N'))
                && !is_text(rest)
        }
        [b'c', ..] => head.contains(&b'\n') && !head.contains(&b' '),
        [b'I' | b'L' | b'K' | b'M' | b'J', ..] => !is_text(head),
        _ => false,
    }
}

fn is_text(head: &[u8]) -> bool {
    head.iter().all(|b| b.is_ascii_graphic() || *b == b' ')
}

/// The first bytes: text in quotes, others as hexadecimal numbers.
fn start_of(head: &[u8]) -> String {
    let head = &head[..head.len().min(SNIFF_BYTES)];
    if head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        return format!("{:?}", String::from_utf8_lossy(head));
    }
    let bytes: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("the bytes {}", bytes.join(" "))
}
