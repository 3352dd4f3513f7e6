//! `vramscope export --as html`: a report in one file, which opens from disk.
//!
//! The template is a part of the built page, so that the page writes the same reports. Each report
//! has a text that needs no script, and unless it is reduced, the viewer and the snapshots. What is
//! embedded is written from what was read: a file may have more than anyone has looked at.

use super::to_output;
use crate::Failure;
use crate::arguments::{Export as Arguments, ReportData};
use crate::beside;
use crate::out_file::Kind;
use crate::output::complain;
use crate::paths::{self, Links};
use crate::read;
use crate::serve::page;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::borrow::Cow;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};
use vramscope_dataset::open_regular;
use vramscope_report::diagnose::{Diagnosed, Diagnosis, Listing, MAX_FINDINGS, at_peak, diagnose};
use vramscope_report::diagnostic::{self, Answer};
use vramscope_report::html::{escape, figures, whole_device};
use vramscope_report::redact::Redaction;
use vramscope_report::sidecar::Sidecar;
use vramscope_report::{
    FileReader, LoadedFile, SnapshotEntry, Target, copy, device_name, rank_of, sidecar,
};
use vramscope_units::{Bytes, grouped};

/// Compressed snapshots of up to this many bytes are embedded by default.
const MAX_FULL: u64 = 20_000_000;

/// The most files whose curves a report shows. The viewer has all.
const MAX_SECTIONS: usize = 3;

/// What is embedded of one file.
struct Part {
    /// The names and contents of its files. Snapshots are compressed.
    files: Vec<(String, Vec<u8>)>,
    /// The path and the figures of each device.
    sections: Vec<(String, String)>,
    devices: Vec<Diagnosed>,
    /// Why the snapshot cannot be copied.
    loss: Option<String>,
}

/// Writes the report.
///
/// # Errors
/// The program was built without the page, an input cannot be read, a snapshot cannot be copied, or
/// the output cannot be written.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    write(arguments, |contents| {
        complain(format_args!("the report holds {}", contents.join(", ")));
    })
}

