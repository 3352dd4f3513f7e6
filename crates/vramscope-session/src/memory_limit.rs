//! A file that needs more memory than there is ends in words, before it ends in a crash: a browser
//! tab has 4 GiB of addresses.
//!
//! While a file is read its rows are counted, and what they and the trace that is made of them
//! take. Once that is too much, rows are dropped and only the curve goes on to the end, so that
//! people can choose a part from the whole of it.

use crate::load_preview::Sketch;
use std::ops::Range;
use vramscope_protocol::{Failure, PartChoice, TooLarge};
use vramscope_report::Quantity;
use vramscope_snapshot::{Reader, RowCounts};
use vramscope_units::Bytes;

/// Bytes for each event of what is made of the tables once they are read: blocks and their lives,
/// and what the views need (`vramscope-bench memory` tells: 42 with block sizes, at most), and
/// something to spare.
const MADE: u64 = 54;
/// From this part of a file on, or from so many bytes, what is to come is told from what has come.
const TELLING: (f64, u64) = (0.1, 64 << 20);
/// Parts of fewer events are no use.
const FEWEST: u64 = 50;

/// What there is, and how much of it is needed.
pub(crate) struct Limit {
    memory: u64,
    /// Bytes read, unpacked.
    fed: u64,
    /// The part of the file before its first event.
    before_events: Option<f64>,
    over: Option<Over>,
}

/// The limit has been met.
struct Over {
    /// Bytes that an event takes.
    each: u64,
}

impl Limit {
    pub(crate) fn new(memory: u64) -> Self {
        Self { memory, fed: 0, before_events: None, over: None }
    }

    /// Rows are dropped.
    pub(crate) fn is_met(&self) -> bool {
        self.over.is_some()
    }

    /// Another chunk was read, and this fraction of the file so far; of its events, this part.
    ///
    /// # Errors
    /// When memory runs out, and there are no rows that could be dropped.
    pub(crate) fn watch(
        &mut self,
        path: &str,
        part: Option<&Range<u32>>,
        (fraction, chunk): (f64, usize),
        reader: &mut Reader,
    ) -> Result<(), Failure> {
        self.fed += chunk as u64;
        let (now, rows) = (reader.memory() as u64, reader.rows());
        if self.over.is_none() && self.needs(part, fraction, now, rows) > self.memory {
            self.over = Some(Over {
                each: (rows.bytes as u64).checked_div(rows.held as u64).unwrap_or(0) + MADE,
            });
            if !reader.only_count() {
                return Err(self.failure(path, part, now, false));
            }
        } else if self.over.is_some() && now > self.memory {
            return Err(self.failure(path, part, now, false));
        }
        Ok(())
    }

    /// Bytes that the whole file needs at the least, as far as can be told.
    fn needs(
        &mut self,
        part: Option<&Range<u32>>,
        fraction: f64,
        now: u64,
        rows: RowCounts,
    ) -> u64 {
        let held = rows.held as u64;
        // What only reading needs is given back before the rest is made.
        let so_far = now.max(rows.bytes as u64 + MADE * held);
        if held == 0 {
            return so_far;
        }
        let before = *self.before_events.get_or_insert(fraction);
        let read = (fraction - before) / (1.0 - before);
        // What comes of a part of the events is not told by the bytes.
        if part.is_some()
            || !read.is_finite()
            || read <= 0.0
            || (read < TELLING.0 && self.fed < TELLING.1)
        {
            return so_far;
        }
        let each = rows.bytes as u64 / held + MADE;
        so_far.max((held as f64 / read * each as f64) as u64)
    }

    /// The file has been read to its end, and it is too large.
    pub(crate) fn outcome(
        &self,
        path: &str,
        part: Option<&Range<u32>>,
        reader: &Reader,
        sketch: &Sketch,
    ) -> Option<TooLarge> {
        let over = self.over.as_ref()?;
        let (base, events) = (reader.memory() as u64, reader.rows().longest_trace);
        let choice = self.choice(base, over.each, events, sketch.longest());
        let asked = part.map_or(events, |part| part.end.min(events).saturating_sub(part.start));
        let needs = base.max(over.each * u64::from(asked));
        Some(TooLarge { failure: self.failure(path, part, needs, choice.is_some()), choice })
    }

    fn choice(&self, base: u64, each: u64, events: u32, sketch: &Sketch) -> Option<PartChoice> {
        // A part has events around it as well.
        let fits = self.memory.checked_sub(base)? / each / 2;
        let fits = round_down(fits.min(u64::from(events)));
        if fits < FEWEST {
            return None;
        }
        let curve = sketch.picture_of_all()?;
        let edges = sketch.edges(events);
        let (first, last) = around(sketch.top(), fits as u32, events);
        let text = format!(
            "About {} can be opened at once.",
            Quantity::count(fits, "event", "events").exact
        );
        Some(PartChoice {
            curve,
            edges,
            events: Quantity::count(u64::from(events), "event", "events"),
            first,
            last,
            text,
        })
    }

    fn failure(
        &self,
        path: &str,
        part: Option<&Range<u32>>,
        needs: u64,
        has_choice: bool,
    ) -> Failure {
        // What is known to be too much is never said to be less.
        let needs = Bytes(needs.max(self.memory + self.memory / 100));
        let what = if part.is_some() { "This part of the snapshot" } else { "This snapshot" };
        let choose = if has_choice { "Choose a part of it here, or use" } else { "Use" };
        let name = vramscope_report::text::file_name(path);
        Failure {
            id: None,
            message: format!(
                "{what} needs about {needs} of memory for its tables, and there are {} for them in a browser tab.",
                Bytes(self.memory)
            ),
            hint: Some(format!(
                "{choose} the program, which has no such limit: vramscope summary {name}"
            )),
        }
    }
}

/// Two digits, as befits an estimate.
fn round_down(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n / unit * unit
}

/// The first and last of `fits` events with this one in their middle, as far as there are any on
/// both sides.
fn around(event: u32, fits: u32, events: u32) -> (u32, u32) {
    let first = event.saturating_sub(fits / 2).min(events.saturating_sub(fits));
    (first, (first + fits.max(1) - 1).min(events.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::{around, round_down};

    #[test]
    fn a_part_lies_around_an_event_and_within_the_trace() {
        assert_eq!(around(500, 100, 1000), (450, 549));
        assert_eq!(around(10, 100, 1000), (0, 99));
        assert_eq!(around(990, 100, 1000), (900, 999));
        assert_eq!(around(5, 10, 10), (0, 9));
        assert_eq!(around(0, 0, 0), (0, 0));
    }

    #[test]
    fn an_estimate_has_two_digits() {
        let rounded = [0, 7, 99, 128, 1_299_999].map(round_down);
        assert_eq!(rounded, [0, 7, 99, 120, 1_200_000]);
    }
}
