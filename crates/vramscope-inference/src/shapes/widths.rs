//! The widths of a model, from the sizes of its parameters.
//!
//! Of a matrix `[out, in]`, the bytes divided by those of a row are `out`. So one number decides
//! much: the bytes of a row that most matrices have. It is also the size of the norms' weights, of
//! which a transformer has most. The bytes of a row do not tell `[in]` of four bytes from `[2 in]`
//! of two. A square matrix does: its `out` is `in`. But `[2 in, in]` of four bytes has the size of
//! a square matrix of two. So squares of two bytes count only if there are as many as norms: the
//! first and the last matrix of attention in each layer.

use super::NoShapes;

/// Smaller parameters say little: scalars and frequencies of rotary embeddings.
const MIN_BYTES: u64 = 320;
/// Most widths of a model. More fit any sizes, as those of convolutions.
const MAX_WIDTHS: usize = 8;
/// A model has at least this many matrices of different sizes, or of one size.
const MIN_MATRICES: u64 = 4;
/// Of parameters, this share may have another shape, in percent.
const MAX_OTHERS_PERCENT: u64 = 5;
/// How much more evidence one size of elements must have than the other, if both have a square
/// matrix or none has.
const CLEAR: u64 = 4;
/// A model has at most this many norms outside of its layers.
const MAX_OTHER_NORMS: u64 = 3;
/// The sizes of elements in bytes: `float32`, then `bfloat16` and `float16`.
pub(super) const ELEMENTS: [u64; 2] = [4, 2];
/// The numbers of ranks that a parameter may be spread over.
const MAX_RANKS: u32 = 1024;

/// The widths of a model, if its parameters have elements of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Bytes of an element of the parameters.
    pub element_bytes: u64,
    /// The width that most parameters have, in elements.
    pub hidden: u64,
    /// All widths, ascending, with `hidden`.
    pub all: Vec<u64>,
    /// Widths with a known meaning: the width, its symbol and the meaning in words.
    pub names: Vec<(u64, &'static str, &'static str)>,
    /// The number of ranks that share each parameter. 1 if each rank has whole parameters.
    pub ranks: u64,
    /// Square matrices, and vectors of a width that a matrix has.
    evidence: u64,
    /// A matrix is square.
    has_square: bool,
    /// Square matrices are evidence for the size of elements.
    proves_elements: bool,
}

impl Widths {
    /// Whether this reading of the same sizes is the right one.
    fn is_clearer_than(&self, other: &Self) -> bool {
        let has_only_square = self.proves_elements && !other.proves_elements;
        let least = if has_only_square { other.evidence + 1 } else { other.evidence * CLEAR };
        self.evidence >= least
    }

    /// Widths that the user gives, for each size of elements. `None` means that sizes of four bytes
    /// and of two are possible.
    pub fn given(hidden: u64, widths: &[u64], element_bytes: Option<u64>) -> Vec<Self> {
        let mut all = [widths, &[hidden]].concat();
        all.sort_unstable();
        all.dedup();
        let of = |element_bytes| {
            let all = all.clone();
            Self {
                element_bytes,
                hidden,
                all,
                names: Vec::new(),
                ranks: 1,
                evidence: 0,
                has_square: false,
                proves_elements: false,
            }
        };
        element_bytes.map_or_else(|| ELEMENTS.map(of).into(), |bytes| vec![of(bytes)])
    }
}

/// The bytes of parameters, with the number of parameters of each size.
type Sizes = Vec<(u64, u64)>;

/// The widths that explain parameters of these sizes in bytes: one reading, or two where the sizes
/// do not tell the size of elements. `are_sharded`: the call stacks name FSDP.
///
/// # Errors
/// Few widths do not explain the sizes.
pub(super) fn widths(parameters: &[u64], are_sharded: bool) -> Result<Vec<Widths>, NoShapes> {
    let counted = parameters.iter().filter(|bytes| **bytes >= MIN_BYTES).map(|bytes| (*bytes, ()));
    let sizes: Sizes = vramscope_trace::group_by_key(counted.collect())
        .into_iter()
        .map(|(bytes, of)| (bytes, of.len() as u64))
        .collect();
    if sizes.is_empty() {
        return Err(NoShapes::NoParameters);
    }
    if !are_sharded {
        return of_whole(&sizes);
    }
    // Four ranks of two bytes have the sizes of eight ranks of four.
    let mut found: Vec<Widths> = Vec::new();
    for shift in 0..=MAX_RANKS.ilog2() {
        let ranks = 1 << shift;
        let whole: Sizes =
            sizes.iter().map(|&(bytes, count)| (bytes.saturating_mul(ranks), count)).collect();
        for widths in of_whole(&whole).unwrap_or_default() {
            let is_new = found.iter().all(|old| old.element_bytes != widths.element_bytes);
            if widths.has_square && is_new {
                found.push(Widths { ranks, ..widths });
            }
        }
    }
    if found.is_empty() { Err(NoShapes::Shards) } else { Ok(found) }
}

