//! The folders that calls may read: that of `--root`, and the roots that the client offers.

#![expect(deprecated, reason = "clients offer roots until they speak a version without them")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, InputRequest, InputRequiredResult, ListRootsRequest,
    ListRootsResult, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Limit for a client's answer to `roots/list`.
const PATIENCE: Duration = Duration::from_secs(20);

/// The remedy where a file lies outside.
const SETS: &str = "`vramscope mcp --root DIR` sets the folder.";

/// The name of the question about roots in a call's result, and of its answer in the next call.
const QUESTION: &str = "roots";

/// A folder that calls may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    /// The path as it was given, absolute.
    given: PathBuf,
    /// The path without links.
    real: PathBuf,
}

impl Folder {
    /// The folder at a path; `None` if there is none.
    pub(super) fn new(path: &Path) -> Option<Self> {
        let real = path.canonicalize().ok().filter(|real| real.is_dir())?;
        Some(Self { given: std::path::absolute(path).ok()?, real })
    }

    /// The path as the folder has it, if it lies there. A path that does not exist is judged by the
    /// part of it that does.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        let full = self.real.join(path);
        let known = full.ancestors().find_map(|part| part.canonicalize().ok())?;
        let exists = full.exists();
        let climbs = full.components().any(|part| part == Component::ParentDir);
        if !known.starts_with(&self.real) || climbs && !exists {
            return None;
        }
        let real = exists.then(|| full.canonicalize().ok()).flatten();
        let place =
            [Some(full.as_path()), real.as_deref()].into_iter().flatten().find_map(|path| {
                path.strip_prefix(&self.real).or_else(|_| path.strip_prefix(&self.given)).ok()
            })?;
        Some(if place == Path::new("") { PathBuf::from(".") } else { place.to_owned() })
    }
}

/// The paths of a call.
pub(super) struct Places {
    /// The folders that the call may read. The call runs in the first.
    pub(super) folders: Vec<PathBuf>,
    /// The paths, relative to the first folder where they lie below it.
    pub(super) paths: Vec<OsString>,
}

/// The folders that a call may read.
#[derive(Clone, Debug)]
pub(super) struct Folders(Vec<Folder>);

impl Folders {
    /// Finds the folder of each path. A relative path begins in the first folder that has it.
    ///
    /// # Errors
    /// A path lies outside of the folders.
    pub(super) fn places(&self, paths: &[String]) -> Result<Places, String> {
        let placed = paths.iter().map(|path| self.place(path));
        let placed = placed.collect::<Result<Vec<(&Folder, PathBuf)>, String>>()?;
        let first = placed.first().map_or(&self.0[0], |of| of.0);
        let others = self.0.iter().filter(|of| *of != first);
        Ok(Places {
            folders: std::iter::once(first).chain(others).map(|of| of.real.clone()).collect(),
            paths: placed
                .iter()
                .map(|(of, path)| if *of == first { path.clone() } else { of.real.join(path) })
                .map(OsString::from)
                .collect(),
        })
    }

    fn place(&self, path: &str) -> Result<(&Folder, PathBuf), String> {
        let given = of_uri(path).unwrap_or_else(|| PathBuf::from(path));
        let all = || self.0.iter().filter_map(|of| Some((of, of.place(&given)?)));
        let has = all().find(|(of, path)| of.real.join(path).exists());
        has.or_else(|| all().next()).ok_or_else(|| {
            let folders: Vec<String> =
                self.0.iter().map(|of| of.real.display().to_string()).collect();
            format!("{path}: is not below {}. {SETS}", folders.join(" or "))
        })
    }
}

/// Why a call does not know its folders yet.
pub(super) enum Unknown {
    /// The client has to be asked: the result of the call.
    Asked(Box<CallToolResponse>),
    /// The reason.
    Failed(String),
}

/// The folder of `--root`, the working folder, and the roots of the client.
#[derive(Clone)]
pub(super) struct Roots {
    /// The folder of `--root`.
    granted: Option<Folder>,
    /// The working folder of the server.
    working: Folder,
    /// The URIs that the client offers. It is asked once, and again when it says that they changed.
    offered: Arc<Mutex<Option<Vec<String>>>>,
}

