//! What is answered under the token's path, and nothing else is.

use super::PAGE;
use super::shelf::Shelf;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::sync::Arc;
use tower_http::services::ServeFile;

/// What the page has for its sample, and what it has instead: the run that is served.
const SAMPLE: &str = "sample=\"./sample/index.json\"";
const RUN: &str = "run=\"./files/index.json\"";

/// The first two isolate the page from others, which threads need; the rest keeps what is served to
/// itself.
const HEADERS: [(&str, &str); 6] = [
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

pub(crate) fn router(token: &str, shelf: Shelf) -> Router {
    let served = Router::new()
        .route("/", get(page))
        .route("/files/index.json", get(index))
        .route("/files/{number}", get(file))
        .route("/{*path}", get(asset))
        .with_state(Arc::new(shelf));
    let slash = Redirect::temporary(&format!("/{token}/"));
    Router::new()
        .route(&format!("/{token}"), get(async move || slash.clone()))
        .nest_service(&format!("/{token}/"), served)
        .fallback(async || {
            (
                StatusCode::NOT_FOUND,
                "Nothing is here: the address that vramscope printed has a token in it.\n",
            )
        })
        .layer(middleware::from_fn(guarded))
}

/// Only for this machine's own names: a page elsewhere may have its name lead here. And with the
/// headers, whatever it is.
async fn guarded(request: Request, next: Next) -> Response {
    let mut response = if is_local(request.headers()) {
        next.run(request).await
    } else {
        (StatusCode::FORBIDDEN, "This is served to 127.0.0.1 and localhost only.\n").into_response()
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
    matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}

async fn page(State(shelf): State<Arc<Shelf>>) -> Response {
    let Some((_, html)) = PAGE.iter().find(|(name, _)| *name == "index.html") else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let html = String::from_utf8_lossy(html);
    let html = if shelf.is_empty() { html.into_owned() } else { html.replacen(SAMPLE, RUN, 1) };
    axum::response::Html(html).into_response()
}

async fn index(State(shelf): State<Arc<Shelf>>) -> Response {
    match shelf.index() {
        Ok(index) => Json(index).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// A snapshot, from the disk: whole, or the range that is asked for. Never as something that a
/// browser would run.
async fn file(
    State(shelf): State<Arc<Shelf>>,
    Path(number): Path<usize>,
    request: Request,
) -> Response {
    let Some(path) = shelf.path(number) else { return StatusCode::NOT_FOUND.into_response() };
    match ServeFile::new(path).try_call(request).await {
        Ok(response) => {
            let mut response = response.map(Body::new);
            let headers = response.headers_mut();
            headers
                .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
            response
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn asset(Path(path): Path<String>) -> Response {
    // A folder is its index, as on any host.
    let is_asked = |name: &str| name == path || name.strip_suffix("index.html") == Some(&path);
    let Some((name, bytes)) = PAGE.iter().find(|(name, _)| is_asked(name)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    ([(header::CONTENT_TYPE, kind(name))], *bytes).into_response()
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript",
        "css" => "text/css",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "webmanifest" => "application/manifest+json",
        "png" => "image/png",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_served() {
        let of = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            is_local(&headers)
        };
        for host in ["127.0.0.1:8317", "localhost", "localhost:1", "[::1]:8317", "[::1]"] {
            assert!(of(host), "{host}");
        }
        for host in
            ["example.com:8317", "127.0.0.1.example.com", "localhost.evil:80", "", "[::2]:1"]
        {
            assert!(!of(host), "{host}");
        }
        assert!(!is_local(&HeaderMap::new()));
    }
}
