//! Requests to a running server, byte by byte.

use super::connections::accept;
use super::listen;
use super::routes::router;
use super::shelf::Shelf;
use super::source::Code;
use crate::arguments::SourceArguments;
use crate::paths::Links;
use crate::sources::{MAX_BYTES, Sources};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use vramscope_report::card::Card;
use vramscope_report::index::{Entry, Reader};

const HEADER_TIMEOUT: Duration = Duration::from_millis(300);

/// A server of a folder with one file of 100 bytes.
struct Server {
    address: SocketAddr,
    folder: PathBuf,
    _runtime: Runtime,
}

impl Server {
    fn start(name: &str) -> Self {
        Self::with_source(name, &[])
    }

    /// The server, with folders of source below its folder.
    fn with_source(name: &str, source: &[&str]) -> Self {
        let folder =
            std::env::temp_dir().join(format!("vramscope-serve-{name}-{}", std::process::id()));
        let source: Vec<PathBuf> = source.iter().map(|below| folder.join(below)).collect();
        for folder in source.iter().chain([&folder]) {
            fs::create_dir_all(folder).expect("a folder can be made");
        }
        let file = folder.join("rank0.pickle");
        fs::write(&file, [b'x'; 100]).expect("a file can be written");
        let opened = fs::File::options().append(true).open(&file).expect("the file is there");
        opened.set_modified(UNIX_EPOCH + Duration::from_secs(7)).expect("times can be set");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener =
            runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let arguments = SourceArguments { folders: source, maps: Vec::new() };
        let Ok(sources) = Sources::new(&arguments) else { panic!("folders can be listed") };
        let shelf = Shelf::new(vec![folder.clone()], Links::Inside);
        let routes = router("token", address.port(), shelf, Code::new(sources));
        runtime.spawn(accept(listener, routes, HEADER_TIMEOUT));
        Self { address, folder, _runtime: runtime }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
        stream
    }

    /// The response to a request with these header lines.
    fn ask(&self, target: &str, headers: &[&str]) -> String {
        let mut stream = self.connect();
        let lines = headers.join("\r\n");
        let end = if headers.is_empty() { "" } else { "\r\n" };
        write!(stream, "GET {target} HTTP/1.1\r\nConnection: close\r\n{lines}{end}\r\n")
            .expect("a request can be sent");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response comes");
        response
    }

    /// The response to a request that names the server.
    fn get(&self, target: &str) -> String {
        self.ask(target, &[&self.host()])
    }

    /// The header line that names the server.
    fn host(&self) -> String {
        format!("Host: {}", self.address)
    }

    fn index(&self) -> String {
        self.get("/token/files/index.json")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).expect("the folder can be removed");
    }
}

#[track_caller]
fn assert_status(response: &str, status: &str) {
    assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
}

#[test]
fn a_taken_port_is_an_error_only_if_it_was_asked_for() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let port = |listener: &TcpListener| listener.local_addr().expect("it listens").port();
        let first = listen(None).await.expect("a port is free");
        let second = listen(None).await.expect("another port is free");
        assert_ne!(port(&first), port(&second));
        let taken = port(&first);
        let error = listen(Some(taken)).await.expect_err("it is taken");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let wanted = format!("cannot listen on port {taken} of 127.0.0.1: another program listens");
        assert!(error.to_string().starts_with(&wanted), "{error}");
        drop(first);
        assert_eq!(port(&listen(Some(taken)).await.expect("it is free now")), taken);
    });
}

