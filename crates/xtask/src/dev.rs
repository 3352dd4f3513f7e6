//! The development server: Vite serves the page, the TypeScript compiler watches the viewer, and
//! wasm is rebuilt when a crate changes.

use crate::wasm::{self, Mode};
use crate::{cmd, files, install, repo::Repo};
use anyhow::{Context, Result, bail};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

const POLL: Duration = Duration::from_millis(400);

/// Serves until a child process ends. With `once`, serves the page once, and checks its headers.
pub(crate) fn run(repo: &Repo, first_port: u16, once: bool) -> Result<()> {
    install::npm(repo)?;
    wasm::build(repo, Mode::Release)?;
    let web = repo.web();
    let port = free_port(first_port)?;
    let mut sheets = cmd::command("node", &["viewer/styles.mjs", "--watch"], &web);
    cmd::run(&mut cmd::command("node", &["viewer/styles.mjs"], &web))?;
    cmd::run(&mut cmd::command(
        "node",
        &["node_modules/typescript/bin/tsc", "-b", "viewer"],
        &web,
    ))?;
    let watch = ["-b", "viewer", "--watch", "--preserveWatchOutput"];
    let mut sheets = Served::start("the writer of style sheets", &mut sheets)?;
    let mut types = Served::start(
        "the TypeScript compiler",
        &mut cmd::command(&compiler(&web)?, &watch, &web),
    )?;
    let text = port.to_string();
    let vite = program(&web, "vite")?;
    let vite = [vite.as_str(), "--host", "127.0.0.1", "--port", &text, "--strictPort"];
    let mut server = Served::start("Vite", &mut cmd::command("node", &vite, &web.join("site")))?;
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        server.alive()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("\nvramscope is at http://127.0.0.1:{port}/ (Ctrl-C stops it)\n");

    if once {
        return served(port);
    }
    let mut built = newest_source(repo)?;
    loop {
        std::thread::sleep(POLL);
        server.alive()?;
        types.alive()?;
        sheets.alive()?;
        let newest = newest_source(repo)?;
        if newest <= built {
            continue;
        }
        built = newest;
        match wasm::build(repo, Mode::Release) {
            Ok(()) => println!("wasm was rebuilt"),
            Err(error) => eprintln!("{error:#}\nserving the last good build"),
        }
    }
}

/// The program of an npm package, which npm installs in `site` or in the workspace.
fn program(web: &Path, name: &str) -> Result<String> {
    let places =
        ["site/node_modules/.bin", "node_modules/.bin"].map(|folder| web.join(folder).join(name));
    let found = places.iter().find(|place| place.exists());
    found
        .map(|place| place.to_string_lossy().into_owned())
        .with_context(|| format!("npm has not installed {name}"))
}

/// The native TypeScript compiler. npm's script would start it as a child that outlives us.
fn compiler(web: &Path) -> Result<String> {
    let packages = web.join("node_modules/@typescript");
    for package in std::fs::read_dir(&packages)
        .with_context(|| format!("cannot list {}", packages.display()))?
    {
        let lib = package?.path().join("lib");
        if let Some(found) =
            ["tsc", "tsc.exe"].map(|name| lib.join(name)).into_iter().find(|path| path.is_file())
        {
            return Ok(found.to_string_lossy().into_owned());
        }
    }
    bail!("npm has not installed a TypeScript compiler for this machine in {}", packages.display())
}

/// Requests the page, and returns the response with its headers.
fn page(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("reading the page")?;
    Ok(answer)
}

/// Checks that the page comes with the headers that isolate it from other origins, which threads
/// and exact clocks need. A starting server may drop connections, so it is tried for 30 seconds.
fn served(port: u16) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let answer = loop {
        match page(port) {
            Err(_) if Instant::now() < deadline => std::thread::sleep(POLL),
            answer => break answer?,
        }
    };
    let low = answer.to_lowercase();
    for want in [
        "http/1.1 200",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-embedder-policy: require-corp",
        "<script",
    ] {
        if !low.contains(want) {
            bail!("the response of the development server lacks {want:?}:\n{answer}");
        }
    }
    println!("the page came with its headers");
    Ok(())
}

/// A child process that ends with this program.
struct Served {
    what: &'static str,
    child: Child,
}

impl Served {
    fn start(what: &'static str, command: &mut std::process::Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {what}"))?;
        Ok(Self { what, child })
    }

    fn alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} stopped ({status})", self.what);
        }
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill() {
            eprintln!("{} could not be stopped: {error}", self.what);
        }
    }
}

fn free_port(first: u16) -> Result<u16> {
    (first..first.saturating_add(50))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| format!("no free port in the 50 from {first} on"))
}

fn newest_source(repo: &Repo) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for path in files::below(&repo.path("crates"))? {
        if files::has_extension(&path, &["rs", "toml", "vert", "frag", "glsl"]) {
            newest = files::modified(&path).map_or(newest, |time| time.max(newest));
        }
    }
    Ok(newest)
}
