//! A log as one text without white space, prefixes and colors. A message is found in it however
//! terminals, loggers and JSON broke it into lines.

use super::pieces;

/// The rows around one that has a word of a message which are kept. A message that a terminal of 80
/// columns wraps has fewer.
const AROUND: usize = 16;

/// Shorter parts of a log are kept as a whole: 1 MiB.
const LONG: usize = 1 << 20;

/// Text that no message has: it stands where rows are left out.
const GAP: char = '\u{1}';

/// The searchable text of a log.
pub(super) struct Flat<'a> {
    /// The text in lower case, without white space.
    pub(super) text: String,
    /// For each byte of `text` its place in `clean`.
    places: Vec<usize>,
    /// The lines without prefixes and colors.
    clean: String,
    rows: Vec<Row<'a>>,
}

/// A row of the log.
struct Row<'a> {
    /// The place in `clean` where the row begins.
    begin: usize,
    /// Its place among the rows of the piece.
    index: usize,
    /// The row as it was.
    raw: &'a pieces::Row<'a>,
}

impl<'a> Flat<'a> {
    /// Reads a part of a log. Rows of a long one that are far from all words of a message are left
    /// out.
    pub(super) fn new(rows: &'a [pieces::Row<'a>]) -> Self {
        let mut flat = Self {
            text: String::new(),
            places: Vec::new(),
            clean: String::new(),
            rows: Vec::new(),
        };
        let is_long = rows.iter().map(|row| row.text.len()).sum::<usize>() > LONG;
        let mut kept = vec![!is_long; rows.len()];
        for at in (0..rows.len()).filter(|at| has_word(&rows[*at].text)) {
            let around = at.saturating_sub(AROUND)..(at + AROUND).min(rows.len());
            kept[around].fill(true);
        }
        for (index, raw) in rows.iter().enumerate().filter(|(index, _)| kept[*index]) {
            if flat.rows.last().is_some_and(|last| last.index + 1 < index) {
                flat.push(GAP);
            }
            flat.rows.push(Row { begin: flat.clean.len(), index, raw });
            flat.push_line(&raw.text);
        }
        flat
    }

    fn push(&mut self, c: char) {
        let place = self.clean.len();
        let before = self.text.len();
        if c.is_whitespace() {
            self.clean.push(' ');
            return;
        }
        self.clean.push(c);
        self.text.push(c.to_ascii_lowercase());
        self.places.resize(self.places.len() + self.text.len() - before, place);
    }

    fn push_line(&mut self, line: &str) {
        for part in unescaped(line).split('\n') {
            without_prefix(part).chars().for_each(|c| self.push(c));
            self.push(' ');
        }
    }

    fn row(&self, at: usize) -> Option<&Row<'a>> {
        let place = *self.places.get(at)?;
        let after = self.rows.partition_point(|row| row.begin <= place);
        self.rows.get(after.checked_sub(1)?)
    }

    /// The number of the line that has the byte `at` of the text, from 1.
    pub(super) fn line(&self, at: usize) -> u32 {
        self.row(at).map_or(1, |row| row.raw.number)
    }

    /// The row that has the byte `at` of the text, among those of the piece.
    pub(super) fn index(&self, at: usize) -> usize {
        self.row(at).map_or(0, |row| row.index)
    }

    /// The rank that the line of the byte `at` names.
    pub(super) fn rank(&self, at: usize) -> Option<u32> {
        rank_of(&self.row(at)?.raw.text)
    }

    /// The words from byte `begin` to byte `end` of the text, with their spaces.
    pub(super) fn words(&self, begin: usize, end: usize) -> String {
        let from = self.places.get(begin).copied().unwrap_or(self.clean.len());
        let to = self.places.get(end).copied().unwrap_or(self.clean.len());
        let words = self.clean.get(from..to).unwrap_or_default();
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Whether a line has a word of any message.
fn has_word(line: &str) -> bool {
    let words: [&[u8]; 3] = [b"memory", b"alloc", b"cache"];
    let line = line.as_bytes();
    (0..line.len()).any(|at| {
        matches!(line[at] | 0x20, b'm' | b'a' | b'c')
            && words.iter().any(|word| {
                line.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
            })
    })
}

/// A line without colors, and with the characters that JSON escapes. Escaped line breaks are `\n`.
fn unescaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => rest = after_color(rest),
            '\\' => {
                // JSON within JSON has several backslashes.
                rest = rest.trim_start_matches('\\');
                let color = ["u001b[", "u001B[", "x1b[", "x1B[", "033["];
                if let Some(after) = color.iter().find_map(|code| rest.strip_prefix(code)) {
                    rest = after_color(&rest[rest.len() - after.len() - 1..]);
                } else if let Some(after) = rest.strip_prefix('n') {
                    out.push('\n');
                    rest = after;
                } else if let Some(after) = rest.strip_prefix(['r', 't']) {
                    out.push(' ');
                    rest = after;
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// What follows the escape character and its code.
fn after_color(text: &str) -> &str {
    let Some(code) = text.strip_prefix('[') else { return text };
    let end = code.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == '?'));
    let Some(end) = end else { return "" };
    let ends = code[end..].chars().next().map_or(0, char::len_utf8);
    &code[end + ends..]
}

/// A line without what loggers write before it, and without the frame of a table.
fn without_prefix(line: &str) -> &str {
    let frame = |c: char| c.is_whitespace() || matches!(c, '│' | '┃' | '|' | '>' | '#');
    let mut rest = line.trim_matches(frame);
    while let Some(after) = after_prefix(rest) {
        rest = after.trim_start_matches(frame);
    }
    rest
}

/// What follows one prefix: `[rank0]:`, `[core.py:390]`, `(Worker pid=7)`, `ERROR`, `10:20:36`.
fn after_prefix(line: &str) -> Option<&str> {
    if let Some(inner) = line.strip_prefix('[') {
        let end = inner.find(']').filter(|end| *end <= 80)?;
        let after = inner[end + 1..].trim_start_matches("<stderr>").trim_start_matches("<stdout>");
        return Some(after.strip_prefix(':').unwrap_or(after));
    }
    if let Some(inner) = line.strip_prefix('(') {
        let end = inner.find(')').filter(|end| *end <= 120)?;
        let lower = inner[..end].to_ascii_lowercase();
        let is_process =
            lower.contains("pid=") || lower.starts_with("rank") || lower.contains("worker");
        return is_process.then(|| &inner[end + 1..]);
    }
    let word = line.split(char::is_whitespace).next().filter(|word| !word.is_empty())?;
    let after = &line[word.len()..];
    let bare = word.trim_end_matches(':');
    let levels = ["INFO", "WARNING", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL", "E", "W"];
    let time =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | ',' | 'T' | 'Z' | '+' | '/');
    let is_time = word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(time)
        && word.contains([':', '-']);
    // A launcher of several machines writes `host: [rank0]: ...`.
    let is_host = word.len() > 1 && word.ends_with(':') && after.trim_start().starts_with('[');
    let rank = bare.strip_prefix("rank").or_else(|| bare.strip_prefix("Rank"));
    let is_rank = word.ends_with(':')
        && rank.is_some_and(|rank| !rank.is_empty() && rank.chars().all(|c| c.is_ascii_digit()));
    (levels.contains(&bare) || is_time || is_host || is_rank).then_some(after)
}

/// The rank that a line names: `[rank3]:`, `rank=3`, `"rank": 3`, `[default3]:` (torchrun --tee),
/// `[1,3]<stderr>:` (mpirun), `3:` (srun --label), `Worker_TP3` (vLLM).
fn rank_of(line: &str) -> Option<u32> {
    let start: String = line.chars().take(400).collect::<String>().to_ascii_lowercase();
    let named = start.match_indices("rank").find_map(|(at, word)| {
        let is_word = !start[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let after = &start[at + word.len()..];
        let gap = after.find(|c: char| !" :=_-\"'\\#".contains(c)).filter(|gap| *gap <= 4)?;
        number(&after[gap..]).filter(|_| is_word).map(|(rank, _)| rank)
    });
    let trimmed = start.trim_start();
    named
        .or_else(|| {
            let tee = &start[start.find("[default")? + "[default".len()..];
            number(tee).filter(|(_, after)| after.starts_with(']')).map(|(rank, _)| rank)
        })
        .or_else(|| {
            let (_, after) = number(trimmed.strip_prefix('[')?)?;
            let (rank, after) = number(after.strip_prefix(',')?)?;
            after.starts_with("]<std").then_some(rank)
        })
        .or_else(|| {
            number(trimmed).filter(|(_, after)| after.starts_with(": ")).map(|(rank, _)| rank)
        })
        .or_else(|| {
            let worker = &start[start.find("worker_tp")? + "worker_tp".len()..];
            number(worker).filter(|(_, after)| !after.starts_with('_')).map(|(rank, _)| rank)
        })
}

/// The number at the start of a text, and what follows it. No job has ten million ranks.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end].parse().ok().filter(|_| end <= 7)?;
    Some((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_read_as_launchers_and_loggers_write_them() {
        for (line, rank) in [
            ("[rank3]: torch.OutOfMemoryError: CUDA", Some(3)),
            ("(VllmWorker rank=1 pid=2978) ERROR 03-19 07:27:53 [a.py:3] x", Some(1)),
            ("{\"level\": \"error\", \"rank\": 12, \"message\": \"CUDA\"}", Some(12)),
            ("[default5]:RuntimeError: CUDA out of memory.", Some(5)),
            ("[1,6]<stderr>:RuntimeError", Some(6)),
            ("7: RuntimeError", Some(7)),
            ("(Worker_TP3 pid=540) ERROR", Some(3)),
            ("(Worker_DP1_TP3_EP3 pid=540) ERROR", None),
            ("worker-0: [rank2]: RuntimeError", Some(2)),
            ("ValueError: the franking of 7 letters", None),
            ("8 ranks: CUDA out of memory", None),
            ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", None),
        ] {
            assert_eq!(rank_of(line), rank, "{line}");
        }
    }

    #[test]
    fn prefixes_colors_and_frames_are_removed() {
        for (line, words) in [
            ("[rank0]:   File \"a.py\"", "File \"a.py\""),
            ("(EngineCore_DP0 pid=39535) ERROR 03-03 19:38:29 [core.py:708] torch.X", "torch.X"),
            ("2024-06-28T06:11:52.685Z (RayActor pid=2) x", "x"),
            ("│ CUDA out of memory. │", "CUDA out of memory."),
            ("(GPU 0; 8.00 GiB total capacity)", "(GPU 0; 8.00 GiB total capacity)"),
            ("12.75 MiB free", "12.75 MiB free"),
            ("rank 3 ran out", "rank 3 ran out"),
        ] {
            assert_eq!(without_prefix(line), words, "{line}");
        }
        assert_eq!(unescaped("\u{1b}[31;1mred\u{1b}[0m"), "red");
        assert_eq!(unescaped(r"\u001b[31mred\u001b[0m \\n a\tb"), "red \n a b");
        assert_eq!(unescaped("end \u{1b}["), "end ");
    }
}