/// Writes the report. `tell` takes what it holds, before it is written.
///
/// # Errors
/// As [`run`].
pub(crate) fn write(arguments: &Arguments, tell: impl FnOnce(&[String])) -> Result<(), Failure> {
    let Some((template, viewer)) = page::get("report.html").zip(page::viewer()) else {
        return Err(Failure::Usage(page::MISSING.to_owned()));
    };
    let window = &arguments.input.common.window;
    if window.events.is_some()
        || arguments.input.choice.device.is_some()
        || arguments.trace.is_some()
    {
        let message = "a report is about whole files: --window, --device and --trace do not apply";
        return Err(Failure::Usage(message.to_owned()));
    }
    let given: Vec<PathBuf> =
        std::iter::once(&arguments.input.path).chain(&arguments.more).cloned().collect();
    let found = paths::expand(&given, Links::Everywhere);
    let redaction = if arguments.redact { Some(Redaction::new(&salt()?)) } else { None };
    let names = Names::new(&found.iter().map(|found| found.path.clone()).collect::<Vec<_>>());
    let is_run = found.len() > 1;
    let has_data = arguments.data != Some(ReportData::Reduced);
    let failure: Mutex<Option<io::Error>> = Mutex::default();
    let read = read::each_found(&found, window, |path, _, result| {
        let file = result.ok()?;
        let place = found.iter().position(|found| found.path == path).unwrap_or_default();
        let how = How { redaction: redaction.as_ref(), source: arguments.source, has_data, is_run };
        match part(file, path, &names.of(place, redaction.is_some()), &how) {
            Ok(part) => Some(part),
            Err(error) => {
                *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                None
            }
        }
    })?;
    if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(error.into());
    }
    let (parts, skipped, outcome) = read.into_results();
    let mut parts: Vec<Part> = parts.flatten().collect();
    if parts.is_empty() {
        return outcome.and(Err(Failure::Input));
    }
    let size: u64 = parts.iter().flat_map(|part| &part.files).map(|file| file.1.len() as u64).sum();
    let is_full = match arguments.data {
        Some(data) => data == ReportData::Full,
        None => size <= MAX_FULL,
    };
    if is_full && let Some(loss) = parts.iter().find_map(|part| part.loss.as_ref()) {
        let remedy = "--source embeds the file as it is, --data reduced embeds none";
        return Err(Failure::Usage(format!("{loss}: {remedy}")));
    }
    let devices = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.devices)).collect();
    let diagnosis = diagnose(devices, Listing::Main(MAX_FINDINGS), skipped);
    let report = Report { arguments, parts: &parts, diagnosis: &diagnosis, is_run, is_full, size };
    let contents = report.contents();
    tell(&contents);
    let template = String::from_utf8_lossy(&template.bytes);
    let beside: Vec<PathBuf> = found
        .iter()
        .filter_map(|found| sidecar::path_of(&found.path.to_string_lossy()))
        .map(PathBuf::from)
        .collect();
    let inputs: Vec<&Path> =
        found.iter().map(|found| &found.path).chain(&beside).map(PathBuf::as_path).collect();
    to_output(arguments, Kind::Html, &inputs, |out| {
        let mut rest: &str = &template;
        while let Some((before, after)) = rest.split_once("{{") {
            out.write_all(before.as_bytes())?;
            let (key, after) = after.split_once("}}").unwrap_or((after, ""));
            match key {
                "title" => out.write_all(escape(&report.title()).as_bytes())?,
                "version" => out.write_all(env!("CARGO_PKG_VERSION").as_bytes())?,
                "report" => out.write_all(report.text().as_bytes())?,
                "contents" => out.write_all(list_of(&contents).as_bytes())?,
                "data" if is_full => {
                    script(out, "id=\"viewer-script\"", &gzip(&viewer.script)?)?;
                    script(out, "id=\"viewer-view\"", &gzip(&viewer.view)?)?;
                    script(out, "id=\"viewer-worker\"", &gzip(&viewer.worker)?)?;
                    for (name, bytes) in parts.iter().flat_map(|part| &part.files) {
                        script(out, &format!("data-file=\"{}\"", escape(name)), bytes)?;
                    }
                }
                _ => {}
            }
            rest = after;
        }
        Ok(out.write_all(rest.as_bytes())?)
    })?;
    outcome
}

/// Random bytes for the hashes of one export. They are not stored.
fn salt() -> io::Result<[u8; 32]> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    Ok(salt)
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    out.write_all(bytes)?;
    out.finish()
}

/// Writes an element that holds bytes. Its type keeps the browser from running it.
fn script(out: &mut (dyn Write + Send), attribute: &str, bytes: &[u8]) -> Result<(), Failure> {
    let text = BASE64_STANDARD.encode(bytes);
    Ok(writeln!(out, "<script type=\"text/plain\" {attribute}>{text}</script>")?)
}

fn list_of(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| escape(item)).collect();
    format!("This file holds<ul><li>{}</li></ul>", items.join("</li><li>"))
}

/// How files are embedded.
struct How<'a> {
    redaction: Option<&'a Redaction>,
    source: bool,
    has_data: bool,
    /// Whether there are several files.
    is_run: bool,
}

/// The names that files have in a report.
struct Names(Vec<String>);

impl Names {
    /// The paths below the last folder that all of them share. The report does not name the folders
    /// above it.
    fn new(paths: &[PathBuf]) -> Self {
        let folder = paths.first().and_then(|path| path.parent()).unwrap_or(Path::new(""));
        let common = folder
            .ancestors()
            .find(|folder| paths.iter().all(|path| path.starts_with(folder)))
            .unwrap_or(Path::new(""));
        let name = |path: &PathBuf| {
            let whole = path.to_string_lossy();
            let short = path.strip_prefix(common).unwrap_or(path).to_string_lossy().into_owned();
            if rank_of(&short) == rank_of(&whole) {
                return short;
            }
            // The folder tells the rank.
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            format!("{}/{short}", folder.to_string_lossy())
        };
        Self(paths.iter().map(name).collect())
    }

