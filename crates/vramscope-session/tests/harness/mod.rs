//! Test harness: a session that answers as for the page, and the reports of the command line.

use std::path::{Path, PathBuf};
use vramscope_report::LoadedFile;
use vramscope_report::Target;
use vramscope_session::messages::views::{Answer, BlockPage, BlockSort, BlockTable, Query};
use vramscope_session::messages::{DeviceRef, Hit, Loaded, Quantity, Request, Response};
use vramscope_session::{FileSession, Loader};

/// The first device of a file.
pub(crate) const TARGET: DeviceRef = DeviceRef { part: 0, device: 0 };

/// A recording with a clock.
pub(crate) const GPT: &str = "recorded/t26/gpt_small.pickle.gz";

/// A file, opened in a session and for reports.
pub(crate) struct Opened {
    pub(crate) session: FileSession,
    pub(crate) loaded: Loaded,
    pub(crate) file: LoadedFile,
}

pub(crate) fn test_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data")
}

/// The bytes of a file in `test_data`.
pub(crate) fn read(name: &str) -> Vec<u8> {
    std::fs::read(test_data().join(name)).expect("a file of test_data")
}

/// A session with a loaded file, and its `Loaded` response.
pub(crate) fn open_session(name: &str) -> (FileSession, Loaded) {
    open_session_as(name, name)
}

/// [`open_session`] under another path.
pub(crate) fn open_session_as(path: &str, name: &str) -> (FileSession, Loaded) {
    let bytes = read(name);
    let mut session = FileSession::new(path, bytes.len() as u64);
    session.feed(&bytes).expect("a snapshot");
    let Response::Loaded(loaded) = session.finish() else { panic!("{name} is a snapshot") };
    (session, loaded)
}

/// A file for reports.
pub(crate) fn load_file(name: &str) -> LoadedFile {
    load_file_as(name, name)
}

/// [`load_file`] under another path.
pub(crate) fn load_file_as(path: &str, name: &str) -> LoadedFile {
    let bytes = read(name);
    let mut loader = Loader::new(path, bytes.len() as u64);
    loader.feed(&bytes).expect("a snapshot");
    loader.finish().expect("a snapshot")
}

/// The first device of a file, for reports.
pub(crate) fn report_target(file: &LoadedFile) -> Target<'_> {
    Target { path: &file.path, entry: &file.entries[0], index: 0 }
}

/// The answer of a session to a query about a device.
pub(crate) fn ask(session: &mut FileSession, target: DeviceRef, query: Query) -> Answer {
    session.post(Request::View { id: 5, target, query });
    match session.step().expect("an answer").response {
        Response::View { id: 5, answer } => answer,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn open(name: &str) -> Opened {
    let (session, loaded) = open_session(name);
    Opened { session, loaded, file: load_file(name) }
}

impl Opened {
    pub(crate) fn ask_of(&mut self, target: DeviceRef, query: Query) -> Answer {
        ask(&mut self.session, target, query)
    }

    /// The answer about the first device, which reports are about.
    pub(crate) fn ask(&mut self, query: Query) -> Answer {
        let device = self.loaded.parts[0].devices.first().map_or(0, |d| d.device);
        self.ask_of(DeviceRef { part: 0, device }, query)
    }

    pub(crate) fn report(&self) -> Target<'_> {
        report_target(&self.file)
    }

    pub(crate) fn blocks(
        &mut self,
        table: &BlockTable,
        from: u32,
        count: u32,
        near: Option<u32>,
    ) -> BlockPage {
        match self.ask(Query::Blocks { table: table.clone(), from, count, near }) {
            Answer::Blocks(page) => page,
            other => panic!("{other:?}"),
        }
    }

    /// The block indices of all rows of a table, page by page.
    pub(crate) fn order(&mut self, table: &BlockTable) -> Vec<u32> {
        let mut order = Vec::new();
        loop {
            let page = self.blocks(table, order.len() as u32, 1000, None);
            assert!(page.rows.len() <= 500, "a page is bounded");
            assert_eq!(page.from as usize, order.len());
            if page.rows.is_empty() {
                assert_eq!(page.total as usize, order.len());
                return order;
            }
            order.extend(page.rows.iter().map(|row| row.view.block));
        }
    }
}

/// A table of all blocks that match a search, the largest first.
pub(crate) fn table(text: &str) -> BlockTable {
    BlockTable {
        text: text.into(),
        category: String::new(),
        live_at: None,
        sort: BlockSort::Size,
        descending: true,
    }
}

pub(crate) fn number(quantity: &Quantity) -> i64 {
    quantity.value.try_into().expect("an integer")
}

/// The tooltip of a block.
pub(crate) fn hit(opened: &mut Opened, block: u32) -> Option<Hit> {
    match opened.ask(Query::Hit { block }) {
        Answer::Hit(hit) => hit.map(|h| *h),
        other => panic!("{other:?}"),
    }
}

/// Every hand-made file, and some recordings.
pub(crate) fn all_files() -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["scenarios", "edge", "recorded/misc"] {
        for entry in std::fs::read_dir(test_data().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            if Path::new(&name).extension().is_some_and(|e| e != "json") {
                files.push(format!("{folder}/{name}"));
            }
        }
    }
    for name in ["gpt_late", "late_expandable_26", "oom_expandable", "t20/streams", "t26/pools"] {
        files.push(format!("recorded/{name}.pickle.gz"));
    }
    let plain = |f: String| if test_data().join(&f).exists() { f } else { f.replace(".gz", "") };
    files.into_iter().map(plain).collect()
}
