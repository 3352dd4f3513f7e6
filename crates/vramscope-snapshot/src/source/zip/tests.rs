//! Archives that PyTorch does not write, in chunks.

use super::*;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

const JSON: &[u8] = br#"{"segments": [], "device_traces": [[
    {"action": "alloc", "addr": 4096, "size": 100}]]}"#;

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a Vec takes all bytes");
    encoder.finish().expect("a Vec takes all bytes")
}

/// A local header with data and what follows them, and the record of the directory.
type Made = (Vec<u8>, Vec<u8>);

/// An entry of packed data. The header has no sizes if its flags say that `tail` has them.
fn entry(flags: u16, method: u16, name: &str, [data, plain, tail]: [&[u8]; 3]) -> Made {
    let fields = |sizes: [u32; 3]| -> Vec<u8> {
        let start = [20, flags, method, 0, 0].into_iter().flat_map(u16::to_le_bytes);
        let lengths = [name.len() as u16, 0].into_iter().flat_map(u16::to_le_bytes);
        start.chain(sizes.into_iter().flat_map(u32::to_le_bytes)).chain(lengths).collect()
    };
    let sizes = [crc(plain), data.len() as u32, plain.len() as u32];
    let local = fields(if flags & HAS_DESCRIPTOR == 0 { sizes } else { [0; 3] });
    let signature = LOCAL_HEADER.to_le_bytes();
    let local = [&signature, &local[..], name.as_bytes(), data, tail].concat();
    (local, [&directory::RECORD.to_le_bytes()[..], &[20, 0], &fields(sizes)[..], &[0; 10]].concat())
}

fn stored(name: &str, data: &[u8]) -> Made {
    entry(0, STORED, name, [data, data, b""])
}