#[test]
fn only_requests_that_name_the_server_are_served() {
    let server = Server::start("hosts");
    let index = "/token/files/index.json";
    let port = server.address.port();
    let host = |authority: &str| format!("Host: {}", authority.replace("PORT", &port.to_string()));
    for own in
        ["127.0.0.1:PORT", "localhost:PORT", "LocalHost:PORT", "[::1]:PORT", "  127.0.0.1:PORT "]
    {
        assert_status(&server.ask(index, &[&host(own)]), "200");
    }
    for other in [
        "",
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1",
        "localhost",
        "localhost:",
        "127.0.0.1:",
        "127.0.0.1:1",
        "127.0.0.1:PORT0",
        "127.0.0.1:0PORT",
        "127.0.0.1:+PORT",
        "127.0.0.1: PORT",
        "127.0.0.1 :PORT",
        "127.0.0.1:PORT:PORT",
        "127.0.0.1:PORT.evil.example",
        "127.0.0.1:PORT/",
        "127.0.0.1:PORT, evil.example",
        "127.0.0.1.:PORT",
        "127.0.0.1.evil.example:PORT",
        "127.0.0.2:PORT",
        "127.1:PORT",
        "2130706433:PORT",
        "0.0.0.0:PORT",
        "localhost.:PORT",
        "localhost.evil.example:PORT",
        "evil.localhost:PORT",
        "user@127.0.0.1:PORT",
        "user:PORT@evil.example",
        "http://127.0.0.1:PORT",
        "[::1]",
        "[::1]:",
        "[::1]:1",
        "::1:PORT",
        "[::1%lo]:PORT",
        "[::ffff:127.0.0.1]:PORT",
        "127.0.0.1:PORT\u{a0}",
        "ｌocalhost:PORT",
    ] {
        let response = server.ask(index, &[&host(other)]);
        // The parser itself refuses some.
        let is_refused = ["HTTP/1.1 403", "HTTP/1.1 400"].iter().any(|is| response.starts_with(is));
        assert!(is_refused, "{other:?}: {response}");
    }
    let own = server.host();
    for headers in
        [&[&own[..], "Host: evil.example"][..], &["Host: evil.example", &own], &[&own, &own], &[]]
    {
        assert_status(&server.ask(index, headers), "403");
    }
    // A request may name the server in its address, too.
    for (authority, status) in [
        (&own["Host: ".len()..], "200"),
        ("evil.example", "403"),
        ("127.0.0.1", "403"),
        ("127.0.0.1:1", "403"),
    ] {
        assert_status(&server.get(&format!("http://{authority}{index}")), status);
    }
    let user = format!("http://user@{}{index}", server.address);
    assert_status(&server.get(&user), "403");
    let elsewhere = format!("http://{}{index}", server.address);
    assert_status(&server.ask(&elsewhere, &["Host: evil.example"]), "403");
    assert_status(&server.get("/files/index.json"), "404");
}

#[test]
fn a_range_of_another_version_is_the_whole_file() {
    let server = Server::start("ranges");
    assert!(server.index().contains("0?7000-100"), "{}", server.index());
    let [host, range] = [&server.host()[..], "Range: bytes=10-19"];
    let part = server.ask("/token/files/0", &[host, range]);
    assert_status(&part, "206");
    assert!(part.contains("etag: \"7000-100\"\r\n"), "{part}");
    assert!(part.ends_with("\r\n\r\nxxxxxxxxxx"), "{part}");
    let same = server.ask("/token/files/0", &[host, range, "If-Range: \"7000-100\""]);
    assert_status(&same, "206");
    let other = server.ask("/token/files/0", &[host, range, "If-Range: \"other\""]);
    assert_status(&other, "200");
    assert!(other.contains("content-length: 100\r\n"), "{other}");
}

#[test]
fn what_is_no_longer_a_file_is_not_found() {
    let server = Server::start("gone");
    assert!(server.index().contains("rank0.pickle"));
    let path = server.folder.join("rank0.pickle");
    assert_status(&server.get("/token/files/0"), "200");
    fs::remove_file(&path).expect("the file is there");
    assert_status(&server.get("/token/files/0"), "404");
    fs::create_dir(&path).expect("a folder can be made");
    assert_status(&server.get("/token/files/0"), "404");
    assert_status(&server.get("/token/files/1"), "404");
}

#[test]
fn only_this_machine_may_frame_the_page_and_files_are_sandboxed() {
    let server = Server::start("frames");
    let index = server.index();
    assert!(index.contains("content-security-policy: frame-ancestors 'self' "), "{index}");
    let file = server.get("/token/files/0");
    assert!(file.contains("content-security-policy: sandbox\r\n"), "{file}");
}

