//! Names of files that have a rank without the word `rank`.

use std::ops::Range;

/// The most digits of a rank.
const MAX_DIGITS: usize = 5;

/// The ends of names of snapshots.
const EXTENSIONS: [&str; 6] = [".gz", ".pickle", ".pkl", ".pt", ".html", ".json"];

/// A rank in a name.
pub(super) struct Named {
    pub(super) rank: u32,
    /// The place of its digits.
    pub(super) digits: Range<usize>,
    /// The place of the seconds of a time in front of it: ranks of one dump differ in them.
    pub(super) seconds: Range<usize>,
}

impl Named {
    fn new(name: &str, digits: Range<usize>) -> Option<Self> {
        let rank = name[digits.clone()].parse().ok()?;
        Some(Self { rank, digits, seconds: 0..0 })
    }
}

/// The rank in the name of a file: `worker3`, `3.pickle`, `r3.pickle`, or behind a date as in
/// `snapshot_20260101_120000_3.pickle`, which scripts for Ascend NPUs write.
pub(super) fn in_file_name(name: &str) -> Option<Named> {
    let stem = stem(name);
    worker(stem).or_else(|| alone(stem)).or_else(|| after_date(stem))
}

/// The name without the ends that say what it holds.
fn stem(name: &str) -> &str {
    let end = EXTENSIONS.iter().find_map(|end| {
        let at = name.len().checked_sub(end.len())?;
        let is_end = at > 0 && name.is_char_boundary(at) && name[at..].eq_ignore_ascii_case(end);
        is_end.then_some(at)
    });
    end.map_or(name, |at| stem(&name[..at]))
}

fn worker(stem: &str) -> Option<Named> {
    let lower = stem.to_ascii_lowercase();
    lower.rmatch_indices("worker").find_map(|(at, word)| {
        let is_word = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let digits = super::digits_after(&lower, at + word.len()).filter(|_| is_word)?;
        Named::new(stem, digits).filter(|named| named.digits.len() <= MAX_DIGITS)
    })
}

/// A name that is only a number of at most three digits or with leading zeros, or `r` and one. A
/// larger number is rather a step or a process.
fn alone(stem: &str) -> Option<Named> {
    let begin = usize::from(stem.starts_with(['r', 'R']));
    let digits = &stem[begin..];
    let is_rank = is_number(digits)
        && match begin {
            0 => digits.len() <= 3 || (digits.starts_with('0') && digits.len() <= 6),
            _ => digits.len() <= MAX_DIGITS,
        };
    is_rank.then(|| Named::new(stem, begin..stem.len()))?
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A part of a name between `_` and `-`.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    begin: usize,
    /// The character in front of it.
    before: Option<char>,
}

impl Part<'_> {
    /// The number of its digits; 0 if it is no number.
    fn digits(&self) -> usize {
        if is_number(self.text) { self.text.len() } else { 0 }
    }

    fn is_within(&self, digits: usize, range: std::ops::RangeInclusive<u32>) -> bool {
        self.digits() == digits && self.text.parse().is_ok_and(|n| range.contains(&n))
    }

    fn end(&self) -> usize {
        self.begin + self.text.len()
    }
}

fn parts(stem: &str) -> Vec<Part<'_>> {
    let mut begin = 0;
    stem.split(['_', '-'])
        .map(|text| {
            let before = stem[..begin].chars().next_back();
            let part = Part { text, begin, before };
            begin += text.len() + 1;
            part
        })
        .collect()
}

/// The number behind a date, or behind a date and a time. The numbers of a date and a time are no
/// ranks.
fn after_date(stem: &str) -> Option<Named> {
    let parts = parts(stem);
    let (last, front) = parts.split_last()?;
    if !(1..=MAX_DIGITS).contains(&last.digits()) {
        return None;
    }
    let (rest, seconds_digits) = (0..front.len()).find_map(|at| date(&front[at..]))?;
    let has_time = seconds_digits > 0;
    let named = || Named::new(stem, last.begin..last.end());
    let previous = front.last()?;
    // A time may go on: 12-00-00.
    let goes_on = last.digits() == 2
        && previous.digits() == 2
        && (last.before == previous.before || previous.before == Some('_'))
        && last.before != Some('_');
    match rest {
        _ if has_time && !rest.is_empty() => None,
        [] if has_time => {
            let seconds = previous.end() - seconds_digits..previous.end();
            named().map(|named| Named { seconds, ..named })
        }
        // Of a date without a time, four or six digits are the time.
        [] => named().filter(|_| !goes_on && ![4, 6].contains(&last.digits())),
        [clock] if clock.is_within(6, 0..=235_959) => {
            let seconds = clock.end() - 2..clock.end();
            named().map(|named| Named { seconds, ..named })
        }
        [clock] if clock.is_within(4, 0..=2359) => named().filter(|_| !goes_on),
        [hours] if hours.is_within(2, 0..=23) => named().filter(|_| !goes_on),
        [hours, minutes] if hours.is_within(2, 0..=23) && minutes.is_within(2, 0..=59) => {
            named().filter(|_| !goes_on)
        }
        [hours, minutes, seconds]
            if hours.is_within(2, 0..=23)
                && minutes.is_within(2, 0..=59)
                && seconds.is_within(2, 0..=60) =>
        {
            let seconds = seconds.begin..seconds.end();
            named().map(|named| Named { seconds, ..named })
        }
        _ => None,
    }
}

/// What follows the date that parts begin with, and how many of its last digits are less than a
/// minute, or about that; 0 if it has no time. Dates are `20260101`, `2026-01-01`,
/// `20260101120000`, `20260101T120000`, and seconds (10 digits) or milliseconds (13) since 1970.
fn date<'a, 'b>(parts: &'a [Part<'b>]) -> Option<(&'a [Part<'b>], usize)> {
    let is_day = |month: &str, day: &str| {
        month.parse().is_ok_and(|month| (1..=12).contains(&month))
            && day.parse().is_ok_and(|day| (1..=31).contains(&day))
    };
    let is_year = |year: &str| year.starts_with("20") || year.starts_with("19");
    match parts {
        [day, rest @ ..] if day.digits() == 8 => {
            let text = day.text;
            (is_year(text) && is_day(&text[4..6], &text[6..])).then_some((rest, 0))
        }
        [since, rest @ ..] if [10, 13].contains(&since.digits()) => {
            since.text.starts_with('1').then_some((rest, since.digits() - 8))
        }
        [time, rest @ ..] if time.digits() == 14 || is_joined(time.text) => {
            let text = time.text;
            (is_year(text) && is_day(&text[4..6], &text[6..8])).then_some((rest, 2))
        }
        [year, month, day, rest @ ..]
            if year.digits() == 4 && month.digits() == 2 && day.digits() == 2 =>
        {
            (is_year(year.text) && is_day(month.text, day.text)).then_some((rest, 0))
        }
        _ => None,
    }
}

/// Whether a date and a time are joined by a `T`.
fn is_joined(text: &str) -> bool {
    let parts = text.split_once(['T', 't']);
    parts.is_some_and(|(day, clock)| {
        is_number(day) && is_number(clock) && (day.len(), clock.len()) == (8, 6)
    })
}