/// The archive of some entries.
fn archive(entries: &[Made]) -> Vec<u8> {
    let (mut out, mut records) = (Vec::new(), Vec::new());
    for (local, record) in entries {
        let name = number(local, 26, 2).expect("a length") as usize;
        records.extend([record, &(out.len() as u32).to_le_bytes()[..]].concat());
        records.extend(&local[HEADER_BYTES..][..name]);
        out.extend(local);
    }
    let count = (entries.len() as u16).to_le_bytes();
    let sizes = [records.len() as u32, out.len() as u32].map(u32::to_le_bytes).concat();
    out.extend(records);
    let end = directory::END.to_le_bytes();
    [&out[..], &end, &[0; 4], &count, &count, &sizes, &[0; 2]].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn read(bytes: &[u8], size: usize) -> Result<usize, LoadError> {
    let mut zip = Zip::new(Options::default());
    bytes.chunks(size).try_for_each(|chunk| zip.feed(chunk))?;
    zip.finish().map(|found| found.len())
}

#[test]
fn an_archive_is_read_in_any_chunks() {
    let archive = archive(&[stored("a/version", b"3\n"), stored("a/data.pkl", JSON)]);
    for size in [1, 2, 7, 30, 1000] {
        assert_eq!(read(&archive, size), Ok(1), "chunks of {size}");
    }
    for length in 0..archive.len() {
        let cut = read(&archive[..length], 50);
        assert!(matches!(cut, Err(LoadError::Zip { .. })), "cut at {length}: {cut:?}");
    }
}

/// A descriptor without its signature.
fn tail(data: &[u8], plain: &[u8]) -> Vec<u8> {
    let sizes = [crc(plain), data.len() as u32, plain.len() as u32];
    sizes.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn descriptors_may_lack_a_signature_behind_deflated_data() {
    let packed = deflated(b"text");
    let sizes = tail(&packed, b"text");
    let with = |tail: &[u8]| {
        let other = entry(HAS_DESCRIPTOR, DEFLATED, "a/b", [&packed, b"text", tail]);
        read(&archive(&[other, stored("a/data.pkl", JSON)]), 9)
    };
    assert_eq!(with(&sizes), Ok(1));
    assert_eq!(with(&[&DESCRIPTOR, &sizes[..]].concat()), Ok(1));
    assert!(matches!(with(&[0; 12]), Err(LoadError::Zip { .. })));
}

#[test]
fn an_entry_may_begin_with_the_descriptor_of_an_empty_one() {
    let data = [&DESCRIPTOR[..], &[0; 60]].concat();
    let tail = [&DESCRIPTOR, &tail(&data, &data)[..]].concat();
    let open = entry(HAS_DESCRIPTOR, STORED, "a/data/0", [&data, &data, &tail]);
    let archive = archive(&[open, stored("a/data.pkl", JSON)]);
    for size in [1, 9, 1000] {
        assert_eq!(read(&archive, size), Ok(1), "chunks of {size}");
    }
}

#[test]
fn other_archives_are_refused() {
    let refused = |entries: &[Made]| match read(&archive(entries), 50) {
        Err(LoadError::Refused { what }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&[]), NO_PICKLE);
    assert_eq!(refused(&[stored("a/snapshot.pickle", JSON)]), NO_PICKLE);
    assert_eq!(refused(&[stored("data.pkl", JSON)]), NO_PICKLE);
    assert_eq!(refused(&[stored("a/data.pkl", b"{\"a\": 1}")]), TORCH_SAVE);
    let of = |flags, method| refused(&[entry(flags, method, "a/data.pkl", [JSON, JSON, b""])]);
    assert_eq!(of(1, STORED), ENCRYPTED);
    assert_eq!(of(0, 93), OTHER_METHOD);
    let long = stored("a/data/0", &vec![b'P'; MAX_OTHER_BYTES as usize + 1]);
    assert_eq!(refused(&[long]), NO_PICKLE);
    let wrong = entry(0, STORED, "a/data.pkl", [JSON, b"other", b""]);
    let wrong = read(&archive(&[wrong]), 50);
    assert!(matches!(wrong, Err(LoadError::Zip { at: 40, .. })), "{wrong:?}");
}

#[test]
fn archives_inside_each_other_are_limited() {
    let mut inner = JSON.to_vec();
    for level in 0..6 {
        inner = archive(&[stored("a/data.pkl", &inner)]);
        let result = read(&inner, 1000);
        assert_eq!(result.is_ok(), level < 4, "{level}: {result:?}");
    }
}

#[test]
fn large_sizes_are_in_an_extra_field() {
    let field = |sizes: &[u64]| -> Vec<u8> {
        let bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
        let length = (bytes.len() as u16).to_le_bytes();
        [b"FB\x01\0Z".to_vec(), vec![1, 0], length.to_vec(), bytes].concat()
    };
    let max = u64::from(u32::MAX);
    assert_eq!(widened([max, max], &field(&[9 << 32, 5 << 32])), Some([9 << 32, 5 << 32]));
    assert_eq!(widened([7, max], &field(&[5 << 32])), Some([7, 5 << 32]));
    assert_eq!(widened([7, 12], &field(&[5 << 32])), Some([7, 12]));
    assert_eq!(widened([max, max], &field(&[5 << 32])), None);
    assert_eq!(widened([max], &field(&[1])[..6]), None);
}

#[test]
fn many_unpacked_bytes_are_not_held() {
    let space = [JSON, &vec![b' '; 40 << 20]].concat();
    let other = vec![0; 8 << 20];
    let packed = deflated(&other);
    let tail = tail(&packed, &other);
    let (other, _) = entry(HAS_DESCRIPTOR, DEFLATED, "a/other", [&packed, &other, &tail]);
    let limited = || Zip::new(Options { max_memory: 1 << 20, ..Options::default() });
    let mut zip = limited();
    zip.feed(&other).expect("the entry is skipped");
    assert!(zip.memory() < 1 << 20, "{}", zip.memory());
    let (text, _) = entry(0, DEFLATED, "a/data.pkl", [&deflated(&space), &space, b""]);
    assert!(matches!(limited().feed(&text), Err(LoadError::Pickle(_))));
    // Of many entries, names and sizes are held.
    let many = |count: usize| (0..count).map(|i| stored(&format!("a/{i}"), b"").0);
    let max = limited().feed(&many(40_000).collect::<Vec<_>>().concat());
    assert!(matches!(max, Err(LoadError::Pickle(_))), "{max:?}");
    let mut zip = Zip::new(Options::default());
    let far = many(500_000).try_for_each(|entry| zip.feed(&entry));
    assert!(far.expect_err("too many").to_string().contains("more than 16 MiB of names"));
    assert!(zip.memory() < 20 << 20, "{}", zip.memory());
}

#[test]
fn entries_behind_the_pickle_may_be_large_unless_they_unpack_to_it() {
    let large = vec![0; MAX_OTHER_BYTES as usize + 1];
    let pickle = || stored("a/data.pkl", JSON);
    assert_eq!(read(&archive(&[pickle(), stored("a/0", &large)]), 1 << 20), Ok(1));
    let packed = deflated(&large);
    let tail = tail(&packed, &large);
    let bomb = entry(HAS_DESCRIPTOR, DEFLATED, "a/0", [&packed, &large, &tail]);
    let bomb = read(&archive(&[pickle(), bomb]), 1 << 20).expect_err("a bomb").to_string();
    assert!(bomb.contains("the entry `a/0` unpacks to more than 64 MiB"), "{bomb}");
}