fn of_whole(sizes: &Sizes) -> Result<Vec<Widths>, NoShapes> {
    let matrices = |row: u64| sizes.iter().filter(move |s| s.0 > row && s.0 % row == 0);
    let mut best: Vec<(bool, usize, u64, Vec<Widths>)> = Vec::new();
    let mut most_vectors = 0;
    let mut too_many = None;
    for &(row, count) in sizes {
        // The vectors of the hidden width are the most frequent of the smaller parameters.
        if count < most_vectors {
            continue;
        }
        most_vectors = count;
        if matrices(row).map(|s| s.1).sum::<u64>() < MIN_MATRICES {
            continue;
        }
        let mut found = Vec::new();
        for element in ELEMENTS {
            match reading(sizes, row, element) {
                Some(widths) if widths.all.len() <= MAX_WIDTHS => found.push(widths),
                Some(widths) => too_many = too_many.max(Some(widths.all.len())),
                None => {}
            }
        }
        let evidence = found.iter().map(|widths| widths.evidence).max().unwrap_or(0);
        if let Some(clear) = found.iter().position(|of| {
            let mut others = found.iter().filter(|other| *other != of);
            of.evidence > 0 && others.all(|other| of.is_clearer_than(other))
        }) {
            found = vec![found.swap_remove(clear)];
        }
        if let Some(first) = found.first() {
            best.push((evidence == 0, first.all.len(), u64::MAX - count, found));
        }
    }
    best.sort_by_key(|(unclear, widths, count, _)| (*unclear, *widths, *count));
    match best.into_iter().next() {
        Some((.., found)) => Ok(found),
        None if sizes.iter().map(|s| s.1).sum::<u64>() < 2 * MIN_MATRICES => {
            Err(NoShapes::FewParameters)
        }
        None => Err(NoShapes::ManyWidths { widths: too_many }),
    }
}