    fn of(&self, place: usize, is_redacted: bool) -> String {
        let name = &self.0[place];
        if !is_redacted {
            return name.clone();
        }
        let rank = rank_of(name);
        let is_only =
            rank.is_some() && self.0.iter().filter(|other| rank_of(other) == rank).count() == 1;
        match rank {
            Some(rank) if is_only => format!("rank{rank}.pickle"),
            Some(rank) => format!("file{place}/rank{rank}.pickle"),
            None => format!("file{place}.pickle"),
        }
    }
}

/// Reads what the report needs of a file.
fn part(mut file: LoadedFile, path: &Path, name: &str, how: &How<'_>) -> io::Result<Part> {
    let mut part =
        Part { files: Vec::new(), sections: Vec::new(), devices: Vec::new(), loss: None };
    let is_whole = how.source && file.entries.len() == 1 && file.entries[0].name.is_empty();
    for (number, entry) in file.entries.iter_mut().enumerate() {
        let name = match entry.name.as_str() {
            "" => name.to_owned(),
            _ if how.redaction.is_some() => format!("{name}#{number}"),
            inner => format!("{name}#{inner}"),
        };
        let name = if is_whole { name } else { pickle_name(&name) };
        let beside =
            if is_whole { sidecar_text(path)? } else { copy::sidecar(entry, how.redaction) };
        if !is_whole && let Some(why) = copy::loss(entry) {
            part.loss = Some(format!("{}: {why}", path.display()));
        }
        let again = match how.redaction {
            // The report is about what is embedded, so it has no name that this lacks.
            Some(_) => Some(read_again(entry, &name, how.redaction)?),
            None => None,
        };
        if how.has_data && part.loss.is_none() {
            let snapshot = if is_whole {
                packed(path)?
            } else {
                let mut out = GzEncoder::new(Vec::new(), Compression::default());
                let mut written = Ok(());
                copy::pickle(entry, how.redaction, &mut |piece| {
                    if written.is_ok() {
                        written = out.write_all(piece);
                    }
                });
                written.and_then(|()| out.finish())?
            };
            part.files.push((name.clone(), snapshot));
            if let (Some(json), Some(beside)) = (&beside, sidecar::path_of(&name)) {
                part.files.push((beside, json.clone().into_bytes()));
            }
        }
        let mut again = again;
        let entry: &mut SnapshotEntry = match &mut again {
            Some(again) => &mut again.entries[0],
            None => entry,
        };
        entry.path = name;
        if let Some(json) = beside {
            entry.set_sidecar(json.as_bytes());
        }
        add_devices(&mut part, entry, how.is_run);
    }
    Ok(part)
}

/// The report of each device of a snapshot.
fn add_devices(part: &mut Part, entry: &SnapshotEntry, is_run: bool) {
    for index in 0..entry.traces.len() {
        entry.simulate(index);
        let target = Target { path: &entry.path, entry, index };
        let name = match entry.traces.len() {
            1 => entry.path.clone(),
            _ => format!("{}, {}", entry.path, device_name(target.device())),
        };
        let about = about(entry, target.device());
        let text = if is_run { figures } else { whole_device };
        part.sections.push((entry.path.clone(), text(target, &name, &about)));
        part.devices.push(at_peak(target));
    }
}

/// How a device was recorded: `PyTorch 2.9.1, NVIDIA H100, host node7, Fri, 27 Nov 2026 14:03:11
/// GMT`, as far as the file beside the snapshot and the clock of its events tell.
fn about(entry: &SnapshotEntry, device: u32) -> String {
    let mut parts = Vec::new();
    if let Some(beside) = entry.sidecar() {
        parts.extend(beside.torch.as_ref().map(|version| format!("PyTorch {version}")));
        let name = beside.device(device).map(|device| device.name.clone());
        parts.extend(name.filter(|name| !name.is_empty()));
        parts.extend(beside.host.as_ref().map(|host| format!("host {host}")));
    }
    let of_device = entry.traces.iter().find(|trace| trace.device.device == device);
    let start = of_device.and_then(|trace| trace.clock.as_ref()).map(|clock| clock.start.0);
    let start = start.and_then(|us| u64::try_from(us).ok());
    parts.extend(start.map(|us| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_micros(us))));
    parts.join(", ")
}

