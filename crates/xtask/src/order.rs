//! Orders the functions of a wasm module, so that each lies beside functions that resemble it.
//!
//! gzip finds repetitions within 32 kB only, and spends less on near ones. The instances of a
//! generic function resemble each other, and so do methods that the compiler derives.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use wasmparser::{Parser, Payload};

/// Length of a piece in bytes. Functions resemble each other by the pieces that they share.
const PIECE: usize = 5;
/// A piece of more functions tells nothing about any two of them.
const MOST_OWNERS: usize = 150;
/// The next function is compared with this many bytes before it.
const WINDOW: usize = 6000;

/// Names the functions by their place in that order, for `wasm-opt --reorder-functions-by-name`.
pub(crate) fn name_by_place(wasm: &Path) -> Result<()> {
    let bytes = std::fs::read(wasm).with_context(|| format!("reading {}", wasm.display()))?;
    let mut bodies = Vec::new();
    for payload in Parser::new(0).parse_all(&bytes) {
        if let Payload::CodeSectionEntry(body) = payload? {
            bodies.push(body.as_bytes());
        }
    }
    let mut module = walrus::Module::from_buffer(&bytes)?;
    let ids: Vec<_> = module.funcs.iter_local().map(|(id, _)| id).collect();
    ensure!(ids.len() == bodies.len(), "{}: functions are missing", wasm.display());
    for (place, function) in by_resemblance(&bodies).into_iter().enumerate() {
        module.funcs.get_mut(ids[function]).name = Some(format!("{place:06}"));
    }
    module.emit_wasm_file(wasm)
}

/// The order: the next function shares the most pieces with the window before it, divided by the
/// square root of its length. Without the division, long functions would always come first.
fn by_resemblance(bodies: &[&[u8]]) -> Vec<usize> {
    let (pieces, owners) = shared_pieces(bodies);
    // How many functions of the window have a piece, and how many pieces of the window a function.
    let mut present = vec![0_usize; owners.len()];
    let mut shared = vec![0_usize; bodies.len()];
    let mut left: Vec<usize> = (0..bodies.len()).collect();
    let mut order: Vec<usize> = Vec::with_capacity(bodies.len());
    let (mut window_start, mut window_bytes) = (0, 0);
    while !left.is_empty() {
        let score = |f: usize| shared[f] as f64 / (bodies[f].len() as f64).sqrt();
        let scores = left.iter().map(|&f| score(f)).enumerate();
        let (best, _) = scores.fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        let next = left.remove(best);
        order.push(next);
        window_bytes += bodies[next].len();
        for &piece in &pieces[next] {
            present[piece] += 1;
            if present[piece] == 1 {
                owners[piece].iter().for_each(|&f| shared[f] += 1);
            }
        }
        while window_bytes > WINDOW && window_start + 1 < order.len() {
            let gone = order[window_start];
            window_start += 1;
            window_bytes -= bodies[gone].len();
            for &piece in &pieces[gone] {
                present[piece] -= 1;
                if present[piece] == 0 {
                    owners[piece].iter().for_each(|&f| shared[f] -= 1);
                }
            }
        }
    }
    order
}

/// The pieces that several functions have, as numbers: those of each function, and the functions of
/// each piece.
fn shared_pieces(bodies: &[&[u8]]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut owners: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (function, body) in bodies.iter().enumerate() {
        for piece in body.windows(PIECE) {
            let owners = owners.entry(piece).or_default();
            if owners.last() != Some(&function) {
                owners.push(function);
            }
        }
    }
    let mut owners: Vec<Vec<usize>> = owners.into_values().collect();
    owners.retain(|owners| (2..=MOST_OWNERS).contains(&owners.len()));
    let mut pieces = vec![Vec::new(); bodies.len()];
    for (piece, owners) in owners.iter().enumerate() {
        for &function in owners {
            pieces[function].push(piece);
        }
    }
    (pieces, owners)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_lie_beside_those_that_they_resemble() {
        let bodies: [&[u8]; 5] = [
            b"get the first row",
            b"sum of numbers",
            b"get the last row",
            b"a sum of numbers",
            b"?",
        ];
        assert_eq!(by_resemblance(&bodies), [0, 2, 1, 3, 4]);
    }

    #[test]
    fn an_order_has_each_function_once() {
        let bodies: Vec<Vec<u8>> =
            (0..200_u32).map(|k| vec![(k % 7) as u8; 40 * k as usize]).collect();
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        let mut order = by_resemblance(&bodies);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..200));
    }
}
