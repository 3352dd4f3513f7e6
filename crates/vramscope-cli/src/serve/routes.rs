//! Routes of the server, all of them below the token's path.

use super::cards::Cards;
use super::held::HeldFile;
use super::page::{self, Asset};
use super::shelf::Shelf;
use super::source::Code;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write as _};
use std::sync::Arc;

/// The attributes of the page that name the gallery and the documents, which the program does not
/// have.
const GALLERY: &str = " gallery=\"./gallery/\" docs=\"./docs/\"";
/// The link of a page to the documents, which the program does not have.
const DOCUMENTS: &str = "<a class=\"button\" href=\"../docs/\">Documents</a>";
/// The attributes of the page that name its sample and its examples, and their replacement, which
/// names the served run.
const SAMPLE: &str = "sample=\"./sample/index.json\" example=\"./sample/oom.json\"";
const RUN: &str = "run=\"./files/index.json\"";

/// Headers of every response. The first two isolate the page from other origins, which threads
/// need. The others keep the content from other origins and from caches. Only notebooks on this
/// machine may frame the page.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* \
         https://127.0.0.1:* vscode-webview:",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

/// The routes of a server that listens on a port of the loopback interface.
pub(crate) fn router(token: &str, port: u16, shelf: Shelf, code: Code) -> Router {
    let served = Router::new()
        .route("/", get(page))
        .route("/files/index.json", get(index))
        .route("/files/cards", get(cards))
        .route("/files/{number}", get(file))
        .route("/files/{number}/source/{path}", get(source))
        .route("/{*path}", get(asset))
        .with_state(Arc::new(Served { shelf: Arc::new(shelf), code, cards: Arc::default() }));
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
        .layer(middleware::from_fn(move |request, next| guarded(port, request, next)))
}

/// What is served: snapshots and the source of their programs.
struct Served {
    shelf: Arc<Shelf>,
    code: Code,
    cards: Arc<Cards>,
}

impl Served {
    fn index(&self) -> super::shelf::Index {
        let mut index = self.shelf.index(!self.code.is_empty());
        index.cards = self.cards.of(&self.shelf, &index.title, &index.files);
        index
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.cards.stop();
    }
}

/// Refuses requests for other hosts, against DNS rebinding, and adds the headers to every response.
async fn guarded(port: u16, request: Request, next: Next) -> Response {
    let mut response = if is_local(port, &request) {
        next.run(request).await
    } else {
        let words = format!(
            "Forbidden: the host must be 127.0.0.1:{port} or localhost:{port}. A forwarded port \
             must have this number on both machines.\n"
        );
        (StatusCode::FORBIDDEN, words).into_response()
    };
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers
            .entry(HeaderName::from_static(name))
            .or_insert_with(|| HeaderValue::from_static(value));
    }
    response
}

/// Whether a request names this server, in each place where it can name one: once in its headers,
/// and at most once in its address.
fn is_local<B>(port: u16, request: &axum::http::Request<B>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let in_address = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    std::iter::once(host.as_bytes()).chain(in_address).all(|named| is_own(port, named))
}

/// Whether an authority is the loopback interface with a port, which may be left out if it is 80.
fn is_own(port: u16, authority: &[u8]) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        let whole = format!("{name}:{port}");
        authority.eq_ignore_ascii_case(whole.as_bytes())
            || port == 80 && authority.eq_ignore_ascii_case(name.as_bytes())
    })
}

async fn page(State(served): State<Arc<Served>>) -> Response {
    let Some(Asset { bytes, .. }) = page::get("index.html") else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut html = String::from_utf8_lossy(&bytes).replacen(GALLERY, "", 1);
    if !served.shelf.is_empty() {
        html = html.replacen(SAMPLE, RUN, 1);
    }
    axum::response::Html(html).into_response()
}

/// Listing folders takes time, which other requests must not wait for.
async fn index(State(served): State<Arc<Served>>) -> Response {
    match tokio::task::spawn_blocking(move || served.index()).await {
        Ok(index) => Json(index).into_response(),
        Err(error) => failed(&error),
    }
}

/// The lines of cards that are made, from line `from` on, which counts from 0.
async fn cards(State(served): State<Arc<Served>>, request: Request) -> Response {
    let mut fields = request.uri().query().unwrap_or_default().split('&');
    let from = fields.find_map(|field| field.strip_prefix("from=")?.parse().ok()).unwrap_or(0);
    let accepted = request.headers().get_all(header::ACCEPT_ENCODING).iter();
    let takes_gzip = accepted.flat_map(|names| names.to_str()).any(|names| {
        names.split(',').any(|name| name.split(';').next().is_some_and(|n| n.trim() == "gzip"))
    });
    let answer = tokio::task::spawn_blocking(move || {
        let text = served.cards.text(from)?.into_bytes();
        if !takes_gzip || text.is_empty() {
            return Ok((text, false));
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&text)?;
        Ok::<_, io::Error>((packed.finish()?, true))
    });
    let (body, is_packed) = match answer.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return failed(&error),
        Err(error) => return failed(&error),
    };
    let mut response = Body::from(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    if is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Streams a snapshot or a range of one from disk. The headers keep a browser from running it.
async fn file(
    State(served): State<Arc<Served>>,
    Path(number): Path<usize>,
    mut request: Request,
) -> Response {
    let found = match tokio::task::spawn_blocking(move || served.shelf.open(number)).await {
        Ok(found) => found,
        Err(error) => return failed(&error),
    };
    let Some((_, file, version)) = found else { return StatusCode::NOT_FOUND.into_response() };
    let tag = format!("\"{version}\"");
    // A range of another version of the file is of no use: the whole file is sent.
    if request
        .headers()
        .get(header::IF_RANGE)
        .is_some_and(|wanted| wanted.as_bytes() != tag.as_bytes())
    {
        request.headers_mut().remove(header::RANGE);
    }
    *request.uri_mut() = Uri::from_static(HeldFile::NAME);
    match HeldFile::service(file).try_call(request).await {
        Ok(response) => {
            let mut response = response.map(Body::new);
            let headers = response.headers_mut();
            headers
                .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
            if let Ok(tag) = HeaderValue::try_from(tag) {
                headers.insert(header::ETAG, tag);
            }
            response
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            StatusCode::NOT_FOUND.into_response()
        }
        Err(error) => failed(&error),
    }
}

/// The source file of a path in a snapshot's call stacks. The path is one encoded part of the
/// address.
async fn source(
    State(served): State<Arc<Served>>,
    Path((number, path)): Path<(usize, String)>,
) -> Response {
    let found = tokio::task::spawn_blocking(move || {
        let (snapshot, file, version) = served.shelf.open(number)?;
        served.code.source((number, version), (&snapshot, file), &path)
    });
    match found.await {
        Ok(Some(answer)) => Json(answer).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn std::error::Error) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
}

async fn asset(Path(path): Path<String>) -> Response {
    let Some(Asset { bytes, content_type }) = page::get(&path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if path.starts_with("record/") {
        let html = String::from_utf8_lossy(&bytes).replacen(DOCUMENTS, "", 1);
        return axum::response::Html(html).into_response();
    }
    ([(header::CONTENT_TYPE, content_type)], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::is_own;

    /// Browsers leave out the port of the scheme.
    #[test]
    fn port_80_may_be_left_out() {
        for (port, authority, is) in [
            (80, "127.0.0.1", true),
            (80, "localhost:80", true),
            (80, "localhost:", false),
            (443, "localhost", false),
            (8317, "localhost", false),
        ] {
            assert_eq!(is_own(port, authority.as_bytes()), is, "{port} {authority}");
        }
    }
}
