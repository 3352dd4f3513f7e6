//! Generated files in memory.

use vramscope_testgen::{Generator, Options};

/// The files of some ranks.
pub(crate) fn generate(ranks: u64, options: &Options) -> Vec<Vec<u8>> {
    let generator = Generator::new(options).expect("valid options");
    let write = |rank| {
        let mut file = Vec::new();
        generator.write(rank, &mut file).expect("a Vec takes all bytes");
        file
    };
    (0..ranks).map(write).collect()
}
