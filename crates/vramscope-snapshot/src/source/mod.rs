//! What files are made of around a snapshot: nothing, gzip, an HTML page, JSON. Told by their
//! bytes, not by their names.

mod gzip;
mod html;

use crate::event_range::EventFilter;
use crate::json;
use crate::load::{PickleLoader, RowCounts, TraceProgress};
use crate::report::LoadError;
use crate::snapshot::Snapshot;
use vramscope_pickle::MemoryUse;

/// A snapshot, and what it is called inside its file.
#[derive(Debug)]
pub struct NamedSnapshot {
    /// Empty when the file is the snapshot.
    pub name: String,
    /// The snapshot.
    pub snapshot: Snapshot,
}

pub(crate) const TORCH_SAVE: &str =
    "this is a file of torch.save (a checkpoint), not a memory snapshot";
const ZIP: &str = "this is a zip archive (torch.save checkpoints are, too), not a memory snapshot: unpack it first";

/// Reads a file from chunks of bytes, whatever it is.
///
/// ```
/// use vramscope_snapshot::Reader;
///
/// let json = br#"{"segments": [], "device_traces": [[{"action": "alloc", "addr": 4096, "size": 100}]]}"#;
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
    filter: EventFilter,
}

#[derive(Default)]
enum Format {
    /// Too few bytes to tell.
    #[default]
    Empty,
    Sniffing(Vec<u8>),
    Pickle(Box<PickleLoader>),
    Gzip(Box<gzip::Gzip>),
    Html(Box<html::Html>),
    Json(Vec<u8>),
}

/// As many bytes as tell every kind apart, white space before them not counted.
const SNIFF_BYTES: usize = 9;

impl Reader {
    /// Of every trace reads only the events of this range, and those of what is live in it: every
    /// format in the range is that of the whole file. Segment events are all there.
    pub fn for_event_range(events: std::ops::Range<u32>) -> Self {
        Self::with_filter(EventFilter(Some(events)))
    }

    fn with_filter(filter: EventFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// EventFilter no events from now on, and none of those that were read: only [`Reader::trace_progress`] goes
    /// on, to the end of the file, which has no snapshot then. False for what is no plain pickle,
    /// which goes on as before.
    pub fn only_count(&mut self) -> bool {
        let Format::Pickle(pickle) = &mut self.format else { return false };
        pickle.only_count();
        true
    }

    /// How many events there are so far; none in what is no plain pickle.
    pub fn rows(&self) -> RowCounts {
        match &self.format {
            Format::Pickle(pickle) => pickle.rows(),
            _ => RowCounts::default(),
        }
    }

    /// Read the next bytes.
    ///
    /// # Errors
    /// When they show that the file is no snapshot. The reader is of no use afterwards.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        match &mut self.format {
            Format::Pickle(pickle) => pickle.feed(chunk),
            Format::Gzip(gzip) => gzip.feed(chunk),
            Format::Html(html) => html.feed(chunk),
            Format::Json(text) => {
                text.extend_from_slice(chunk);
                Ok(())
            }
            // What tells at once, as it nearly always does, is not copied.
            Format::Empty if trimmed(chunk).len() >= SNIFF_BYTES => self.detect(chunk),
            Format::Empty | Format::Sniffing(_) => {
                let mut head = match std::mem::take(&mut self.format) {
                    Format::Sniffing(head) => head,
                    _ => Vec::new(),
                };
                head.extend_from_slice(chunk);
                if trimmed(&head).len() < SNIFF_BYTES {
                    self.format = Format::Sniffing(head);
                    return Ok(());
                }
                self.detect(&head)
            }
        }
    }

    fn detect(&mut self, head: &[u8]) -> Result<(), LoadError> {
        // The same bytes tell, however they are cut into chunks.
        let start = trimmed(head);
        let start = &start[..start.len().min(SNIFF_BYTES)];
        self.format = match start {
            _ if head.starts_with(b"\x1f\x8b") => {
                Format::Gzip(Box::new(gzip::Gzip::new(self.filter.clone())))
            }
            _ if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") => {
                return Err(LoadError::Refused { what: ZIP });
            }
            // Protocols 2 to 5 begin with PROTO.
            _ if head.first() == Some(&0x80) => {
                Format::Pickle(Box::new(PickleLoader::new(&self.filter)))
            }
            [b'<', b'!' | b'h' | b'H' | b'?' | b's' | b'S' | b'\n', ..] => {
                Format::Html(Box::new(html::Html::new(self.filter.clone())))
            }
            [b'{' | b'[', ..] => Format::Json(Vec::new()),
            // Protocols 0 and 1 have no header. What they begin with reads like nothing that people
            // write.
            _ if is_old_pickle(start) => Format::Pickle(Box::new(PickleLoader::new(&self.filter))),
            _ => return Err(LoadError::Unknown { found: start_of(start) }),
        };
        self.feed(head)
    }

    /// `read` of the file's `total` bytes have come, or are about to: room is made for the others
    /// at the rate of late. It is a matter of memory alone, and need not be said.
    pub fn reserve_ahead(&mut self, read: u64, total: u64) {
        match &mut self.format {
            Format::Pickle(pickle) => pickle.reserve_ahead(read, total),
            Format::Gzip(gzip) => gzip.reserve_ahead(read, total),
            Format::Html(html) => html.reserve_ahead(read, total),
            _ => {}
        }
    }

    /// The traces from this one on, as far as they have come: of those that the last bytes brought
    /// something of, at least. None of what is no plain pickle.
    pub fn trace_progress(&self, from: u32) -> impl Iterator<Item = TraceProgress<'_>> {
        let pickle = match &self.format {
            Format::Pickle(pickle) => Some(pickle),
            _ => None,
        };
        pickle.into_iter().flat_map(move |pickle| pickle.trace_progress(from))
    }

    /// What the parser of a plain pickle holds; `None` for all else.
    pub fn memory_use(&self) -> Option<MemoryUse> {
        match &self.format {
            Format::Pickle(pickle) => Some(pickle.memory_use()),
            _ => None,
        }
    }

    /// Bytes of memory held now.
    pub fn memory(&self) -> usize {
        match &self.format {
            Format::Pickle(pickle) => pickle.memory(),
            Format::Gzip(gzip) => gzip.memory(),
            Format::Html(html) => html.memory(),
            Format::Json(text) => text.capacity(),
            Format::Sniffing(text) => text.capacity(),
            Format::Empty => 0,
        }
    }

    /// The file has ended.
    ///
    /// # Errors
    /// When it is not a whole snapshot.
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
            Format::Json(text) => json::load(&text, &self.filter).map(one),
            Format::Gzip(gzip) => gzip.finish(),
            Format::Html(html) => html.finish(),
        }
    }
}

/// Without a byte-order mark and white space, which stand before text formats only.
fn trimmed(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// Whether the bytes can start a pickle of protocol 0 or 1: a dict, list or tuple from a mark
/// (which CPython memoizes at once), an empty one, a class, or a number.
fn is_old_pickle(head: &[u8]) -> bool {
    match head {
        [b'(', b'd' | b'l', b'p' | b'q' | b'r', ..]
        | [b']' | b'}', b'q' | b'r' | b'(' | b'.', ..] => true,
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

fn start_of(head: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(head))
}
