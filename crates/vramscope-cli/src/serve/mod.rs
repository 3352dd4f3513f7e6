//! `vramscope serve`: serves the page and snapshots over the loopback interface.
//!
//! The path of the address has a random token, so that neither other users of the machine nor other
//! pages in the browser can guess it. The token is in no process's arguments. Files are streamed
//! from disk on request, also in ranges. Each request of the index lists the folders again, so that
//! snapshots that are written later appear on the page. The cards of many snapshots are made in the
//! background.

mod cards;
mod connections;
mod held;
pub(crate) mod page;
mod redirect;
mod remote;
mod routes;
mod shelf;
#[cfg(all(feature = "page", not(packed_page)))]
mod site_files;
mod source;
#[cfg(all(test, unix))]
mod tests;

use crate::Failure;
use crate::arguments::Serve;
use crate::output::complain;
use crate::paths::{self, Found, Links};
use crate::sources::Sources;
use redirect::Redirect;
use remote::Remote;
use shelf::Shelf;
use source::Code;
use std::fs::Metadata;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// The default port, fixed so that it can be forwarded.
const PORT: u16 = 8317;
/// Number of ports from [`PORT`] on that are tried when others are in use.
const PORTS: u16 = 50;

/// Serves until the process is stopped.
///
/// # Errors
/// When the page is not built in, a path does not exist, or no port is free.
pub(crate) fn run(arguments: &Serve) -> Result<(), Failure> {
    if page::get("index.html").is_none() {
        return Err(Failure::Usage(page::MISSING.to_owned()));
    }
    for path in &arguments.paths {
        path.metadata()
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    }
    let code = Code::new(Sources::new(&arguments.source)?);
    let links = if arguments.follow_links { Links::Everywhere } else { Links::Inside };
    // List the folders now, so that errors show before a browser opens.
    let found = count_files(&paths::expand(&arguments.paths, links));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = listen(arguments.port).await?;
        // Before the address is printed: a reader of it may stop the server.
        let stopped = stopped()?;
        let token = token()?;
        let port = listener.local_addr()?.port();
        let address = format!("http://127.0.0.1:{port}/{token}/");
        let mut out = io::stdout();
        let files = if found == 1 { "1 file" } else { &format!("{found} files") };
        let shown = if arguments.paths.is_empty() { "the page only" } else { files };
        let remote = Remote::of_process();
        match &remote {
            None => writeln!(out, "vramscope serves {shown} at {address} (Ctrl-C stops it)")?,
            Some(remote) => {
                writeln!(out, "vramscope serves {shown} (Ctrl-C stops it)")?;
                writeln!(out, "{}", remote.text(port, &address))?;
            }
        }
        out.flush()?;
        let opens = !arguments.no_open && remote::has_display(remote.as_ref());
        // Removed when the server ends. A browser that is slow to start may need it until then.
        let _redirect = if opens { open_browser(&address) } else { None };
        let shelf = Shelf::new(arguments.paths.clone(), links);
        tokio::select! {
            () = connections::accept(
                listener, routes::router(&token, port, shelf, code), connections::HEADER_TIMEOUT,
            ) => {}
            () = stopped => {}
        }
        Ok(())
    });
    // A card that is still being made is dropped: its file may take minutes to read.
    runtime.shutdown_background();
    served
}

/// The number of files to serve. Folders that cannot be listed are reported.
fn count_files(found: &[Found]) -> usize {
    let is_file = |found: &&Found| found.metadata.as_ref().is_some_and(Metadata::is_file);
    for folder in found.iter().filter(|f| f.metadata.as_ref().is_some_and(Metadata::is_dir)) {
        complain(format_args!("cannot list {}: its files are not served", folder.path.display()));
    }
    found.iter().filter(is_file).count()
}

/// Opens a browser through a file that only this user can read. Without a browser, the user opens
/// the printed address.
fn open_browser(address: &str) -> Option<Redirect> {
    let opened = token()
        .and_then(|name| Redirect::new(&std::env::temp_dir(), &name, address))
        .and_then(|redirect| open::that_detached(redirect.path()).map(|()| redirect));
    opened
        .inspect_err(|error| {
            complain(format_args!("cannot open a browser ({error}): open the address yourself"));
        })
        .ok()
}

/// A future that ends when the user or the system stops the program. From this call on the signals
/// end the server, and not the process at once.
#[cfg(unix)]
fn stopped() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// A future that ends when the user stops the program.
#[cfg(not(unix))]
fn stopped() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

/// Listens at the requested port, or at the first free one from the default port on.
async fn listen(port: Option<u16>) -> io::Result<TcpListener> {
    let at = |port: u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    if let Some(port) = port {
        // A port that is forwarded must be this one, so no other one is tried.
        return at(port).await.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => "another program listens there".to_owned(),
                _ => error.to_string(),
            };
            let what = format!(
                "cannot listen on port {port} of 127.0.0.1: {why}. Choose another port with \
                 --port N, or leave --port out for the next free one."
            );
            io::Error::new(error.kind(), what)
        });
    }
    for port in PORT..PORT + PORTS {
        if let Ok(listener) = at(port).await {
            return Ok(listener);
        }
    }
    at(0).await
}

/// 128 random bits in hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