#[test]
fn only_source_files_that_a_snapshot_names_are_served() {
    let folder = std::env::temp_dir().join(format!("vramscope-serve-code-{}", std::process::id()));
    let src = folder.join("src");
    fs::create_dir_all(&src).expect("a folder can be made");
    for name in ["src/named.py", "src/other.py", "src/large.py", "secret.py"] {
        fs::write(folder.join(name), name).expect("a file can be written");
    }
    let large = fs::File::options().write(true).open(src.join("large.py")).expect("it is there");
    large.set_len(MAX_BYTES + 1).expect("it can grow");
    std::os::unix::fs::symlink(folder.join("secret.py"), src.join("link.py")).expect("a link");
    let server = Server::with_source("code", &["src"]);
    let paths = ["/train/named.py", "/train/link.py", "/train/large.py", "/train/../secret.py"];
    let frames: Vec<String> = paths
        .iter()
        .map(|path| format!(r#"{{"name": "f", "filename": "{path}", "line": 1}}"#))
        .collect();
    let snapshot = format!(
        r#"{{"segments": [], "device_traces": [[{{"action": "alloc", "addr": 4096, "size": 1,
            "frames": [{}]}}]]}}"#,
        frames.join(",")
    );
    let path = folder.join("rank0.pickle");
    fs::write(&path, snapshot).expect("a file can be written");
    let opened = fs::File::options().append(true).open(&path).expect("the file is there");
    opened.set_modified(UNIX_EPOCH).expect("times can be set");
    assert!(server.index().contains(r#""source":"0/source/""#), "{}", server.index());
    let ask = |path: &str| {
        let encoded = path.replace('/', "%2F");
        server.get(&format!("/token/files/0/source/{encoded}"))
    };
    let named = ask("/train/named.py");
    assert_status(&named, "200");
    assert!(named.contains(r#""text":"src/named.py""#), "{named}");
    assert!(named.contains("content-type: application/json\r\n"), "{named}");
    // In a folder of source, but in no call stack.
    assert_status(&ask("/train/other.py"), "404");
    assert_status(&ask("other.py"), "404");
    // In call stacks, but outside of the folder.
    assert_status(&ask("/train/../secret.py"), "404");
    for (path, why) in [("/train/link.py", "leads out of its folder"), ("/train/large.py", "bytes")]
    {
        let refused = ask(path);
        assert!(refused.contains("refused") && refused.contains(why), "{refused}");
        assert!(!refused.contains("secret.py\""), "{refused}");
    }
    for odd in ["..", "../secret.py", "/etc/passwd", "../../secret.py"] {
        assert_status(&ask(odd), "404");
    }
    let literal = server.get("/token/files/0/source/../../../secret.py");
    assert_status(&literal, "404");
    assert_status(&server.get("/token/files/9/source/x"), "404");
    let evil = server.ask("/token/files/0/source/x", &["Host: evil.example"]);
    assert_status(&evil, "403");
}

#[test]
fn without_a_folder_of_source_none_is_served() {
    let server = Server::start("no-code");
    assert!(server.index().contains(r#""source":null"#), "{}", server.index());
    assert_status(&server.get("/token/files/0/source/x.py"), "404");
}

#[test]
fn a_client_that_sends_no_request_is_cut_off() {
    let server = Server::start("slow");
    let started = Instant::now();
    let mut clients: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.write_all(b"GET / HTTP/1.1\r\nHost: local").expect("half a request can be sent");
    }
    for mut client in clients {
        let mut rest = Vec::new();
        // The server may answer that the request timed out, and then closes the connection.
        client.read_to_end(&mut rest).expect("the connection ends");
    }
    assert!(started.elapsed() >= HEADER_TIMEOUT);
    assert_status(&server.index(), "200");
}

/// Adds this many snapshots, each of one block, to the folder.
fn add_ranks(server: &Server, ranks: std::ops::Range<usize>) {
    for rank in ranks {
        let snapshot = format!(
            r#"{{"segments": [], "device_traces": [[{{"action": "alloc", "addr": 4096,
                "size": {}, "frames": []}}]]}}"#,
            100 + rank
        );
        let path = server.folder.join(format!("rank{rank}_memory_snapshot.json"));
        fs::write(&path, snapshot).expect("a file can be written");
        let opened = fs::File::options().append(true).open(&path).expect("the file is there");
        opened.set_modified(UNIX_EPOCH).expect("times can be set");
    }
}

