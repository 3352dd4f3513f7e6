//! What files are made of around a snapshot: nothing, gzip, an HTML page, JSON. Told by their
//! bytes, not by their names.

mod gzip;
mod html;

use crate::json;
use crate::load::{PickleLoader, Reading, Rows};
use crate::parts::Keep;
use crate::report::LoadError;
use crate::snapshot::Snapshot;
use vramscope_pickle::Held;

/// A snapshot, and what it is called inside its file.
#[derive(Debug)]
pub struct Named {
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
    state: State,
    keep: Keep,
}

#[derive(Default)]
enum State {
    /// Too few bytes to tell.
    #[default]
    Empty,
    Telling(Vec<u8>),
    Pickle(Box<PickleLoader>),
    Gzip(Box<gzip::Gzip>),
    Html(Box<html::Html>),
    Json(Vec<u8>),
}

/// As many bytes as tell every kind apart, white space before them not counted.
const TELLING: usize = 9;

impl Reader {
    /// Of every trace reads only the events of this range, and those of what is live in it: every
    /// state in the range is that of the whole file. Segment events are all there.
    pub fn of_events(events: std::ops::Range<u32>) -> Self {
        Self::keeping(Keep(Some(events)))
    }

    fn keeping(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Keep no events from now on, and none of those that were read: only [`Reader::readings`] goes
    /// on, to the end of the file, which has no snapshot then. False for what is no plain pickle,
    /// which goes on as before.
    pub fn only_count(&mut self) -> bool {
        let State::Pickle(pickle) = &mut self.state else { return false };
        pickle.only_count();
        true
    }

    /// How many events there are so far; none in what is no plain pickle.
    pub fn rows(&self) -> Rows {
        match &self.state {
            State::Pickle(pickle) => pickle.rows(),
            _ => Rows::default(),
        }
    }

    /// Read the next bytes.
    ///
    /// # Errors
    /// When they show that the file is no snapshot. The reader is of no use afterwards.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        match &mut self.state {
            State::Pickle(pickle) => pickle.feed(chunk),
            State::Gzip(gzip) => gzip.feed(chunk),
            State::Html(html) => html.feed(chunk),
            State::Json(text) => {
                text.extend_from_slice(chunk);
                Ok(())
            }
            // What tells at once, as it nearly always does, is not copied.
            State::Empty if trimmed(chunk).len() >= TELLING => self.tell(chunk),
            State::Empty | State::Telling(_) => {
                let mut head = match std::mem::take(&mut self.state) {
                    State::Telling(head) => head,
                    _ => Vec::new(),
                };
                head.extend_from_slice(chunk);
                if trimmed(&head).len() < TELLING {
                    self.state = State::Telling(head);
                    return Ok(());
                }
                self.tell(&head)
            }
        }
    }

    fn tell(&mut self, head: &[u8]) -> Result<(), LoadError> {
        // The same bytes tell, however they are cut into chunks.
        let start = trimmed(head);
        let start = &start[..start.len().min(TELLING)];
        self.state = match start {
            _ if head.starts_with(b"\x1f\x8b") => {
                State::Gzip(Box::new(gzip::Gzip::new(self.keep.clone())))
            }
            _ if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") => {
                return Err(LoadError::Refused { what: ZIP });
            }
            // Protocols 2 to 5 begin with PROTO.
            _ if head.first() == Some(&0x80) => {
                State::Pickle(Box::new(PickleLoader::new(&self.keep)))
            }
            [b'<', b'!' | b'h' | b'H' | b'?' | b's' | b'S' | b'\n', ..] => {
                State::Html(Box::new(html::Html::new(self.keep.clone())))
            }
            [b'{' | b'[', ..] => State::Json(Vec::new()),
            // Protocols 0 and 1 have no header. What they begin with reads like nothing that people
            // write.
            _ if is_old_pickle(start) => State::Pickle(Box::new(PickleLoader::new(&self.keep))),
            _ => return Err(LoadError::Unknown { found: start_of(start) }),
        };
        self.feed(head)
    }

    /// `read` of the file's `total` bytes have come, or are about to: room is made for the others
    /// at the rate of late. It is a matter of memory alone, and need not be said.
    pub fn foresee(&mut self, read: u64, total: u64) {
        match &mut self.state {
            State::Pickle(pickle) => pickle.foresee(read, total),
            State::Gzip(gzip) => gzip.foresee(read, total),
            State::Html(html) => html.foresee(read, total),
            _ => {}
        }
    }

    /// The traces from this one on, as far as they have come: of those that the last bytes brought
    /// something of, at least. None of what is no plain pickle.
    pub fn readings(&self, from: u32) -> impl Iterator<Item = Reading<'_>> {
        let pickle = match &self.state {
            State::Pickle(pickle) => Some(pickle),
            _ => None,
        };
        pickle.into_iter().flat_map(move |pickle| pickle.readings(from))
    }

    /// What the parser of a plain pickle holds; `None` for all else.
    pub fn held(&self) -> Option<Held> {
        match &self.state {
            State::Pickle(pickle) => Some(pickle.held()),
            _ => None,
        }
    }

    /// Bytes of memory held now.
    pub fn memory(&self) -> usize {
        match &self.state {
            State::Pickle(pickle) => pickle.memory(),
            State::Gzip(gzip) => gzip.memory(),
            State::Html(html) => html.memory(),
            State::Json(text) => text.capacity(),
            State::Telling(text) => text.capacity(),
            State::Empty => 0,
        }
    }

    /// The file has ended.
    ///
    /// # Errors
    /// When it is not a whole snapshot.
    pub fn finish(mut self) -> Result<Vec<Named>, LoadError> {
        if let State::Telling(head) = &mut self.state {
            let head = std::mem::take(head);
            self.tell(&head)?;
        }
        let one = |snapshot| vec![Named { name: String::new(), snapshot }];
        match self.state {
            State::Empty => PickleLoader::default().finish().map(one),
            State::Telling(head) => Err(LoadError::Unknown { found: start_of(&head) }),
            State::Pickle(pickle) => pickle.finish().map(one),
            State::Json(text) => json::load(&text, &self.keep).map(one),
            State::Gzip(gzip) => gzip.finish(),
            State::Html(html) => html.finish(),
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