/// The name of a snapshot in the report. The report has a new, gzipped pickle of it.
fn pickle_name(name: &str) -> String {
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let is_pickle = sidecar::path_of(plain).is_some();
    if is_pickle { format!("{plain}.gz") } else { format!("{plain}.pickle.gz") }
}

/// The snapshot as it will be read from the report.
fn read_again(
    entry: &SnapshotEntry,
    name: &str,
    redaction: Option<&Redaction>,
) -> io::Result<LoadedFile> {
    let mut reader = FileReader::new(name, 0);
    let mut fed = Ok(());
    copy::pickle(entry, redaction, &mut |piece| {
        if fed.is_ok() {
            fed = reader.feed(piece);
        }
    });
    fed.and_then(|()| reader.finish()).map_err(|error| io::Error::other(error.message))
}

/// A file as it is, compressed.
fn packed(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    if bytes.starts_with(&[0x1f, 0x8b]) { Ok(bytes) } else { gzip(&bytes) }
}

/// The file beside a snapshot, written anew: only what is known of it.
fn sidecar_text(path: &Path) -> io::Result<Option<String>> {
    let Some(Ok(json)) = beside::read(path) else { return Ok(None) };
    let Ok(sidecar) = Sidecar::parse(&json) else { return Ok(None) };
    Ok(Some(serde_json::to_string(&sidecar)?))
}

struct Report<'a> {
    arguments: &'a Arguments,
    parts: &'a [Part],
    diagnosis: &'a Diagnosis,
    /// Whether there are several files.
    is_run: bool,
    is_full: bool,
    /// Bytes of the compressed snapshots.
    size: u64,
}

impl Report<'_> {
    fn title(&self) -> String {
        let devices = &self.diagnosis.headlines;
        match (devices.first(), self.parts.len()) {
            (Some(first), 1) => first.path.clone(),
            (_, count) => format!("GPU memory of {} files", grouped(count as u64)),
        }
    }

    /// What needs no script.
    fn text(&self) -> String {
        let sections = || self.parts.iter().flat_map(|part| &part.sections);
        if !self.is_run {
            return sections().map(|(_, text)| text.as_str()).collect();
        }
        let mut out = String::from("<section class=\"run\">");
        let mut answer = Answer::new(self.diagnosis, &[self.title()], false);
        // The reader has the report, not the files.
        answer.help.clear();
        out.push_str(&diagnostic::html(&answer));
        out.push_str("</section>\n");
        // The worst devices first, and of those without a fault one.
        let mut shown: Vec<&str> = Vec::new();
        let mut has_healthy = false;
        for headline in &self.diagnosis.headlines {
            let is_healthy = headline.severity.is_none();
            let is_told = shown.contains(&headline.path.as_str()) || is_healthy && has_healthy;
            if !is_told && shown.len() < MAX_SECTIONS {
                shown.push(&headline.path);
                has_healthy |= is_healthy;
            }
        }
        for path in shown {
            sections().filter(|(of, _)| of == path).for_each(|(_, text)| out.push_str(text));
        }
        out
    }

    /// What the file holds, for its reader and for who writes it.
    fn contents(&self) -> Vec<String> {
        let mut out = vec!["the text of the report".to_owned()];
        if self.is_full {
            let files = self.parts.iter().flat_map(|part| &part.files);
            let names: Vec<Cow<'_, str>> = files.map(|file| file.0.as_str().into()).collect();
            let shown = match names.len() {
                0..=8 => names.join(" and "),
                count => format!("{} and {} more files", names[0], grouped(count as u64 - 1)),
            };
            out.push("the viewer".to_owned());
            out.push(format!("{shown} ({} compressed)", Bytes(self.size)));
        } else {
            out.push("no snapshot".to_owned());
        }
        out.push(
            if self.arguments.source { "lines of source" } else { "no line of source" }.into(),
        );
        out.push(
            if self.arguments.redact {
                "hashes in place of paths and names"
            } else {
                "paths and names as recorded"
            }
            .into(),
        );
        out
    }
}
