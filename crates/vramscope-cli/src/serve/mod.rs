//! `vramscope serve`: the page and a folder's files, over the loopback interface of this machine.
//!
//! The address has a random token in its path, so that neither other users of the machine nor other
//! pages in the browser can guess it. Files go from the disk to the browser as they are asked for,
//! in ranges if it wants to; none is held in memory. What lies in a folder is looked up whenever
//! the page asks, so a snapshot that is written later is offered there.

mod routes;
mod shelf;

include!(concat!(env!("OUT_DIR"), "/page.rs"));

use crate::Failure;
use crate::arguments::Serve;
use crate::paths;
use shelf::Shelf;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// Where it listens unless told, or on one of the next few where that is taken: the same each time,
/// for those who forward it.
const PORT: u16 = 8317;
const TRIES: u16 = 50;

/// Serves until it is stopped.
///
/// # Errors
/// When a path is not there, or no port can be had.
pub(crate) fn run(arguments: &Serve) -> Result<(), Failure> {
    if PAGE.is_empty() {
        let how = "cargo xtask build && cargo install --path crates/vramscope-cli --features page";
        return Err(Failure::Usage(format!(
            "this program was built without the page; with it: {how}"
        )));
    }
    for path in &arguments.paths {
        path.metadata()
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    }
    // Once now, so that what cannot be listed is said before a browser opens.
    let found = paths::expand(&arguments.paths)?.len();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(arguments.port).await?;
        let token = token()?;
        let address = format!("http://127.0.0.1:{}/{token}/", listener.local_addr()?.port());
        let mut out = io::stdout();
        let files = if found == 1 { "1 file" } else { &format!("{found} files") };
        let shown =
            if arguments.paths.is_empty() { "the page alone".to_owned() } else { files.to_owned() };
        writeln!(out, "vramscope serves {shown} at {address} (Ctrl-C stops it)")?;
        out.flush()?;
        if !arguments.no_open
            && let Err(error) = open::that_detached(&address)
        {
            eprintln!("vramscope: no browser could be opened ({error}): open the address by hand");
        }
        axum::serve(listener, routes::router(&token, Shelf::new(arguments.paths.clone()))).await?;
        Ok(())
    })
}

/// At the port that was asked for, and no other; else at the usual one or one of those after it.
async fn listen(port: Option<u16>) -> io::Result<TcpListener> {
    let at = |port: u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    if let Some(port) = port {
        return at(port).await.map_err(|e| io::Error::new(e.kind(), format!("port {port}: {e}")));
    }
    for port in PORT..PORT + TRIES {
        if let Ok(listener) = at(port).await {
            return Ok(listener);
        }
    }
    at(0).await
}

/// 128 random bits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
