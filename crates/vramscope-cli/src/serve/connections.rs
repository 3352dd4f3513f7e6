//! Accepts connections, and closes a connection that sends no request in time.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::time::Duration;
use tokio::net::TcpListener;

/// A client that has not sent a request's headers by then is cut off. It also ends connections that
/// a browser keeps open and does not use; the browser opens a new one.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// The pause after a connection could not be accepted, because too many files are open, say.
const RETRY: Duration = Duration::from_millis(100);

/// Serves until the future is dropped.
pub(crate) async fn accept(listener: TcpListener, routes: Router, header_timeout: Duration) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // The client has closed the connection already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                crate::output::complain(format_args!("cannot accept a connection: {error}"));
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(routes.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // A connection that breaks, or sends no request in time, is its client's affair.
            drop(connection.await);
        });
    }
}