impl Roots {
    /// # Errors
    /// `root` or the working folder is no folder.
    pub(super) fn new(root: Option<&Path>) -> Result<Self, String> {
        let folder = |path: &Path| {
            Folder::new(path).ok_or_else(|| format!("--root {}: no such folder", path.display()))
        };
        Ok(Self {
            granted: root.map(folder).transpose()?,
            working: folder(root.unwrap_or(Path::new(".")))?,
            offered: Arc::default(),
        })
    }

    /// The sentence that tells an agent where files lie.
    pub(super) fn told(&self) -> String {
        let folder = self.working.given.display();
        match self.granted {
            Some(_) => format!(
                "Files lie below {folder}; if roots of the client lie there, below these. Relative \
                 paths begin there."
            ),
            None => format!(
                "Files lie below the client's roots, or below {folder} if it offers none. Relative \
                 paths begin there."
            ),
        }
    }

    /// The folders of a call.
    ///
    /// # Errors
    /// The client has to be asked, does not tell its roots, or offers none of this machine.
    pub(super) async fn of(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Folders, Unknown> {
        let has_roots = context.client_capabilities().is_some_and(|client| client.roots.is_some());
        if !has_roots {
            return self.folders(&[]).map_err(Unknown::Failed);
        }
        let version = context.protocol_version();
        if version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28) {
            let offered = match self.offered(&context.peer, false).await {
                Err(why) if self.granted.is_none() => return Err(Unknown::Failed(why)),
                offered => offered.unwrap_or_default(),
            };
            return self.folders(&offered).map_err(Unknown::Failed);
        }
        // From this version on a server asks by its result, and the client calls again.
        let answer = request.input_responses.as_ref().and_then(|all| all.get(QUESTION)).cloned();
        let Some(answer) = answer else {
            let question = InputRequest::ListRoots(ListRootsRequest::default());
            let asked = [(QUESTION.to_owned(), question)].into();
            let asked = InputRequiredResult::from_input_requests(asked);
            return Err(Unknown::Asked(Box::new(asked.into())));
        };
        let told: ListRootsResult = serde_json::from_value(answer)
            .map_err(|error| Unknown::Failed(format!("the client's roots: {error}")))?;
        let offered: Vec<String> = told.roots.into_iter().map(|root| root.uri).collect();
        self.folders(&offered).map_err(Unknown::Failed)
    }

    /// Asks the client for its roots, if it offers any. Calls wait for the answer.
    pub(super) async fn ask(&self, client: &Peer<RoleServer>) {
        if client.peer_info().is_some_and(|info| info.capabilities.roots.is_some()) {
            // A call asks again, and tells why there is no answer.
            drop(self.offered(client, true).await);
        }
    }

    /// The URIs that the client offers. It is asked if it was not, or if they have changed.
    ///
    /// # Errors
    /// The client does not tell them.
    async fn offered(
        &self,
        client: &Peer<RoleServer>,
        have_changed: bool,
    ) -> Result<Vec<String>, String> {
        let mut offered = self.offered.lock().await;
        if let Some(known) = offered.as_ref().filter(|_| !have_changed) {
            return Ok(known.clone());
        }
        *offered = None;
        let told = tokio::time::timeout(PATIENCE, client.list_roots()).await;
        let told = match told {
            Ok(Ok(told)) => told,
            Ok(Err(error)) => {
                return Err(format!("the client does not tell its roots: {error}. {SETS}"));
            }
            Err(_) => return Err(format!("the client does not tell its roots in 20 s. {SETS}")),
        };
        let uris: Vec<String> = told.roots.into_iter().map(|root| root.uri).collect();
        *offered = Some(uris.clone());
        Ok(uris)
    }

    /// The folders that calls may read. `--root` is the limit: offered folders within `--root`
    /// narrow it, and other offered folders do not widen it.
    fn folders(&self, offered: &[String]) -> Result<Folders, String> {
        let mut folders: Vec<Folder> =
            offered.iter().filter_map(|uri| Folder::new(&of_uri(uri)?)).collect();
        if let Some(limit) = &self.granted {
            folders.iter_mut().filter(|of| limit.real.starts_with(&of.real)).for_each(|of| {
                *of = limit.clone();
            });
            folders.retain(|of| of.real.starts_with(&limit.real));
        } else if folders.is_empty() && !offered.is_empty() {
            return Err(format!(
                "the client's roots are no folders of this machine: {}. {SETS}",
                offered.join(", ")
            ));
        }
        if folders.is_empty() {
            folders.push(self.granted.as_ref().unwrap_or(&self.working).clone());
        }
        Ok(Folders(folders))
    }
}

