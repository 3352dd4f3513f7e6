//! Routes of the server, all of them below the token's path.

use super::page::{self, Asset};
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

/// The attributes of the page that name its sample and its examples, and their replacement, which
/// names the served run.
const SAMPLE: &str = "sample=\"./sample/index.json\" examples=\"./sample/\"";
const RUN: &str = "run=\"./files/index.json\"";

/// Headers of every response. The first two isolate the page from other origins, which threads
/// need. The others keep the content from other origins and from caches.
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
                "Not found: use the address that vramscope printed, with its token.\n",
            )
        })
        .layer(middleware::from_fn(guarded))
}

/// Refuses requests for other host names, against DNS rebinding, and adds the headers to every
/// response.
async fn guarded(request: Request, next: Next) -> Response {
    let mut response = if is_local(request.headers()) {
        next.run(request).await
    } else {
        (StatusCode::FORBIDDEN, "Forbidden: the host must be 127.0.0.1 or localhost.\n")
            .into_response()
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
    let Some(Asset { bytes, .. }) = page::get("index.html") else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let html = String::from_utf8_lossy(&bytes);
    let html = if shelf.is_empty() { html.into_owned() } else { html.replacen(SAMPLE, RUN, 1) };
    axum::response::Html(html).into_response()
}

async fn index(State(shelf): State<Arc<Shelf>>) -> Response {
    match shelf.index() {
        Ok(index) => Json(index).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// Streams a snapshot or a range of one from disk. The headers keep a browser from running it.
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
    let Some(Asset { bytes, content_type }) = page::get(&path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    ([(header::CONTENT_TYPE, content_type)], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_host_names_are_served() {
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