/// Changes the peak of a rank's snapshot. The file gets a time of its own, so that it is noticed.
fn rewrite(server: &Server, rank: usize, bytes: usize) {
    let snapshot = format!(
        r#"{{"segments": [], "device_traces": [[{{"action": "alloc", "addr": 4096,
            "size": {bytes},
            "frames": [{{"name": "f{bytes}", "filename": "m.py", "line": 1}}]}}]]}}"#,
    );
    let path = server.folder.join(format!("rank{rank}_memory_snapshot.json"));
    fs::write(&path, snapshot).expect("a file can be written");
    let opened = fs::File::options().append(true).open(&path).expect("the file is there");
    opened.set_modified(UNIX_EPOCH + Duration::from_secs(bytes as u64)).expect("times can be set");
}

/// Some cards of a server.
#[derive(Default)]
struct Part {
    entries: Vec<Entry>,
    /// The number to ask from next.
    next: u64,
    files: u64,
    skipped_files: u64,
}

impl Part {
    fn card(&self, at: usize) -> &Card {
        self.entries[at].as_ref().expect("a card")
    }

    fn ranks(&self) -> Vec<Option<u32>> {
        (0..self.entries.len()).map(|at| self.card(at).rank).collect()
    }
}

/// The cards from a number on. Waits until all are there.
fn all_cards(server: &Server, from: u64) -> Part {
    let started = Instant::now();
    let mut part = Part { next: from, ..Part::default() };
    while started.elapsed() < Duration::from_mins(1) {
        let target = format!("/token/files/cards?from={}", part.next);
        let response = server.get(&target);
        assert_status(&response, "200");
        assert!(response.contains("content-type: application/x-ndjson\r\n"), "{response}");
        let (_, body) = response.split_once("\r\n\r\n").expect("headers");
        let mut reader = Reader::default();
        part.entries.extend(reader.feed(body.as_bytes()).expect("an index"));
        part.next = reader.next().expect("a part of an index");
        (part.files, part.skipped_files) = (reader.files(), reader.skipped_files());
        if reader.is_done() {
            return part;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("cards come within a minute: {:?}", part.entries);
}

#[test]
fn cards_of_many_snapshots_are_made_in_the_background() {
    let server = Server::start("cards");
    add_ranks(&server, 0..31);
    assert!(!server.index().contains("\"cards\":"), "32 files are few: {}", server.index());
    let none = server.get("/token/files/cards?from=0");
    assert!(none.ends_with("\r\n\r\n"), "{none}");
    add_ranks(&server, 31..40);
    let index = server.index();
    assert!(index.contains(r#""cards":{"url":"cards","total":41}"#), "{index}");
    let all = all_cards(&server, 0);
    // `rank0.pickle` is no snapshot.
    assert_eq!((all.entries.len(), all.files, all.skipped_files), (40, 41, 1));
    for at in 0..40 {
        let card = all.card(at);
        assert!(index.contains(&format!(r#""path":"{}""#, card.path)), "{}", card.path);
        let rank = card.rank.expect("a rank");
        assert_eq!(card.bands[0].peak.0, 100 + i64::from(rank));
    }
    // The cards of added and changed files come after the cards that are there.
    add_ranks(&server, 40..41);
    rewrite(&server, 3, 7);
    assert!(server.index().contains(r#""total":42"#), "{}", server.index());
    let more = all_cards(&server, all.next);
    assert_eq!(more.ranks(), [Some(3), Some(40)]);
    assert_eq!(more.card(0).bands[0].peak.0, 7);
    assert!(all_cards(&server, more.next).entries.is_empty());
}

/// Every version of a file once had a line, in memory and in answers.
#[test]
fn files_that_change_often_have_one_set_of_cards() {
    let server = Server::start("rewritten-cards");
    add_ranks(&server, 0..40);
    assert_status(&server.index(), "200");
    let mut next = all_cards(&server, 0).next;
    for round in 1..=20 {
        for rank in 0..20 {
            rewrite(&server, rank, 1000 * round + rank);
        }
        assert_status(&server.index(), "200");
        let part = all_cards(&server, next);
        assert_eq!(part.entries.len(), 20, "only what has changed is sent");
        assert_eq!(part.card(0).bands[0].peak.0 as usize / 1000, round);
        next = part.next;
    }
    let all = all_cards(&server, 0);
    assert_eq!((all.entries.len(), all.next), (40, next), "40 files, changed 400 times");
    // Those that were not changed come first.
    assert!(all.ranks()[..20].iter().all(|&rank| rank >= Some(20)));
    for at in 0..40 {
        let card = all.card(at);
        let rank = i64::from(card.rank.expect("a rank"));
        let peak = if rank < 20 { 20_000 + rank } else { 100 + rank };
        assert_eq!(card.bands[0].peak.0, peak);
    }
    // Call sites of old versions are forgotten.
    let text = server.get("/token/files/cards?from=0");
    assert!(text.contains("f20000") && !text.contains("f1000"), "{text}");
    // What was a card is told as a failure, and a file that is gone is forgotten.
    let changed = server.folder.join("rank5_memory_snapshot.json");
    fs::write(&changed, "no snapshot").expect("a file can be written");
    let opened = fs::File::options().append(true).open(&changed).expect("the file is there");
    opened.set_modified(UNIX_EPOCH).expect("times can be set");
    fs::remove_file(server.folder.join("rank6_memory_snapshot.json")).expect("the file is there");
    assert_status(&server.index(), "200");
    let part = all_cards(&server, next);
    assert!(part.entries.len() == 1 && part.entries[0].is_err(), "{:?}", part.entries);
    let all = all_cards(&server, 0);
    assert_eq!((all.entries.len(), all.files), (39, 40));
    assert!(!all.entries.iter().flatten().any(|card| matches!(card.rank, Some(5 | 6))));
}

#[test]
fn cards_are_as_guarded_as_files() {
    let server = Server::start("guarded-cards");
    add_ranks(&server, 0..40);
    assert_status(&server.index(), "200");
    assert_status(&server.ask("/token/files/cards", &["Host: evil.example"]), "403");
    assert_status(&server.get("/files/cards"), "404");
    all_cards(&server, 0);
    // Compressed for those who take it.
    let mut stream = server.connect();
    write!(
        stream,
        "GET /token/files/cards?from=1 HTTP/1.1\r\n{}\r\n\
         Accept-Encoding: deflate, gzip\r\nConnection: close\r\n\r\n",
        server.host()
    )
    .expect("a request can be sent");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a response comes");
    let end = response.windows(4).position(|four| four == b"\r\n\r\n").expect("headers");
    let headers = String::from_utf8_lossy(&response[..end]);
    assert!(headers.contains("content-encoding: gzip"), "{headers}");
    assert!(headers.contains("cache-control: no-store"), "{headers}");
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&response[end + 4..]);
    unpacked.read_to_string(&mut text).expect("text");
    assert_eq!(text.lines().count(), 42, "40 cards between begin and end: {text}");
    // What is no number is the begin.
    let odd = server.get("/token/files/cards?from=x");
    assert!(odd.contains("vramscope.index/1"), "{odd}");
    let beyond = server.get("/token/files/cards?from=99999999");
    assert!(
        beyond.contains(r#"{"done":true"#) && beyond.contains(r#""next":99999999"#),
        "{beyond}"
    );
}

#[test]
fn a_link_out_of_the_folder_has_no_card() {
    let server = Server::start("card-links");
    add_ranks(&server, 0..40);
    let secret = server.folder.with_extension("secret");
    fs::write(&secret, "{}").expect("a file can be written");
    std::os::unix::fs::symlink(&secret, server.folder.join("rank99_out.json")).expect("a link");
    assert_status(&server.index(), "200");
    let all = all_cards(&server, 0);
    assert_eq!(all.entries.len(), 40);
    assert!(!all.ranks().contains(&Some(99)), "{:?}", all.ranks());
    fs::remove_file(&secret).expect("the file can be removed");
}
