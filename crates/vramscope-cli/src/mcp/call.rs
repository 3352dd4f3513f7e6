//! A call of a server, in the process that answers it. The server starts the program itself for
//! each call, in the folder and with the variables that it was started with.

use crate::Failure;
use crate::printable::{Shield, printable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The variables with the folders that a call may read are this and a number from 0. They make a
/// process a call: it runs in the first folder, and ends when its standard input ends. The server
/// holds the other end of that pipe, so no call outlives the server, however the server ends.
const FOLDER: &str = "VRAMSCOPE_CALL_FOLDER_";

/// Columns of the text of an answer.
pub(super) const COLUMNS: usize = 100;

/// The folders that this call may read; empty if this process is no call.
static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// A file that could not be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Unread {
    /// The file's path.
    pub(super) path: String,
    /// The reason.
    pub(super) message: String,
}

impl Unread {
    /// The file and the reason, with characters that act on a terminal shown.
    pub(super) fn words(&self) -> String {
        printable(&format!("{}: {}", self.path, self.message)).into_owned()
    }
}

/// The JSON that the process of a call prints.
#[derive(Serialize, Deserialize)]
pub(super) struct Said<T> {
    /// The answer.
    pub(super) answer: T,
    /// The answer in words, as people get it.
    pub(super) text: String,
}

/// The variables of a call that may read these folders.
pub(super) fn variables(folders: &[PathBuf]) -> impl Iterator<Item = (String, OsString)> {
    folders.iter().enumerate().map(|(at, folder)| (format!("{FOLDER}{at}"), folder.into()))
}

/// The answer that a call has printed.
pub(super) fn said(printed: &[u8]) -> Option<Said<Value>> {
    serde_json::from_slice(printed).ok()
}

/// Makes this process a call, if a server started it. It ends when its standard input ends.
///
/// # Errors
/// The folder of the call cannot be entered.
#[expect(clippy::disallowed_methods, reason = "the thread waits as long as the process runs")]
pub(crate) fn begin() -> io::Result<()> {
    let folder = |at: usize| std::env::var_os(format!("{FOLDER}{at}")).map(PathBuf::from);
    let folders = FOLDERS.get_or_init(|| (0..).map_while(folder).collect());
    let Some(first) = folders.first() else { return Ok(()) };
    std::thread::spawn(|| {
        let mut input = io::stdin().lock();
        // The server writes nothing. An error means that the pipe is gone, too.
        while input.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        std::process::exit(2);
    });
    std::env::set_current_dir(first)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", first.display())))
}

fn folders() -> &'static [PathBuf] {
    FOLDERS.get().map_or(&[], Vec::as_slice)
}

/// Whether a server started this process.
pub(crate) fn is_call() -> bool {
    !folders().is_empty()
}

/// Whether this process may read a path: outside of a call it may read all.
///
/// # Errors
/// A link leads out of the folders of the call. A path that does not exist has no such error.
pub(crate) fn allow(path: &Path) -> io::Result<()> {
    let is_inside = |real: PathBuf| folders().iter().any(|folder| real.starts_with(folder));
    if !is_call() || path.canonicalize().map_or(true, is_inside) {
        return Ok(());
    }
    let folders: Vec<String> = folders().iter().map(|of| of.display().to_string()).collect();
    let why = format!("it is a link that leads out of {}", folders.join(" and "));
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Tells the server that a file could not be read: a line of JSON on standard error.
pub(crate) fn note(path: &str, message: &str) {
    eprintln!("{}", serde_json::json!({ "path": path, "message": message }));
}

/// Splits the standard error of a call into the files that could not be read, each once, and other
/// lines.
pub(super) fn complaints(printed: &[u8]) -> (Vec<Unread>, Vec<String>) {
    let (mut unread, mut others): (Vec<Unread>, Vec<String>) = (Vec::new(), Vec::new());
    for line in String::from_utf8_lossy(printed).lines() {
        match serde_json::from_str::<Unread>(line) {
            // A command may read a file twice.
            Ok(file) if unread.iter().any(|known| known.path == file.path) => {}
            Ok(file) => unread.push(file),
            Err(_) => others.push(line.to_owned()),
        }
    }
    (unread, others)
}

/// Prints the answer of a call.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print<T: Serialize>(
    answer: &T,
    text: impl FnOnce(&mut dyn Write, &T) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut painted = Vec::new();
    let mut out = Shield::new(&mut painted, COLUMNS);
    text(&mut out, answer)?;
    out.flush()?;
    let words = anstream::adapter::strip_bytes(&painted).into_vec();
    let said = Said { answer, text: String::from_utf8_lossy(&words).into_owned() };
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut out, &said)?;
    out.flush()?;
    Ok(())
}