/// The path of a `file:` URI of this machine.
fn of_uri(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest);
    let path = path.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &after[2..]).1,
            None => (bytes.push(*first), rest = after).1,
        }
    }
    let path = String::from_utf8(bytes).ok()?;
    // `file:///c:/runs`
    let is_drive = cfg!(windows) && path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if is_drive { &path[1..] } else { &path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_paths_of_this_machine() {
        for (uri, path) in [
            ("file:///runs/my%20job", Some("/runs/my job")),
            ("file://localhost/runs", Some("/runs")),
            ("file:///r%C3%BCns/100%", Some("/r\u{fc}ns/100%")),
            ("file:///runs/a%2", Some("/runs/a%2")),
            ("file://server/runs", None),
            ("file:runs", None),
            ("vscode-vfs://github/a/b", None),
            ("/runs", None),
            ("file:///%FF", None),
        ] {
            assert_eq!(of_uri(uri), path.map(PathBuf::from), "{uri}");
        }
    }

    #[test]
    fn roots_of_the_client_narrow_the_root_and_do_not_widen_it() {
        let base = tempfile::tempdir().expect("a folder");
        let base = base.path().canonicalize().expect("a path");
        let path = |name: &str| base.join(name);
        for name in ["a/b", "a/c", "d"] {
            std::fs::create_dir_all(path(name)).expect("a folder");
        }
        let uri = |name: &str| format!("file://{}", path(name).display());
        let of = |root: Option<&str>, offered: &[&str]| -> Result<Vec<PathBuf>, String> {
            let mut roots = Roots::new(root.map(path).as_deref())?;
            roots.working = Folder::new(&path(root.unwrap_or("d"))).expect("a folder");
            let offered: Vec<String> = offered.iter().map(|name| uri(name)).collect();
            Ok(roots.folders(&offered)?.0.into_iter().map(|of| of.real).collect())
        };
        for (root, offered, folders) in [
            (None, &[][..], &["d"][..]),
            (None, &["a/b", "absent", "a/c"], &["a/b", "a/c"]),
            (Some("a"), &[], &["a"]),
            (Some("a"), &["d"], &["a"]),
            (Some("a"), &["a/b", "d"], &["a/b"]),
            (Some("a/b"), &["a"], &["a/b"]),
            (Some("a"), &["absent"], &["a"]),
        ] {
            let expected: Vec<PathBuf> = folders.iter().map(|name| path(name)).collect();
            assert_eq!(of(root, offered), Ok(expected), "{root:?} {offered:?}");
        }
        assert!(of(None, &["absent"]).is_err_and(|why| why.contains("no folders")));
        assert!(of(Some("absent"), &[]).is_err_and(|why| why.contains("no such folder")));
    }

    #[test]
    fn relative_paths_begin_in_the_first_folder_that_has_them() {
        let base = tempfile::tempdir().expect("a folder");
        let base = base.path().canonicalize().expect("a path");
        for name in ["a", "b/runs"] {
            std::fs::create_dir_all(base.join(name)).expect("a folder");
        }
        std::fs::write(base.join("b/runs/x.pickle"), "").expect("a file");
        let folders = Folders(
            ["a", "b"].map(|name| Folder::new(&base.join(name)).expect("a folder")).to_vec(),
        );
        let of = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            folders.places(&paths).map(|of| (of.folders[0].clone(), of.paths))
        };
        let in_b = (base.join("b"), vec![OsString::from("runs/x.pickle")]);
        assert_eq!(of(&["runs/x.pickle"]), Ok(in_b.clone()));
        assert_eq!(of(&[&base.join("b/runs/x.pickle").to_string_lossy()]), Ok(in_b));
        let both = of(&["absent.pickle", "runs"]).expect("both are inside");
        assert_eq!(both.0, base.join("a"));
        assert_eq!(both.1, ["absent.pickle".into(), base.join("b/runs").into_os_string()]);
        assert_eq!(of(&["."]), Ok((base.join("a"), vec![".".into()])));
        assert!(of(&["../c"]).is_err_and(|why| why.starts_with("../c: is not below ")));
    }
}
