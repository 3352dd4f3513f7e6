//! `vramscope serve`: serves the page and snapshots over the loopback interface.
//!
//! The path of the address has a random token, so that neither other users of the machine nor other
//! pages in the browser can guess it. Files are streamed from disk on request, also in ranges. Each
//! request of the index lists the folders again, so that snapshots that are written later appear on
//! the page.

mod page;
mod routes;
mod shelf;

use crate::Failure;
use crate::arguments::Serve;
use crate::paths;
use shelf::Shelf;
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
        return Err(Failure::Usage(
            "this program was built without the page. Build it with the page: cargo xtask build \
             && cargo install --path crates/vramscope-cli --features page"
                .to_owned(),
        ));
    }
    for path in &arguments.paths {
        path.metadata()
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    }
    // List the folders now, so that errors show before a browser opens.
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
            if arguments.paths.is_empty() { "the page only".to_owned() } else { files.to_owned() };
        writeln!(out, "vramscope serves {shown} at {address} (Ctrl-C stops it)")?;
        out.flush()?;
        if !arguments.no_open
            && let Err(error) = open::that_detached(&address)
        {
            eprintln!("vramscope: cannot open a browser ({error}): open the address yourself");
        }
        axum::serve(listener, routes::router(&token, Shelf::new(arguments.paths.clone()))).await?;
        Ok(())
    })
}

/// Listens at the requested port, or at the first free one from the default port on.
async fn listen(port: Option<u16>) -> io::Result<TcpListener> {
    let at = |port: u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    if let Some(port) = port {
        return at(port).await.map_err(|e| io::Error::new(e.kind(), format!("port {port}: {e}")));
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