/// The widths, if a row has `row` bytes and an element has `element` bytes. `None` if they do not
/// explain most parameters.
fn reading(sizes: &Sizes, row: u64, element: u64) -> Option<Widths> {
    let hidden = row.checked_div(element).filter(|_| row.is_multiple_of(element))?;
    // `out` of each matrix, with the number of matrices.
    let mut outs: Vec<(u64, u64)> = Vec::new();
    let mut others = Vec::new();
    for &(bytes, count) in sizes {
        match bytes {
            _ if bytes == row => {}
            _ if bytes > row && bytes % row == 0 => outs.push((bytes / row, count)),
            _ => others.push((bytes, count)),
        }
    }
    let square = outs.iter().find(|out| out.0 == hidden).map_or(0, |out| out.1);
    let has_square = square > 0;
    // `out` of many matrices is a vector's width: `[3 hidden]` is a bias, and no `[3, hidden]`.
    let is_vector = |out: u64, outs: &[(u64, u64)]| {
        out < hidden && outs.iter().any(|other| other.0 == out.saturating_mul(hidden))
    };
    let (vectors, mut outs): (Vec<_>, Vec<_>) =
        outs.iter().copied().partition(|&(out, _)| is_vector(out, &outs));
    let norms = sizes.iter().find(|size| size.0 == row).map_or(0, |size| size.1);
    let fused = outs.iter().find(|out| Some(out.0) == hidden.checked_mul(3));
    let fused = fused.map_or(0, |out| out.1).min(square);
    let proves_elements =
        square > 0 && (element == ELEMENTS[0] || square + fused + MAX_OTHER_NORMS >= norms);
    let square = if proves_elements { square } else { 0 };
    let mut evidence = square + vectors.iter().map(|out| out.1).sum::<u64>();
    // A copy in `float32` of a matrix in 16 bits, which the optimizer updates.
    if element == 2 {
        let all = outs.clone();
        let is_copy = |out: &(u64, u64)| {
            out.0.is_multiple_of(2) && all.iter().any(|half| half.0 == out.0 / 2 && half.1 >= out.1)
        };
        // All matrices have one, or none.
        if all.iter().filter(|out| is_copy(out)).count() * 2 >= all.len() {
            outs.retain(|out| out.0 == hidden || !is_copy(out));
        }
    }
    others.retain(|&(bytes, count)| {
        let is_known = bytes % element == 0 && outs.iter().any(|out| out.0 == bytes / element);
        evidence += if is_known { count } else { 0 };
        !is_known
    });
    let all: u64 = sizes.iter().map(|s| s.1).sum();
    let unexplained: u64 = others.iter().map(|s| s.1).sum();
    if unexplained * 100 > all * MAX_OTHERS_PERCENT {
        return None;
    }
    let mut widths: Vec<u64> = outs.iter().map(|out| out.0).chain([hidden]).collect();
    widths.sort_unstable();
    widths.dedup();
    Some(Widths {
        element_bytes: element,
        hidden,
        all: widths,
        names: Vec::new(),
        ranks: 1,
        evidence,
        has_square,
        proves_elements,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of a GPT's parameters: norms, attention, the wider layers, embeddings.
    fn gpt(hidden: u64, vocabulary: u64, positions: u64, layers: u64, element: u64) -> Vec<u64> {
        let mut all = vec![vocabulary * hidden, positions * hidden, hidden, hidden];
        for _ in 0..layers {
            let [h, h3, h4] = [hidden, 3 * hidden, 4 * hidden];
            all.extend([h, h, h, h, h3 * h, h3, h * h, h, h4 * h, h4, h4 * h, h]);
        }
        all.iter().map(|elements| elements * element).collect()
    }

    #[test]
    fn a_gpt_has_its_config() {
        for (hidden, vocabulary, positions) in
            [(768, 50257, 1024), (1600, 50257, 1024), (512, 32000, 4096), (4096, 151_936, 2048)]
        {
            for element in ELEMENTS {
                let found = widths(&gpt(hidden, vocabulary, positions, 12, element), false)
                    .expect("a transformer");
                let mut expected = vec![hidden, 3 * hidden, 4 * hidden, positions, vocabulary];
                expected.sort_unstable();
                expected.dedup();
                assert_eq!(found.len(), 1, "{hidden} {element}: {found:?}");
                assert_eq!((found[0].element_bytes, found[0].hidden), (element, hidden));
                assert_eq!(found[0].all, expected, "{hidden} {element}");
            }
        }
    }

    #[test]
    fn shards_are_read_as_parts_of_whole_parameters() {
        let shards: Vec<u64> =
            gpt(768, 50304, 1024, 12, 4).into_iter().map(|bytes| bytes / 8).collect();
        let found = widths(&shards, true).expect("a transformer");
        let readings: Vec<_> = found.iter().map(|of| (of.ranks, of.element_bytes)).collect();
        assert_eq!(readings, [(4, 2), (8, 4)]);
        for of in &found {
            assert_eq!(of.all, [768, 1024, 2304, 3072, 50304], "{found:?}");
        }
    }

    #[test]
    fn a_matrix_of_four_bytes_twice_as_high_as_wide_is_no_square_of_two() {
        // Experts, and attention that is twice as wide as the model. Four norms per layer.
        let (h, layers) = (2048, 12);
        let mut sizes = vec![4 * h * 50304];
        for _ in 0..layers {
            sizes.extend([4 * h * 2 * h, 4 * h * 4 * h, 4 * h * 6 * h]);
            sizes.extend([4 * h * 512; 24]);
            sizes.extend([4 * h; 4]);
        }
        let found = widths(&sizes, false).expect("a model");
        let readings: Vec<_> = found.iter().map(|of| (of.element_bytes, of.hidden)).collect();
        assert_eq!(readings, [(4, 2048), (2, 4096)]);
    }

    #[test]
    fn two_squares_in_each_layer_tell_elements_of_two_bytes() {
        // The first and the last matrix of attention, keys and values of a quarter.
        let (h, layers) = (4096, 12);
        let mut sizes = vec![2 * h * 32000, 2 * h * 32000, 2 * h];
        for _ in 0..layers {
            sizes.extend([2 * h, 2 * h, 2 * h * h, 2 * h * h, 2 * h * h / 4, 2 * h * h / 4]);
            sizes.extend([2 * h * 14336; 3]);
        }
        let found = widths(&sizes, false).expect("a model");
        let readings: Vec<_> = found.iter().map(|of| (of.element_bytes, of.hidden)).collect();
        assert_eq!(readings, [(2, 4096)]);
    }

    #[test]
    fn a_square_beside_queries_keys_and_values_in_one_tells_elements_of_two_bytes() {
        let (h, layers) = (1024, 24);
        let mut sizes = vec![2 * h * 32000, 2 * h];
        for _ in 0..layers {
            sizes.extend([2 * h, 2 * h, 2 * h * 3 * h, 2 * h * h, 2 * h * 4 * h, 2 * h * 4 * h]);
        }
        let found = widths(&sizes, false).expect("a model");
        let readings: Vec<_> = found.iter().map(|of| (of.element_bytes, of.hidden)).collect();
        assert_eq!(readings, [(2, 1024)]);
    }

    #[test]
    fn without_a_square_matrix_or_a_bias_both_readings_stay() {
        // Two matrices per layer, none of them square, and no biases.
        let mut sizes = vec![4 * 512 * 32000];
        for _ in 0..6 {
            sizes.extend([4 * 512, 4 * 512 * 1408, 4 * 512 * 1408]);
        }
        let found = widths(&sizes, false).expect("a model");
        let hidden: Vec<u64> = found.iter().map(|of| of.hidden).collect();
        assert_eq!(hidden, [512, 1024]);
    }

    #[test]
    fn convolutions_and_single_layers_have_no_widths() {
        let mut sizes = Vec::new();
        for (out, input, kernel) in
            [(64, 3, 49), (64, 64, 9), (128, 64, 9), (256, 128, 9), (512, 256, 9), (128, 64, 1)]
        {
            sizes.extend([4 * out * input * kernel, 4 * out, 4 * out, 4 * out]);
        }
        sizes.extend([4 * 512 * 1000, 4000]);
        assert!(matches!(widths(&sizes, false), Err(NoShapes::ManyWidths { .. })));
        assert_eq!(widths(&[4 * 10_000 * 50_000, 200_000], false), Err(NoShapes::FewParameters));
        assert_eq!(widths(&[], false), Err(NoShapes::NoParameters));
    }
}
