//! `source_code`: the text of source files, which some recorders write into a snapshot.
//!
//! PyTorch does not write it. `torch-snapkit` adds the key to the root: a dict from the paths that
//! frames name to the text of each file when the recording began.

use rustc_hash::FxHashMap;
use std::ops::Range;
use vramscope_pickle::{Heap, Kind, StrId, Strings, Value};

/// The text of the source files of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct SourceCode {
    /// Paths with the index of their text, sorted by path.
    files: Vec<(StrId, u32)>,
    /// Distinct: a small file could name one large text many times.
    texts: Vec<SourceText>,
}

#[derive(Clone, Debug)]
struct SourceText {
    text: StrId,
    /// The byte offset of each line.
    starts: Vec<u32>,
}

impl SourceCode {
    /// Reads a dict of texts. Other items are left out.
    pub(crate) fn read(heap: &Heap, dict: Value) -> Self {
        let mut code = Self::default();
        let mut known: FxHashMap<StrId, u32> = FxHashMap::default();
        for pair in heap.items(dict).chunks_exact(2) {
            let (path, text) = (pair[0].kind(), heap.resolve(pair[1]).kind());
            let (Kind::Str(path), Kind::Str(text)) = (path, text) else { continue };
            let bytes = heap.strings.bytes(text);
            // Offsets have 32 bits.
            if u32::try_from(bytes.len()).is_err() {
                continue;
            }
            let index = *known.entry(text).or_insert_with(|| {
                let breaks = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
                let after = breaks.map(|(at, _)| at as u32 + 1);
                let starts = std::iter::once(0).chain(after);
                let starts = starts.filter(|&start| start < bytes.len() as u32).collect();
                code.texts.push(SourceText { text, starts });
                code.texts.len() as u32 - 1
            });
            code.files.push((path, index));
        }
        // A path that is in the dict twice has its last text, as in Python.
        code.files.reverse();
        code.files.sort_by(|a, b| heap.strings.bytes(a.0).cmp(heap.strings.bytes(b.0)));
        code.files.dedup_by_key(|file| file.0);
        code
    }

    fn file(&self, strings: &Strings, path: &str) -> Option<&SourceText> {
        let path = path.as_bytes();
        let at = self.files.binary_search_by(|file| strings.bytes(file.0).cmp(path)).ok()?;
        self.texts.get(self.files[at].1 as usize)
    }

    /// The bytes of a file; `None` if the snapshot does not have it.
    pub(crate) fn text<'a>(&self, strings: &'a Strings, path: &str) -> Option<&'a [u8]> {
        Some(strings.bytes(self.file(strings, path)?.text))
    }

    /// The bytes of a line, without its end. Lines count from 1.
    pub(crate) fn line<'a>(&self, strings: &'a Strings, path: &str, line: u32) -> Option<&'a [u8]> {
        let file = self.file(strings, path)?;
        let bytes = strings.bytes(file.text);
        let line = line.checked_sub(1)? as usize;
        let start = *file.starts.get(line)? as usize;
        let end = file.starts.get(line + 1).map_or(bytes.len(), |&end| end as usize);
        Some(without_end(bytes, start..end))
    }

    pub(crate) fn memory(&self) -> usize {
        let starts: usize = self.texts.iter().map(|text| size_of_val(&*text.starts)).sum();
        size_of_val(&*self.files) + size_of_val(&*self.texts) + starts
    }
}

fn without_end(bytes: &[u8], line: Range<usize>) -> &[u8] {
    let line = &bytes[line];
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use crate::{Reader, Snapshot};

    fn read(source_code: &str) -> Snapshot {
        let json = format!(
            r#"{{"segments": [], "device_traces": [[{{"action": "alloc", "addr": 4096, "size": 1,
                "frames": [{{"name": "f", "filename": "m.py", "line": 2}}]}}]],
                "source_code": {source_code}}}"#
        );
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON");
        reader.finish().expect("a snapshot").remove(0).snapshot
    }

    #[test]
    fn lines_count_from_one_and_have_no_end() {
        let snapshot = read(r#"{"n.py": 3, "m.py": "def f():\r\n    g()\n\nlast"}"#);
        let line = |line: u32| snapshot.source_line("m.py", line);
        assert_eq!(line(1), Some("def f():"));
        assert_eq!(line(2), Some("    g()"));
        assert_eq!((line(3), line(4)), (Some(""), Some("last")));
        assert_eq!((line(0), line(5)), (None, None));
        assert!(snapshot.settings.is_empty(), "{:?}", snapshot.settings);
        assert!(snapshot.source_text("m.py").is_some_and(|text| text.ends_with("last")));
    }

    #[test]
    fn what_is_no_dict_of_texts_has_no_lines() {
        for odd in ["{}", r#"{"m.py": ["f"]}"#, r#"{"o.py": "f\n"}"#, "\"m.py\""] {
            let snapshot = read(odd);
            assert_eq!(snapshot.source_line("m.py", 1), None, "{odd}");
            assert_eq!(snapshot.source_text("m.py"), None, "{odd}");
        }
        let empty = read(r#"{"m.py": "", "n.py": ""}"#);
        assert_eq!(
            (empty.source_line("m.py", 1), empty.source_text("m.py")),
            (None, Some("".into()))
        );
    }
}
